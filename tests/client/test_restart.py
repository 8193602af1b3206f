"""What is moved again when a transfer with xftpd was cut: what is missing, and nothing else."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import xftp
from xftp.client.options import Options
from xftp.client.session import Session
from xftp.protocol.records import CHUNK_BYTES
from xftp.server import Server
from xftp.transport.kept import working_names
from xftp.transport.partial import PartialFile
from xftp.transport.report import TransferReport

from .scripted import names
from .test_download import Watch

SIZE = 3_000_001
DATA = random.Random(7).randbytes(SIZE)
HELD = [(0, 100_000), (500_000, 1_500_000), (2_000_000, SIZE)]
MISSING = sum(b - a for a, b in [(100_000, 500_000), (1_500_000, 2_000_000)])
ROUNDED = 4 * 8192
"""A record of which a part is held comes again, at both ends of each hole."""
OLD = 1577836800.25
COUNTS = pytest.mark.parametrize("count", [1, 4])
WAYS = pytest.mark.parametrize("direction", ["down", "up"])


class Ends:
    """A file at one end, and what a cut transfer left of it at the other."""

    def __init__(self, direction: str, root: Path, here: Path, server: Server) -> None:
        self.is_down = direction == "down"
        self.source = (root if self.is_down else here) / "a"
        self.target = (here if self.is_down else root) / "b"
        self.source.write_bytes(DATA)
        os.utime(self.source, (OLD, OLD))
        self.notices: list[str] = []
        self.lines: list[str] = []
        self.url = f"ftp://127.0.0.1:{server.server_port}/"

    def leave(self, held: list[tuple[int, int]], content: bytes = DATA) -> None:
        """Leave these ranges of the version that the source has now, and zeros between them."""
        modified, size = self.source.stat().st_mtime, len(content)
        version = (
            f"{size} bytes of {float(int(modified))}" if self.is_down else self._told(modified)
        )
        directory = os.open(self.target.parent, os.O_RDONLY)
        try:
            target = PartialFile.open(directory, self.target.name)
        finally:
            os.close(directory)
        target.note_source(version, size)
        target.begin_journal()
        for start, end in held:
            target.write([memoryview(content)[start:end]], start)
        target.keep(held, size)

    @staticmethod
    def _told(modified: float) -> str:
        assert modified == OLD
        return "20200101000000.250000"

    async def move(self, **choices: Any) -> TransferReport | None:
        """Move the file; choices: `existing` and fields of Options."""
        existing = choices.pop("existing", "fail")
        options = replace(Options(notice=self.notices.append, trace=self.lines.append), **choices)
        async with xftp.connect(self.url, options=options) as session:
            return await self.move_in(session, existing=existing)

    async def move_in(self, session: Session, **choices: Any) -> TransferReport | None:
        if self.is_down:
            return await session.get("a", self.target, **choices)
        return await session.put(self.source, "b", **choices)

    def has_kept(self) -> bool:
        """Tell whether some of the file has arrived: what was only sent is lost with a reset."""
        kept = self.target.with_name(working_names("b")[0])
        return kept.exists() and kept.stat().st_blocks * 512 > 10 * CHUNK_BYTES

    def is_right(self) -> bool:
        """Tell whether the target is the source, and nothing else is left."""
        left = [name for name in names(self.target.parent) if name.startswith("b")]
        return left == ["b"] and self.target.read_bytes() == self.source.read_bytes()

    def said(self, verb: str) -> list[str]:
        """Give the commands of a kind that were sent."""
        return [line[2:] for line in self.lines if line.startswith(f"> {verb}")]


@pytest.fixture
def ends(direction: str, root: Path, tmp_path: Path, server: Server) -> Ends:
    return Ends(direction, root, tmp_path, server)


@WAYS
@COUNTS
@pytest.mark.parametrize("existing", ["fail", "resume", "renew"])
@pytest.mark.parametrize("passive", [True, False])
async def test_only_what_is_missing_moves(
    ends: Ends, count: int, existing: str, passive: bool
) -> None:
    ends.leave(HELD)
    report = await ends.move(connections=count, existing=existing, passive=passive)
    assert report is not None
    assert ends.is_right()
    assert MISSING <= report.bytes <= MISSING + ROUNDED
    assert report.offset == SIZE - MISSING
    assert len(report.connections) == count
    assert sum(each.bytes for each in report.connections) < 1.01 * (MISSING + ROUNDED)
    (said,) = ends.said("PART")
    assert said.endswith(";Ranges=100000-499999,1500000-1999999;")
    assert ends.notices == []


@WAYS
async def test_overwrite_begins_anew(ends: Ends) -> None:
    ends.leave(HELD)
    report = await ends.move(existing="overwrite", connections=4)
    assert report is not None
    assert (report.bytes, report.offset) == (SIZE, 0)
    assert ends.is_right()


@WAYS
@COUNTS
async def test_all_was_there(ends: Ends, count: int) -> None:
    ends.leave([(0, SIZE)])
    report = await ends.move(connections=count)
    assert report is not None
    assert (report.bytes, report.offset) == (0, SIZE)
    assert ends.is_right()


@WAYS
@COUNTS
async def test_only_the_end_is_missing(ends: Ends, count: int) -> None:
    ends.leave([(0, 1_000_000)])
    report = await ends.move(connections=count)
    assert report is not None
    assert report.framed is (count > 1)
    assert SIZE - 1_000_000 <= report.bytes <= SIZE - 1_000_000 + 8192
    assert ends.is_right()


@WAYS
@COUNTS
@pytest.mark.parametrize("change", ["size", "time"])
@pytest.mark.parametrize("existing", ["fail", "resume", "renew"])
async def test_a_changed_source_begins_anew(
    ends: Ends, count: int, change: str, existing: str
) -> None:
    ends.leave(HELD)
    changed = bytes(reversed(DATA)) + (b"!" if change == "size" else b"")
    ends.source.write_bytes(changed)
    os.utime(ends.source, (OLD, OLD + (5 if change == "time" else 0)))
    report = await ends.move(connections=count, existing=existing)
    assert report is not None
    assert (report.bytes, report.offset) == (len(changed), 0)
    assert len(ends.notices) == 1
    assert ends.is_right()


@WAYS
async def test_what_was_kept_is_compared_at_the_end(ends: Ends) -> None:
    """Size and time may be the same although the content is not."""
    ends.leave(HELD, content=DATA[:600_000] + b"?" + DATA[600_001:])
    report = await ends.move(connections=4)
    assert report is not None
    assert report.bytes <= MISSING + ROUNDED
    assert ends.is_right()
    assert [each.partition(": ")[2] for each in ends.notices] == [
        "differs from the original, mending it",
        "mended",
    ]


@WAYS
async def test_many_holes_are_asked_for_in_one_line(ends: Ends) -> None:
    held = [(at, at + 8192) for at in range(0, 364 * 8192, 2 * 8192)]
    ends.leave(held)
    report = await ends.move(connections=4)
    assert report is not None
    assert ends.is_right()
    (said,) = ends.said("PART")
    assert said.count(",") == 99
    assert len(said) < 2000
    asked = sum(
        int(last) - int(first) + 1
        for first, last in (
            each.split("-") for each in said.partition("Ranges=")[2].rstrip(";").split(",")
        )
    )
    assert report.bytes <= asked + 8192


@WAYS
@pytest.mark.parametrize("damage", [b"", b'{"version": 9}', b"rubbish"])
async def test_a_journal_that_cannot_be_read_costs_all_of_it(ends: Ends, damage: bytes) -> None:
    ends.leave(HELD)
    ends.target.with_name(working_names("b")[1]).write_bytes(damage)
    report = await ends.move(connections=4)
    assert report is not None
    assert report.bytes == SIZE
    assert ends.is_right()


@WAYS
@COUNTS
async def test_a_target_that_exists_does_not_get_mixed_in(ends: Ends, count: int) -> None:
    """An overwriting that was cut: the old file stays until the new one is whole."""
    ends.leave(HELD)
    ends.target.write_bytes(b"the old one")
    report = await ends.move(connections=count, existing="renew")
    assert report is not None
    assert report.bytes <= MISSING + ROUNDED
    assert ends.is_right()


@WAYS
async def test_what_changes_at_the_last_moment_begins_anew(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is not what is there when the transfer comes: 554."""
    ends.leave(HELD)
    monkeypatch.setattr("xftp.server.commands.parts.is_time", lambda *_: False)
    reopen = PartialFile.reopen

    def other(directory: int, name: str, size: int, source: str) -> PartialFile:
        return reopen(directory, name, size, f"not {source}")

    if not ends.is_down:
        monkeypatch.setattr(PartialFile, "reopen", other)
    report = await ends.move(connections=4)
    assert report is not None
    assert (report.bytes, report.offset) == (SIZE, 0)
    assert len(ends.notices) == 1
    assert ends.is_right()


@WAYS
@COUNTS
async def test_cut_again_and_again(ends: Ends, count: int) -> None:
    """No attempt loses what the ones before have left, and the last one moves the rest."""
    begun = []
    for _ in range(3):
        watch = Watch()
        options = Options(connections=count, limit_rate=3e6, verify="never")
        async with xftp.connect(ends.url, options=options) as session:
            task = asyncio.create_task(ends.move_in(session, progress=watch))
            async with asyncio.timeout(60):
                while watch.size < 300_000 or not ends.has_kept():
                    watch.changed.clear()
                    await watch.changed.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not ends.target.exists()
        begun += [offset for _, offset in watch.begins]
    report = await ends.move(connections=count)
    assert report is not None
    assert ends.is_right()
    begun.append(report.offset)
    assert begun == sorted(begun)
    assert begun[-1] > 0
    assert report.bytes <= SIZE - report.offset + ROUNDED


async def test_a_synced_download(
    root: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    really = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        really(descriptor)

    ends = Ends("down", root, tmp_path, server)
    monkeypatch.setattr(os, "fsync", note)
    await ends.move(connections=4)
    assert synced == []
    ends.target.unlink()
    await ends.move(connections=4, sync_downloads=True)
    assert synced == [os.stat(path).st_ino for path in (ends.target, tmp_path)]
    assert ends.is_right()
