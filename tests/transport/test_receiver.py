"""The receiver against senders that break the rules, or only stretch them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from xftp.errors import RecordError, TransferAborted
from xftp.transport.disk import Patience
from xftp.transport.plain import PlainReceiver
from xftp.transport.receiver import BUFFERS, RecordReceiver

from .support import content, dial, listening, partial, record, reset, send_all

DATA = content(5 * 8192 + 100)
ALL = range(6)


async def receive(
    path: Path, streams: Sequence[bytes], size: int | None, *, expected: int | None = None
) -> RecordReceiver:
    """Receive `streams`, each over its own connection, into `path`."""
    channel = listening(8, expected)
    target = partial(path)
    receiver = RecordReceiver(channel, target, size)
    running = asyncio.create_task(receiver.run())
    socks = [await dial(channel) for _ in streams]
    try:
        async with asyncio.timeout(20):
            await asyncio.gather(
                *(send_all(s, stream) for s, stream in zip(socks, streams, strict=True))
            )
            await running
    except BaseException:
        target.keep(receiver.held_bytes(), size)
        raise
    target.commit(receiver.size or 0)
    return receiver


async def held(receiver: RecordReceiver, count: int) -> None:
    """Wait until the receiver holds `count` records."""
    while len(receiver.held) < count:  # noqa: ASYNC110 - the receiver has no event for it
        await asyncio.sleep(0.001)


def stream(numbers: Sequence[int]) -> bytes:
    return b"".join(record(number, DATA) for number in numbers)


@pytest.mark.parametrize("size", [len(DATA), None])
@pytest.mark.parametrize(
    "streams",
    [
        [ALL],
        [[0, 2, 4], [1, 3, 5]],
        [[1, 3], [0, 2], [4, 5]],
        [[4, 3, 2, 1, 0], [5]],
        [[0, 1, 2, 3, 4, 5], []],
        [[0, 0, 1], [1, 2, 3], [3, 4, 5]],
    ],
)
async def test_orders(tmp_path: Path, streams: list[list[int]], size: int | None) -> None:
    await receive(tmp_path / "file", [stream(numbers) for numbers in streams], size)
    assert (tmp_path / "file").read_bytes() == DATA


async def test_last_record_repeated_on_one_connection(tmp_path: Path) -> None:
    await receive(tmp_path / "file", [stream([0, 1, 5, 5, 2, 3, 5, 4])], len(DATA))
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize(
    ("streams", "size", "message"),
    [
        ([stream([0, 1, 2, 3, 4])], len(DATA), "1 of 6 records did not arrive"),
        ([stream([0, 1, 2, 3])[:-1], stream([4, 5])], len(DATA), "ended inside record 3"),
        ([stream([0]) + b"\0\0"], len(DATA), "inside a sequence number"),
        ([stream([0, 2, 3, 4, 5])], None, "1 records below record 5 did not arrive"),
        ([stream([0, 1])[:-1], stream([2, 3])], None, "ended inside record 1"),
        ([stream([0])[:-1], stream([1])[:-1]], None, "two data connections ended inside a record"),
        ([b""], len(DATA), "6 of 6 records"),
    ],
)
async def test_incomplete(
    tmp_path: Path, streams: list[bytes], size: int | None, message: str
) -> None:
    with pytest.raises(TransferAborted, match=message):
        await receive(tmp_path / "file", streams, size)
    assert not (tmp_path / "file").exists()


async def test_record_beyond_the_end(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="record 6 lies beyond the end"):
        await receive(
            tmp_path / "file", [stream(ALL[:-1]) + record(6, content(8 * 8192))], len(DATA)
        )


async def test_more_than_announced_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="record 4 lies beyond the end"):
        await receive(tmp_path / "file", [stream([0, 1, 2, 3, 4])], 4 * 8192)


async def test_more_connections_than_announced_are_closed(tmp_path: Path) -> None:
    channel = listening(2, 2)
    target = partial(tmp_path / "file")
    receiver = RecordReceiver(channel, target, len(DATA))
    running = asyncio.create_task(receiver.run())
    socks = [await dial(channel) for _ in range(3)]
    await send_all(socks[0], stream([0, 1, 2]))
    await send_all(socks[1], stream([3, 4, 5]))
    await asyncio.wait_for(running, 10)
    target.commit(len(DATA))
    socks[2].close()
    assert (tmp_path / "file").read_bytes() == DATA


async def test_announced_connection_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    await receive(tmp_path / "file", [stream([0, 1, 2]), stream([3, 4, 5])], len(DATA), expected=8)
    assert (tmp_path / "file").read_bytes() == DATA


async def test_late_connection_carries_what_is_missing(tmp_path: Path) -> None:
    """Without a known size, an announced connection whose SYN was lost is waited for."""
    channel = listening(2, 2)
    target = partial(tmp_path / "file")
    receiver = RecordReceiver(channel, target, None)
    running = asyncio.create_task(receiver.run())
    await send_all(await dial(channel), stream([0, 1, 2]))
    await held(receiver, 3)
    assert not running.done()
    await send_all(await dial(channel), stream([3, 4, 5]))
    await asyncio.wait_for(running, 10)
    target.commit(receiver.size or 0)
    assert (tmp_path / "file").read_bytes() == DATA


async def test_reset_fails_and_keeps_what_came(tmp_path: Path) -> None:
    channel = listening(1)
    target = partial(tmp_path / "file")
    receiver = RecordReceiver(channel, target, len(DATA))
    running = asyncio.create_task(receiver.run())
    sock = await dial(channel)
    await asyncio.get_running_loop().sock_sendall(sock, stream([0, 1, 3]))
    await held(receiver, 3)
    reset(sock)
    with pytest.raises(TransferAborted, match="data connection 0 broke"):
        await asyncio.wait_for(running, 10)
    assert receiver.held_bytes() == [(0, 16384), (24576, 32768)]
    assert target.keep(receiver.held_bytes(), len(DATA)) == 16384


async def test_reset_of_a_connection_that_brought_nothing_does_not_matter(tmp_path: Path) -> None:
    channel = listening(2)
    target = partial(tmp_path / "file")
    running = asyncio.create_task(RecordReceiver(channel, target, len(DATA)).run())
    good, late = await dial(channel), await dial(channel)
    await asyncio.get_running_loop().sock_sendall(good, stream([0, 1, 2]))
    reset(late)
    await send_all(good, stream([3, 4, 5]))
    await asyncio.wait_for(running, 10)
    target.commit(len(DATA))
    assert (tmp_path / "file").read_bytes() == DATA


async def test_stalled_transfer_fails(tmp_path: Path) -> None:
    channel = listening(1)
    sock = await dial(channel)
    receiver = PlainReceiver(channel, lambda *_: None)
    receiver.stall_timeout_s = 0.05
    with pytest.raises(TransferAborted, match="no data moved"):
        await asyncio.wait_for(receiver.run(), 10)
    sock.close()


async def test_plain_shorter_than_announced(tmp_path: Path) -> None:
    channel = listening(1)
    await send_all(await dial(channel), b"12345")
    with pytest.raises(TransferAborted, match="after 5 of 6 bytes"):
        await PlainReceiver(channel, lambda *_: None, 6).run()


class AtOnce(Patience):
    """Never sends a write to a thread, however slow this machine is just now."""

    def allows(self, now: float) -> bool:
        return True


@pytest.mark.parametrize("at_once", [True, False])
async def test_buffers_are_bounded(tmp_path: Path, at_once: bool) -> None:
    """One buffer while writes are done at once, BUFFERS while threads write, then reading waits."""
    big = content(9_000_000)
    numbers = range(-(-len(big) // 8192))
    streams = [b"".join(record(n, big) for n in numbers[start::4]) for start in range(4)]
    channel = listening(4, 4)
    target = partial(tmp_path / "file")
    target.patience = AtOnce("tmpfs") if at_once else Patience("nfs")
    receiver = RecordReceiver(channel, target, len(big))
    running = asyncio.create_task(receiver.run())
    socks = [await dial(channel) for _ in streams]
    async with asyncio.timeout(20):
        await asyncio.gather(*(send_all(s, data) for s, data in zip(socks, streams, strict=True)))
        await running
    target.commit(len(big))
    assert (tmp_path / "file").read_bytes() == big
    assert len(receiver._buffers) <= (1 if at_once else BUFFERS)


async def test_a_record_that_comes_again_while_it_is_written_counts_once(tmp_path: Path) -> None:
    """Two connections bring the whole file at the same time, and threads write slowly."""
    channel = listening(2, 2)
    target = partial(tmp_path / "file")
    target.patience = None
    write = target.write
    both_came = threading.Event()

    def slow(pieces: Sequence[memoryview], offset: int) -> int:
        both_came.wait(10)
        return write(pieces, offset)

    target.write = slow  # type: ignore[method-assign]
    moved: list[int] = []
    receiver = RecordReceiver(
        channel, target, len(DATA), progress=lambda _, size: moved.append(size)
    )
    running = asyncio.create_task(receiver.run())
    async with asyncio.timeout(20):
        for _ in range(2):
            await send_all(await dial(channel), stream(ALL))
        wire = 2 * len(stream(ALL))
        while receiver.arrived_bytes() != wire:  # noqa: ASYNC110 - the receiver has no event for it
            await asyncio.sleep(0.001)
        both_came.set()
        await running
    target.commit(len(DATA))
    assert (tmp_path / "file").read_bytes() == DATA
    assert receiver.file_bytes == sum(moved) == len(DATA)
    assert receiver.report().repeated_bytes == len(ALL) * 8192
