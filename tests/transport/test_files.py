"""Partial files: the target is whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from xftp.errors import FileBusyError, FileError, LocalFileError, NoSpaceError, RestartError
from xftp.transport.files import SourceFile
from xftp.transport.kept import kept_length, working_names

from .support import content, opened, partial


def kept(path: Path) -> int | None:
    with opened(path.parent) as directory:
        return kept_length(directory, path.name)


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_commit_replaces_the_target(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    target.chmod(0o640)
    new = partial(target)
    new.write([memoryview(b"new "), memoryview(b"content")], 0)
    assert target.read_bytes() == b"old"
    new.commit(11, modified=1e9)
    assert target.read_bytes() == b"new content"
    assert target.stat().st_mtime == 1e9
    assert target.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["file"]


def test_commit_cuts_to_the_size(tmp_path: Path) -> None:
    new = partial(tmp_path / "file")
    new.write([memoryview(b"123456")], 0)
    new.commit(4)
    assert (tmp_path / "file").read_bytes() == b"1234"


def test_two_writers(tmp_path: Path) -> None:
    first = partial(tmp_path / "file")
    with pytest.raises(FileBusyError):
        partial(tmp_path / "file")
    first.write([memoryview(b"1")], 0)
    first.commit(1)
    partial(tmp_path / "file").discard()
    assert names(tmp_path) == ["file"]


def test_keep_and_go_on(tmp_path: Path) -> None:
    target = tmp_path / "file"
    new = partial(target)
    new.write([memoryview(b"12345678")], 0)
    assert new.keep([(0, 5)], None) == 5
    assert kept(target) == 5
    assert names(tmp_path) == ["file.xftp.part"]
    again = partial(target, 5)
    again.write([memoryview(b"abc")], 5)
    again.commit(8)
    assert target.read_bytes() == b"12345abc"


def test_holes_count_only_up_to_the_first(tmp_path: Path) -> None:
    target = tmp_path / "file"
    new = partial(target)
    new.begin_journal()
    assert kept(target) == 0, "a killed receiver's holes never look complete"
    new.write([memoryview(b"x" * 30)], 0)
    assert kept(target) == 0
    assert new.keep([(0, 10), (20, 30)], 40) == 10
    assert kept(target) == 10
    assert names(tmp_path) == ["file.xftp.journal", "file.xftp.part"]


def test_unreadable_journal_means_nothing_is_held(tmp_path: Path) -> None:
    target = tmp_path / "file"
    new = partial(target)
    new.begin_journal()
    new.write([memoryview(b"x" * 30)], 0)
    new.keep([(0, 10), (20, 30)], 40)
    (tmp_path / "file.xftp.journal").write_text('{"version": 1, "held": [[0, 99')
    assert kept(target) == 0


def test_nothing_kept_leaves_nothing(tmp_path: Path) -> None:
    new = partial(tmp_path / "file")
    new.begin_journal()
    assert new.keep([], None) == 0
    assert names(tmp_path) == []


@pytest.mark.parametrize("offset", [1, 10**12])
def test_restart_beyond_the_end(tmp_path: Path, offset: int) -> None:
    with pytest.raises(RestartError):
        partial(tmp_path / "file", offset)
    assert names(tmp_path) == []


def test_restart_in_a_complete_file_goes_through_a_copy(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"0123456789")
    new = partial(target, 4)
    new.write([memoryview(b"xyz")], 4)
    assert target.read_bytes() == b"0123456789"
    new.commit(7)
    assert target.read_bytes() == b"0123xyz"


def test_a_copy_that_fails_leaves_nothing_of_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another transfer had noted must not be said of the bytes of the target."""
    target = tmp_path / "file"
    cut = partial(target)
    cut.note_source("another version", 40)
    cut.begin_journal()
    cut.write([memoryview(b"x" * 30)], 0)
    assert cut.keep([(0, 10), (20, 30)], 40) == 10
    target.write_bytes(b"0123456789")
    real, seen = os.copy_file_range, []

    def fails(source: int, into: int, *_: int) -> int:
        real(source, into, 4, 0, 0)
        seen.append(kept(target))  # as one who is killed here leaves it
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(NoSpaceError):
        patch.setattr(os, "copy_file_range", fails)
        partial(target, 8)
    assert seen == [0]
    assert names(tmp_path) == ["file"]
    assert target.read_bytes() == b"0123456789"


def test_extend(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"0123")
    new = partial(target, extend=True)
    assert new.offset == 4
    new.discard()
    assert target.read_bytes() == b"0123"
    assert names(tmp_path) == ["file"]


def test_target_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(FileError, match="directory"):
        partial(tmp_path / "dir")
    assert names(tmp_path) == ["dir"]


@pytest.mark.parametrize("length", [1, 241, 242, 243, 255])
def test_working_names_fit(length: int) -> None:
    part, journal = working_names("ä" * (length // 2) + "x" * (length % 2))
    assert len(os.fsencode(part)) <= 255
    assert len(os.fsencode(journal)) <= 255


def test_long_names_do_not_share_a_partial_file() -> None:
    assert working_names("a" * 254 + "1") != working_names("a" * 254 + "2")


def test_source_reads_at_any_place(tmp_path: Path) -> None:
    data = content(100_000)
    (tmp_path / "file").write_bytes(data)
    source = SourceFile.open(str(tmp_path / "file"))
    places = [memoryview(bytearray(n)) for n in (10, 8192, 1)]
    source.read(places, 5000, 8203)
    assert b"".join(places) == data[5000:13203]
    if source.read_cached(places, 0, 8203):
        assert b"".join(places) == data[:8203]
    source.close()


def test_source_became_shorter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    source = SourceFile.open(str(path))
    os.truncate(path, 50)
    with pytest.raises(LocalFileError, match="became shorter"):
        source.read([memoryview(bytearray(100))], 0, 100)
    source.close()


@pytest.mark.parametrize("kind", ["directory", "fifo", "missing"])
def test_source_is_no_plain_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(FileError):
        SourceFile.open(str(path))


def test_a_journal_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = partial(tmp_path / "file")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        with pytest.raises(NoSpaceError):
            new.begin_journal()
    assert names(tmp_path) == ["file.xftp.part"]
    new.discard()
