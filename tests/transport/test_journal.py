"""What the journal says is on the disk, whatever happens and whenever."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xftp.errors import FileError
from xftp.protocol.recordset import RecordSet
from xftp.transport import journal
from xftp.transport.journal import MAX_RANGES, Journal
from xftp.transport.kept import Kept, find_kept, is_working_name, working_names
from xftp.transport.partial import PartialFile

from .support import opened, partial

SIZE = 64


def noted(path: Path) -> Journal | None:
    with opened(path.parent) as directory:
        return journal.read(directory, working_names(path.name)[1])


def kept(path: Path) -> Kept | None:
    with opened(path.parent) as directory:
        return find_kept(directory, path.name)


class Disk:
    """Knows which bytes of a partial file a power cut would leave."""

    def __init__(self, target: PartialFile) -> None:
        self.target = target
        self.written, self.safe = RecordSet(), RecordSet()
        self.fails = False
        self._really = os.fdatasync

    def write(self, start: int, end: int) -> None:
        self.target.write([memoryview(b"x" * (end - start))], start)
        self.written.add(start, end)

    def sync(self, descriptor: int) -> None:
        if descriptor != self.target.fileno():
            self._really(descriptor)
        elif self.fails:  # Linux tells once, and drops what it could not write
            self.fails, self.written = False, RecordSet(self.safe.ranges())
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        else:
            self.safe = RecordSet(self.written.ranges())

    def holds(self, ranges: journal.Ranges) -> bool:
        return all(not list(self.safe.missing(*each)) for each in ranges)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, SIZE - 1), st.integers(1, 20)),
        st.tuples(st.just("checkpoint"), st.just(0), st.just(0)),
        st.tuples(st.just("fail"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, keeps=st.booleans())
def test_what_is_noted_survives_a_power_cut(
    tmp_path: Path, steps: list[tuple[str, int, int]], keeps: bool
) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.note_source("an original", SIZE)
    disk = Disk(target)
    with patch.object(os, "fdatasync", disk.sync):
        target.begin_journal()
        for step, start, length in steps:
            if step == "write":
                disk.write(start, min(start + length, SIZE))
            else:
                disk.fails = step == "fail"
                try:
                    target.checkpoint(list(disk.written.ranges()), SIZE)
                except FileError:
                    break
            found = noted(path)
            assert found is not None
            assert disk.holds(found.held)
        if keeps:
            target.keep(list(disk.written.ranges()), SIZE)
            found = noted(path)
            assert (found is None) == (not disk.safe)
            assert found is None or (disk.holds(found.held) and found.source == "an original")
    if not keeps:
        target.discard()
    elif kept(path) is not None:
        with opened(tmp_path) as directory:
            PartialFile.reopen(directory, "file", SIZE, "an original").discard()
    assert os.listdir(tmp_path) == []


def test_a_file_that_grows_counts_in_the_same_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.begin_growing()
    target.write([memoryview(b"x" * 30)], 0)
    target.checkpoint([(0, 30)], None)
    target.write([memoryview(b"x" * 10)], 30)
    assert kept(path) == Kept(((0, 40),))
    monkeypatch.setattr(journal, "boot_id", lambda: "another boot")
    assert kept(path) == Kept(((0, 30),))
    monkeypatch.setattr(journal, "boot_id", lambda: None)
    assert kept(path) == Kept(((0, 30),))
    target.discard()


def test_after_a_failed_sync_nothing_newer_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    target = partial(path)
    disk = Disk(target)
    with patch.object(os, "fdatasync", disk.sync):
        target.begin_growing()
        disk.write(0, 20)
        target.checkpoint([(0, 20)], None)
        disk.write(20, 40)
        disk.fails = True
        with pytest.raises(FileError, match="file: Input/output error"):
            target.checkpoint([(0, 40)], None)
        assert kept(path) == Kept(((0, 20),))
        with pytest.raises(FileError, match="failed before"):
            target.checkpoint([(0, 40)], None)
        assert target.keep([(0, 40)], None) == 20
    assert kept(path) == Kept(((0, 20),))
    assert working_path(path).stat().st_size == 20


def test_a_commit_that_cannot_be_synced_is_none(tmp_path: Path) -> None:
    target = partial(tmp_path / "file")

    def fails(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    target.begin_growing()
    target.write([memoryview(b"x" * 30)], 0)
    with patch.object(os, "fsync", fails), pytest.raises(FileError):
        target.commit(30, sync=True)
    assert not (tmp_path / "file").exists()
    assert kept(tmp_path / "file") == Kept(())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_checkpoint_that_cannot_be_noted_costs_nothing_but_itself(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.begin_journal()
    target.write([memoryview(b"x" * 30)], 0)
    target.checkpoint([(0, 10)], 40)
    with patch.object(os, "rename", failing(number)):
        target.checkpoint([(0, 30)], 40)
        target.checkpoint([(0, 30)], 40)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert kept(path) == Kept(((0, 10),), 40)
    target.write([memoryview(b"y" * 10)], 30)
    target.commit(40)
    assert os.listdir(tmp_path) == ["file"]


def test_on_a_full_disk_the_last_bytes_make_room_for_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.begin_journal()
    end = 300_000
    target.write([memoryview(b"x" * 100_000)], end - 100_000)
    really = os.rename

    def full(*arguments: object, **options: object) -> None:
        if working_path(path).stat().st_size == end:
            failing(errno.ENOSPC)()
        really(*arguments, **options)  # type: ignore[arg-type]

    with patch.object(os, "rename", full):
        target.keep([(end - 100_000, end)], 400_000)
    assert kept(path) == Kept(((end - 100_000, end - 65536),), 400_000)


def test_holes_that_cannot_be_noted_are_not_kept(tmp_path: Path) -> None:
    target = partial(tmp_path / "file")
    target.write([memoryview(b"x")], 100)
    with patch.object(os, "rename", failing(errno.EIO)), pytest.raises(FileError):
        target.keep([(100, 101)], None)
    assert os.listdir(tmp_path) == []


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def working_path(path: Path) -> Path:
    return path.with_name(working_names(path.name)[0])


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"version": 1, "held": [[0, 30]], "size": null, "source": null}',
        b'{"version": 3, "held": [[0, 30]], "size": 40, "source": null, "boot": null}',
        b'{"version": 2, "held": [[0, 99',
        b'{"version": 2, "held": [[20, 30], [0, 10]], "size": 40, "source": null, "boot": null}',
        b'{"version": 2, "held": [[-5, 30]], "size": 40, "source": null, "boot": null}',
        b'{"version": 2, "held": [[0, 30, 40]], "size": 40, "source": null, "boot": null}',
        b'{"version": 2, "held": [[0, Infinity]], "size": 40, "source": null, "boot": null}',
        b'{"version": 2, "held": 5, "size": 40, "source": null, "boot": null}',
        b"[" * 100_000,
        b'{"version": 2, "held": [' + b"[0, 1], " * 200_000,
    ],
)
def test_a_damaged_journal_says_that_nothing_is_held(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.begin_journal()
    target.write([memoryview(b"x" * 30)], 0)
    target.keep([(0, 10), (20, 30)], 40)
    path.with_name(working_names("file")[1]).write_bytes(damage)
    assert kept(path) == Kept(())
    with opened(tmp_path) as directory, pytest.raises(FileError):
        PartialFile.reopen(directory, "file", 40, "an original")
    partial(path).discard()
    assert os.listdir(tmp_path) == []


def test_a_journal_is_bounded(tmp_path: Path) -> None:
    ranges = tuple((at, at + 1 + at % 3) for at in range(0, 10 * 2 * MAX_RANGES, 10))
    with opened(tmp_path) as directory:
        journal.write(directory, "journal", Journal(ranges, 10**9))
        found = journal.read(directory, "journal")
    assert found is not None
    assert len(found.held) == MAX_RANGES
    assert set(found.held) <= set(ranges)
    assert min(end - start for start, end in found.held) == 2
    assert (tmp_path / "journal").stat().st_size < journal.MAX_BYTES


def test_a_journal_never_says_more_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "file"
    target = partial(path)
    target.begin_journal()
    target.write([memoryview(b"x" * 30)], 0)
    target.keep([(0, 10), (20, 30)], 40)
    os.truncate(working_path(path), 25)
    assert kept(path) == Kept(((0, 10), (20, 25)), 40)
    os.truncate(working_path(path), 15)
    assert kept(path) == Kept(((0, 10),), 40)


def test_what_a_killed_writer_left_of_a_journal_goes_with_it(tmp_path: Path) -> None:
    leftover = tmp_path / (working_names("file")[1] + "~")
    leftover.write_text("{")
    assert is_working_name(leftover.name)
    target = partial(tmp_path / "file")
    target.write([memoryview(b"x")], 0)
    target.commit(1)
    assert os.listdir(tmp_path) == ["file"]


def test_only_the_same_version_is_reopened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"the old one")
    target = partial(path)
    target.note_source("an original", 40)
    target.begin_journal()
    target.write([memoryview(b"x" * 30)], 0)
    target.keep([(0, 10), (20, 30)], 40)
    found = json.loads(path.with_name(working_names("file")[1]).read_text())
    assert (found["held"], found["size"]) == ([[0, 10], [20, 30]], 40)
    with opened(tmp_path) as directory:
        for size, source in ((41, "an original"), (40, "another")):
            with pytest.raises(FileError, match="not of this version"):
                PartialFile.reopen(directory, "file", size, source)
        again = PartialFile.reopen(directory, "file", 40, "an original")
    assert again.held == ((0, 10), (20, 30))
    again.begin_journal()
    assert kept(path) == Kept(((0, 10), (20, 30)), 40, "an original")
    again.write([memoryview(b"y" * 10)], 10)
    again.write([memoryview(b"z" * 10)], 30)
    assert path.read_bytes() == b"the old one"
    again.commit(40)
    assert path.read_bytes() == b"x" * 10 + b"y" * 10 + b"x" * 10 + b"z" * 10
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_is_reopened_where_nothing_is(tmp_path: Path) -> None:
    with opened(tmp_path) as directory, pytest.raises(FileError):
        PartialFile.reopen(directory, "file", 40, "an original")
    assert os.listdir(tmp_path) == []
