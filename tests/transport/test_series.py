"""Several files as one, read and written in pieces of any kind."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xftp.errors import FileError, VerifyError
from xftp.protocol.series import SeriesFile
from xftp.transport.files import SourceFile
from xftp.transport.kept import find_kept, kept_length
from xftp.transport.partial import PartialFile
from xftp.transport.series import SeriesSource, SeriesTarget, cut

from .support import opened


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def described(contents: list[bytes]) -> list[SeriesFile]:
    return [
        SeriesFile(f"f{number}", len(content), 1e9, "SHA-256", digest(content))
        for number, content in enumerate(contents)
    ]


class Place:
    """A directory to open sources and targets in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)

    def source(self, file: SeriesFile) -> SourceFile:
        return SourceFile.open(str(self.path / file.path))

    def target(self, file: SeriesFile) -> PartialFile:
        directory = os.open(self.path, os.O_RDONLY)
        try:
            return PartialFile.open(directory, file.path)
        finally:
            os.close(directory)

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.iterdir()}


@given(pieces=st.lists(st.binary(max_size=4), max_size=5), count=st.integers(0, 20))
def test_cut(pieces: list[bytes], count: int) -> None:
    first, rest = cut([memoryview(piece) for piece in pieces], count)
    whole = b"".join(pieces)
    assert b"".join(first) == whole[:count]
    assert b"".join(rest) == whole[count:]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(st.binary(max_size=9), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    step=st.integers(1, 7),
)
def test_there_in_any_order(
    tmp_path: Path, contents: list[bytes], order: st.DataObject, step: int
) -> None:
    here, there = Place(tmp_path / "here"), Place(tmp_path / "there")
    for path in (*here.path.iterdir(), *there.path.iterdir()):
        path.unlink()
    files = described(contents)
    for file, content in zip(files, contents, strict=True):
        (here.path / file.path).write_bytes(content)
    source = SeriesSource(files, here.source)
    completed: list[int] = []
    target = SeriesTarget(files, there.target, completed.append)
    target.begin_journal()
    starts = list(range(0, source.size, step))
    order.shuffle(starts)  # type: ignore[attr-defined]
    for start in starts:
        size = min(step, source.size - start)
        places = [memoryview(bytearray(1)) for _ in range(size)]
        source.read(places, start, size)
        assert target.write(places, start) == size
    target.finish()
    assert target.failures == {}
    assert sorted(completed) == list(range(len(contents)))
    assert there.contents() == {f"f{number}": each for number, each in enumerate(contents)}
    assert {path.stat().st_mtime for path in there.path.iterdir()} == {1e9}


def test_what_did_not_arrive_gets_no_name(tmp_path: Path) -> None:
    there = Place(tmp_path)
    target = SeriesTarget(described([b"first", b"second", b"third"]), there.target)
    target.begin_journal()
    target.write([memoryview(b"firstseco")], 0)
    target.finish()
    assert there.contents() == {"f0": b"first"}
    assert list(target.failures) == [1, 2]


def test_what_is_large_is_kept(tmp_path: Path) -> None:
    there = Place(tmp_path)
    target = SeriesTarget([SeriesFile("large", 2 << 20)], there.target)
    target.write([memoryview(b"x" * 5000)], 0)
    target.write([memoryview(b"y")], 6000)
    target.finish()
    assert sorted(there.contents()) == ["large.xftp.journal", "large.xftp.part"]
    with opened(tmp_path) as directory:
        kept = find_kept(directory, "large")
    assert kept is not None
    assert kept.held == ((0, 5000), (6000, 6001))


def test_holes_never_look_complete_while_a_series_moves(tmp_path: Path) -> None:
    """A writer that is killed leaves what is there now."""
    target = SeriesTarget([SeriesFile("large", 2 << 20)], Place(tmp_path).target)
    target.write([memoryview(b"y")], (2 << 20) - 1)
    assert (tmp_path / "large.xftp.part").stat().st_size == 2 << 20
    with opened(tmp_path) as directory:
        assert kept_length(directory, "large") == 0
    target.finish()


def test_files_are_synced_each_and_their_names_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    really = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    there = Place(tmp_path)
    target = SeriesTarget(described([b"one", b"two", b"six"]), there.target, sync=True)
    target.write([memoryview(b"onetwosix")], 0)
    files = [os.stat(tmp_path / f"f{number}").st_ino for number in range(3)]
    assert synced == files
    target.finish()
    assert synced == [*files, os.stat(tmp_path).st_ino]
    assert target.failures == {}


def test_names_that_cannot_be_synced_are_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.fsync

    def fails(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    target = SeriesTarget(described([b"one", b"two"]), Place(tmp_path).target, sync=True)
    target.write([memoryview(b"onetwo")], 0)
    target.finish()
    assert [str(target.failures[index]) for index in (0, 1)] == [
        "a directory: Input/output error"
    ] * 2


def test_what_differs_gets_no_name_and_the_others_go_on(tmp_path: Path) -> None:
    there = Place(tmp_path)
    target = SeriesTarget(described([b"one", b"two", b"six"]), there.target)
    target.write([memoryview(b"onetwXsix")], 0)
    target.finish()
    assert there.contents() == {"f0": b"one", "f2": b"six"}
    assert isinstance(target.failures[1], VerifyError)


def test_what_cannot_be_opened_does_not_stop_the_others(tmp_path: Path) -> None:
    there = Place(tmp_path)
    (tmp_path / "f0").mkdir()
    target = SeriesTarget(described([b"one", b"two"]), there.target)
    target.write([memoryview(b"onetwo")], 0)
    target.finish()
    assert isinstance(target.failures.pop(0), FileError)
    assert target.failures == {}
    assert (tmp_path / "f1").read_bytes() == b"two"


@pytest.mark.parametrize("has_digest", [True, False])
def test_a_source_that_has_become_shorter(tmp_path: Path, has_digest: bool) -> None:
    """Zeros that a hash gives away, or an error; never a wrong file without a sign."""
    (tmp_path / "f0").write_bytes(b"ab")
    told = digest(b"abcd") if has_digest else None
    files = [SeriesFile("f0", 4, None, "SHA-256" if has_digest else None, told)]
    source = SeriesSource(files, Place(tmp_path).source)
    place = memoryview(bytearray(4))
    if has_digest:
        source.read([place], 0, 4)
        assert digest(bytes(place)) != told
    else:
        with pytest.raises(FileError):
            source.read([place], 0, 4)


@pytest.mark.parametrize("has_digest", [True, False])
def test_a_file_that_was_written_since(tmp_path: Path, has_digest: bool) -> None:
    """Without a hash nobody else would see it."""
    place = Place(tmp_path / "here")
    (file,) = described([b"abc"])
    (place.path / file.path).write_bytes(b"abd")
    told = file if has_digest else SeriesFile(file.path, file.size, file.modified)
    source, room = SeriesSource([told], place.source), bytearray(3)
    if has_digest:
        source.read([memoryview(room)], 0, 3)
        assert room == b"abd"
        return
    with pytest.raises(FileError, match="was changed while it was sent"):
        source.read([memoryview(room)], 0, 3)
