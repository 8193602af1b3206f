"""Sender and receiver of the records that an earlier transfer left out."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from xftp.errors import TransferAborted
from xftp.protocol.parts import missing_ranges, records_of
from xftp.protocol.records import CHUNK_BYTES, record_count
from xftp.transport.active import ActiveChannel
from xftp.transport.arrivals import Arrivals
from xftp.transport.files import SourceFile
from xftp.transport.partial import PartialFile
from xftp.transport.passive import PassiveChannel
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender

from .support import content, linked, opened, partial

SIZE = 2_000_003
DATA = content(SIZE)
VERSION = "an original"

Ranges = list[tuple[int, int]]


def torn(path: Path, held: Ranges) -> PartialFile:
    """Leave `held` of a cut transfer, with rubbish in the holes, and open that again."""
    target = partial(path)
    target.note_source(VERSION, SIZE)
    target.begin_journal()
    target.write([memoryview(b"?" * SIZE)], 0)
    for start, end in held:
        target.write([memoryview(DATA)[start:end]], start)
    target.keep(held, SIZE)
    with opened(path.parent) as directory:
        return PartialFile.reopen(directory, path.name, SIZE, VERSION)


def random_ranges(seed: int) -> Ranges:
    chance = random.Random(seed)
    bounds = sorted(chance.sample(range(SIZE + 1), 2 * chance.randint(1, 12)))
    return list(zip(bounds[::2], bounds[1::2], strict=True))


async def fill(
    path: Path, held: Ranges, channels: tuple[PassiveChannel, ActiveChannel]
) -> tuple[RecordSender, RecordReceiver]:
    """Send what is missing beside `held`, and give the file its name."""
    original = path.with_name("original")
    original.write_bytes(DATA)
    target = torn(path, held)
    source = SourceFile.open(str(original))
    try:
        receiver = RecordReceiver(channels[1], target, SIZE)
        sender = RecordSender(
            channels[0], source, only=records_of(missing_ranges(target.held, SIZE))
        )
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(sender.run())
            group.create_task(receiver.run())
        target.commit(SIZE)
    finally:
        source.close()
        for channel in channels:
            channel.close()
    return sender, receiver


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize(
    "held",
    [
        [(0, 1)],
        [(SIZE - 1, SIZE)],
        [(0, SIZE - 1)],
        [(8191, 8193), (16384, 24576)],
        [(0, 8192), (SIZE // 8192 * 8192, SIZE)],
        *(random_ranges(seed) for seed in range(4)),
    ],
)
async def test_what_is_missing_makes_the_file(tmp_path: Path, held: Ranges, replaces: bool) -> None:
    channels = linked(3)
    for channel in channels:
        channel.replaces = replaces
    sender, receiver = await fill(tmp_path / "file", held, channels)
    assert (tmp_path / "file").read_bytes() == DATA
    whole = {
        number
        for number in range(record_count(SIZE))
        for start, end in held
        if start <= number * CHUNK_BYTES and min((number + 1) * CHUNK_BYTES, SIZE) <= end
    }
    last = SIZE - (record_count(SIZE) - 1) * CHUNK_BYTES
    there = sum(last if n == record_count(SIZE) - 1 else CHUNK_BYTES for n in whole)
    assert receiver.file_bytes == sender.to_send == SIZE - there


async def test_what_was_torn_again_keeps_both(tmp_path: Path) -> None:
    """Ranges of an odd beginning stay as they are, records are added."""
    target = torn(tmp_path / "file", [(5, 20_000), (30_000, 40_000)])
    passive, active = linked(1)
    receiver = RecordReceiver(active, target, SIZE)
    running = asyncio.create_task(receiver.run())
    original = tmp_path / "original"
    original.write_bytes(DATA)
    source = SourceFile.open(str(original))
    sender = RecordSender(passive, source, only=[(0, 1), (10, 12)])
    sending = asyncio.create_task(sender.run())
    with pytest.raises(TransferAborted, match="records did not arrive"):
        await asyncio.wait_for(running, 30)
    await asyncio.wait([sending])  # the receiver's reset may be its end
    sending.exception()
    source.close()
    held = receiver.held_bytes()
    assert held == [(0, 20_000), (30_000, 40_000), (81_920, 98_304)]
    target.keep(held, SIZE)
    with opened(tmp_path) as directory:
        again = PartialFile.reopen(directory, "file", SIZE, VERSION)
    assert list(again.held) == held
    again.discard()


async def test_nothing_is_missing(tmp_path: Path) -> None:
    channels = linked(2)
    sender, receiver = await fill(tmp_path / "file", [(0, SIZE)], channels)
    assert sender.to_send == receiver.file_bytes == 0
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize(
    ("held", "records"),
    [
        ([], []),
        ([(0, 8191)], []),
        ([(0, 8192)], [(0, 1)]),
        ([(1, 16384)], [(1, 2)]),
        ([(8192, 20_000)], [(1, 3)]),  # the last record is short
        ([(16_384, 20_000)], [(2, 3)]),
        ([(0, 8192), (16_385, 20_000)], [(0, 1)]),
    ],
)
def test_a_record_counts_if_all_of_it_is_held(held: Ranges, records: Ranges) -> None:
    arrivals = Arrivals(20_000, 0, held)
    assert list(arrivals.held.ranges()) == records
    assert arrivals.byte_ranges() == held
