"""Sender and receiver against each other over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from xftp.errors import LocalFileError, TransferAborted
from xftp.protocol.records import RECORD_BYTES
from xftp.transport.channels import DataChannel
from xftp.transport.connection import DataConnection
from xftp.transport.files import SourceFile
from xftp.transport.outgoing import Outgoing
from xftp.transport.plain import PlainReceiver, PlainSender, StreamSender
from xftp.transport.ratelimit import RateLimit
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender
from xftp.transport.transfer import Transfer

from .support import content, dial, linked, listening, partial, reset

SIZES = [0, 1, 8191, 8192, 8193, 3 * 8192, 1_000_000, 5_000_003]


async def both(sender: Transfer, receiver: Transfer) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(sender.run())
        group.create_task(receiver.run())


def source_of(path: Path, data: bytes) -> SourceFile:
    path.write_bytes(data)
    return SourceFile.open(str(path))


@pytest.mark.parametrize("count", [1, 2, 8, 12])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("size_known", [True, False])
async def test_records(tmp_path: Path, size: int, count: int, size_known: bool) -> None:
    data = content(size)
    passive, active = linked(count)
    source = source_of(tmp_path / "source", data)
    target = partial(tmp_path / "target")
    sender = RecordSender(passive, source)
    receiver = RecordReceiver(active, target, size if size_known else None)
    await both(sender, receiver)
    assert receiver.size == size
    target.commit(receiver.size)
    source.close()
    assert (tmp_path / "target").read_bytes() == data
    report = receiver.report()
    assert (report.bytes, report.framed, len(report.connections)) == (size, True, count)
    assert sum(c.bytes for c in report.connections) == size + 4 * -(-size // 8192)


async def test_records_from_an_offset(tmp_path: Path) -> None:
    data = content(100_000)
    (tmp_path / "target").write_bytes(data[:12_345])
    passive, active = linked(3)
    source = source_of(tmp_path / "source", data)
    target = partial(tmp_path / "target", 12_345)
    receiver = RecordReceiver(active, target, len(data) - 12_345)
    await both(RecordSender(passive, source, 12_345), receiver)
    target.commit(len(data))
    source.close()
    assert (tmp_path / "target").read_bytes() == data


@pytest.mark.parametrize("size", SIZES)
async def test_plain(tmp_path: Path, size: int) -> None:
    data = content(size)
    passive, active = linked(1)
    source = source_of(tmp_path / "source", data)
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece), size)
    await both(PlainSender(passive, source), receiver)
    source.close()
    assert received == data


async def test_stream(tmp_path: Path) -> None:
    pieces = [content(70_000, seed) for seed in range(5)]
    waiting: list[bytes | None] = [None, *pieces, None, b""]
    passive, active = linked(1)
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece))
    await both(StreamSender(passive, lambda: waiting.pop(0)), receiver)
    assert received == b"".join(pieces)


@pytest.mark.parametrize("framed", [True, False])
async def test_limited_rate(tmp_path: Path, framed: bool) -> None:
    """300 KB at 1 MB/s take 0.3 s less the burst, on either side that limits."""
    data = content(300_000)
    for sending in (True, False):
        passive, active = linked(2 if framed else 1)
        source = source_of(tmp_path / "source", data)
        target = partial(tmp_path / "target")
        slow = RateLimit(1e6)
        limits = (slow, None) if sending else (None, slow)
        receiver: Transfer
        sender: Transfer
        if framed:
            sender = RecordSender(passive, source, limit=limits[0])
            receiver = RecordReceiver(active, target, len(data), limit=limits[1])
        else:
            sender = PlainSender(passive, source, limit=limits[0])
            receiver = PlainReceiver(
                active, lambda piece, at, to=target: to.write([piece], at), limit=limits[1]
            )
        started = asyncio.get_running_loop().time()
        await both(sender, receiver)
        elapsed = asyncio.get_running_loop().time() - started
        target.commit(len(data))
        source.close()
        assert (tmp_path / "target").read_bytes() == data
        assert elapsed >= 0.15


async def test_progress_adds_up(tmp_path: Path) -> None:
    data = content(400_000)
    passive, active = linked(4)
    source = source_of(tmp_path / "source", data)
    target = partial(tmp_path / "target")
    told: dict[str, int] = {"sent": 0, "received": 0}

    def counter(side: str) -> Callable[[int, int], None]:
        def count(_: int, size: int) -> None:
            told[side] += size

        return count

    sender = RecordSender(passive, source, progress=counter("sent"))
    receiver = RecordReceiver(active, target, len(data), progress=counter("received"))
    await both(sender, receiver)
    target.discard()
    source.close()
    assert told == {"sent": len(data), "received": len(data)}


async def test_nothing_is_bound_to_a_connection_that_cannot_send(tmp_path: Path) -> None:
    """A peer that reads nothing on one of two connections gets little; the other gets the rest."""
    data = content(20_000_000)
    channel = listening(2, 2)
    stuck, flowing = await dial(channel), await dial(channel)
    source = source_of(tmp_path / "source", data)
    sending = asyncio.create_task(RecordSender(channel, source).run())
    loop = asyncio.get_running_loop()
    received = 0
    async with asyncio.timeout(30):
        while piece := await loop.sock_recv(flowing, 1 << 20):
            received += len(piece)
    assert received > 0.6 * len(data)
    assert not sending.done()
    async with asyncio.timeout(30):
        while piece := await loop.sock_recv(stuck, 1 << 20):
            received += len(piece)
        await sending
    source.close()
    assert received == len(data) + 4 * -(-len(data) // 8192)
    stuck.close()
    flowing.close()


async def test_what_was_sent_before_a_pause_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket took whole records, and nothing for so long that the others were taken back."""
    data = content(2_000_000)
    given_back = asyncio.Event()
    real_send, real_give_back = DataConnection.send, Outgoing.give_back
    room = 9 * RECORD_BYTES  # batches of 1, 2 and 4, and two of the eight of the next

    def send(self: DataConnection, piece: memoryview) -> int:
        nonlocal room
        if not given_back.is_set():
            piece = piece[:room]
        sent = real_send(self, piece) if piece else 0
        room -= sent
        return sent

    def give_back(self: Outgoing, wire_bytes: int) -> None:
        real_give_back(self, wire_bytes)
        assert not self.waiting
        given_back.set()

    monkeypatch.setattr(DataConnection, "send", send)
    monkeypatch.setattr(Outgoing, "give_back", give_back)
    monkeypatch.setattr("xftp.transport.outgoing.STALLED_S", 0.1)
    passive, active = linked(1)
    source = source_of(tmp_path / "source", data)
    target = partial(tmp_path / "target")
    sender = RecordSender(passive, source)
    await both(sender, RecordReceiver(active, target, len(data)))
    source.close()
    target.commit(len(data))
    assert (tmp_path / "target").read_bytes() == data
    assert given_back.is_set()
    assert sender.report().bytes == len(data)


async def test_sent_means_acknowledged(tmp_path: Path) -> None:
    """A peer that goes away with data unread makes the sender fail, small as the file may be."""
    channel: DataChannel = listening(1, 1)
    sock = await dial(channel)
    source = source_of(tmp_path / "source", content(3_000_000))
    sending = asyncio.create_task(RecordSender(channel, source).run())
    loop = asyncio.get_running_loop()
    await loop.sock_recv(sock, 1)
    sock.close()
    with pytest.raises(TransferAborted, match="data connection 0 broke"):
        await asyncio.wait_for(sending, 10)
    source.close()


@pytest.mark.parametrize("framed", [True, False])
async def test_source_that_shrinks_fails(tmp_path: Path, framed: bool) -> None:
    path = tmp_path / "source"
    source = source_of(path, content(500_000))
    path.write_bytes(b"x" * 1000)
    passive, active = linked(2 if framed else 1)
    sender = RecordSender(passive, source) if framed else PlainSender(passive, source)
    swallow = PlainReceiver(active, lambda *_: None)
    receiving = asyncio.create_task(swallow.run())
    with pytest.raises(LocalFileError, match="became shorter"):
        await asyncio.wait_for(sender.run(), 10)
    with pytest.raises(TransferAborted):
        await asyncio.wait_for(receiving, 10)
    source.close()


async def test_cancelled_transfer_resets_its_connections(tmp_path: Path) -> None:
    channel = listening(1, 1)
    sock = await dial(channel)
    source = source_of(tmp_path / "source", content(50_000_000))
    sending = asyncio.create_task(RecordSender(channel, source).run())
    loop = asyncio.get_running_loop()
    await loop.sock_recv(sock, 1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    with pytest.raises(ConnectionResetError):
        while await loop.sock_recv(sock, 1 << 20):
            pass
    sock.close()
    source.close()


async def test_late_connection_that_is_reset_does_not_matter(tmp_path: Path) -> None:
    """What a receiver that has everything does to connections made too late."""
    data = content(30_000)
    channel = listening(3, 3)
    good, late = await dial(channel), await dial(channel)
    await channel.wait_for_first(10)
    reset(late)
    source = source_of(tmp_path / "source", data)
    sending = asyncio.create_task(RecordSender(channel, source).run())
    loop = asyncio.get_running_loop()
    received = 0
    later = await dial(channel)
    async with asyncio.timeout(20):
        while piece := await loop.sock_recv(good, 1 << 20):
            received += len(piece)
        while piece := await loop.sock_recv(later, 1 << 20):
            received += len(piece)
        await sending
    assert received == len(data) + 4 * 4
    source.close()
    good.close()
    later.close()


async def test_every_connection_reset_before_anything_was_sent(tmp_path: Path) -> None:
    channel = listening(2, 2)
    socks = [await dial(channel) for _ in range(2)]
    await channel.wait_for_first(10)
    for sock in socks:
        reset(sock)
    source = source_of(tmp_path / "source", content(30_000))
    with pytest.raises(TransferAborted, match="broke"):
        await asyncio.wait_for(RecordSender(channel, source).run(), 10)
    source.close()
