"""One protected connection: what it takes, tells and finds out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from xftp.transport.connection import DataConnection
from xftp.transport.tls import TLS_RECORD_BYTES, Piece, TlsConnection

from .support import HOST
from .tls_support import (
    DATA,
    EITHER_VERSION,
    both_sides,
)


def tcp_pair(buffer_bytes: int = 64 * 1024) -> tuple[socket.socket, socket.socket]:
    """Give two ends of a TCP connection that do not block and hold little."""
    with socket.create_server((HOST, 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other = listener.accept()[0]
    for sock in (one, other):
        sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, buffer_bytes)
    return other, one


@contextlib.asynccontextmanager
async def connection_pair(
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, requires_close_notify: bool = True
) -> AsyncIterator[tuple[TlsConnection, TlsConnection]]:
    """Give the server's and the client's end of one protected connection."""
    server, client = both_sides(version)
    server = server._replace(requires_close_notify=requires_close_notify)
    of_server, of_client = tcp_pair()
    async with asyncio.timeout(10):
        ends = await asyncio.gather(
            TlsConnection.agreed(of_server, 0, server, None),
            TlsConnection.agreed(of_client, 0, client, None),
        )
    try:
        yield ends[0], ends[1]
    finally:
        for end in ends:
            end.reset()


async def until_readable(connection: DataConnection) -> None:
    """Wait until the socket has something."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), there.set)
    try:
        async with asyncio.timeout(10):
            await there.wait()
    finally:
        loop.remove_reader(connection.fileno())


async def receive_all(connection: TlsConnection, room_bytes: int = 50_000) -> bytes:
    """Receive to the end, waiting only where the connection holds nothing itself."""
    data, room = bytearray(), memoryview(bytearray(room_bytes))
    while True:
        received = connection.receive_into(room)
        if received == 0:
            return bytes(data)
        if received is None:
            assert not connection.holds_received
            await until_readable(connection)
        else:
            data += room[:received]


@EITHER_VERSION
async def test_what_is_held_is_told(version: ssl.TLSVersion) -> None:
    async with connection_pair(version) as (server, client):
        assert client.send(memoryview(DATA[:8000])) == 8000
        await until_readable(server)
        assert server.receive(10) == DATA[:10]
        assert server.holds_received, "the event loop cannot know"
        assert server.receive(10_000) == DATA[10:8000]
        assert server.receive() is None
        assert not server.holds_received


@EITHER_VERSION
async def test_receiving_goes_on_after_the_own_end(version: ssl.TLSVersion) -> None:
    async with connection_pair(version) as (server, client):
        client.send(memoryview(DATA[:8000]))
        await until_readable(server)
        assert server.receive(1) == DATA[:1], "the rest was received and waits"
        assert server.finish_sending()
        assert server.receive(99_999) == DATA[1:8000]
        assert await receive_all(client) == b""
        assert client.say(b"1\r\n") == 3
        assert client.finish_sending()
        assert await receive_all(server) == b"1\r\n"


async def test_what_does_not_fit_waits() -> None:
    """A socket that takes no more takes nothing new; what it was to take is not lost."""
    async with connection_pair() as (server, client):
        at = 0
        while sent := client.send(memoryview(DATA)[at : at + 300_000]):
            at += sent
        assert at < len(DATA)
        assert not client.flush()
        assert client.say(b"x") == 0
        assert not client.finish_sending()
        assert client.bytes_sent == at
        assert client.acknowledged() + client.unacknowledged() == at
        reading = asyncio.create_task(receive_all(server))
        async with asyncio.timeout(10):
            while not client.finish_sending():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            while client.unacknowledged():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert client.acknowledged() == at
        assert await reading == DATA[:at]


async def test_no_more_is_acknowledged_than_can_be_read() -> None:
    """Whole TLS records are counted: each can be decrypted once all of it is there."""
    async with connection_pair() as (server, client):
        at, steps, room = 0, set(), memoryview(bytearray(len(DATA)))
        while at < 1_000_000:
            at += client.send(memoryview(DATA)[at : at + 50_000])
            acknowledged = client.acknowledged()
            while server.receive_into(room):
                pass
            assert acknowledged <= server.bytes_received
            steps.add(acknowledged)
        assert len(steps) > 10, "it goes on with the data"


@pytest.mark.parametrize(
    ("sealed_count", "data_count"),
    [
        (0, 1000),
        (100, 1000),
        (100 + 16405, 1000),
        (100 + 16406, 1000 + 16384),
        (100 + 2 * 16406, 1000 + 2 * 16384),
        (100 + 2 * 16406 + 254, 1000 + 2 * 16384),
        (100 + 2 * 16406 + 16405, 1000 + 2 * 16384),
    ],
)
def test_whole_records_of_a_piece_count(sealed_count: int, data_count: int) -> None:
    """Three records, of which the last carries 233 bytes, with 22 bytes around each."""
    data = 2 * TLS_RECORD_BYTES + 233
    sealed = data + 3 * 22
    piece = Piece(100 + sealed, 1000 + data, sealed, data)
    assert piece.data_before(sealed_count) == data_count


class CountingSocket(socket.socket):
    """Counts its calls of send."""

    sends = 0

    def send(self, *arguments: Any) -> int:  # type: ignore[override]
        self.sends += 1
        return super().send(*arguments)


async def test_a_fast_socket_takes_much_at_once() -> None:
    """What is encrypted together grows with what the socket takes."""
    server, client = both_sides()
    of_server, of_client = tcp_pair(buffer_bytes=1 << 22)
    counting = CountingSocket(fileno=of_client.detach())
    counting.setblocking(False)
    async with asyncio.timeout(20):
        far, near = await asyncio.gather(
            TlsConnection.agreed(of_server, 0, server, None),
            TlsConnection.agreed(counting, 0, client, None),
        )
        reading = asyncio.create_task(receive_all(far))
        at = counting.sends = 0
        while not (at == len(DATA) and near.finish_sending()):
            at += near.send(memoryview(DATA)[at:])
            await asyncio.sleep(0)
        assert await reading == DATA
    assert counting.sends < len(DATA) / 30_000
    near.reset()
    far.reset()


@EITHER_VERSION
async def test_a_cut_is_no_end(version: ssl.TLSVersion) -> None:
    async with connection_pair(version) as (server, client):
        client.send(memoryview(DATA[:1000]))
        client.sock.shutdown(socket.SHUT_WR)
        await until_readable(server)
        assert server.receive() == DATA[:1000]
        with pytest.raises(OSError, match="close_notify"):
            await receive_all(server)
        assert not server.at_end


@EITHER_VERSION
async def test_a_cut_may_be_an_end(version: ssl.TLSVersion) -> None:
    async with connection_pair(version, requires_close_notify=False) as (server, client):
        client.send(memoryview(DATA[:1000]))
        client.sock.shutdown(socket.SHUT_WR)
        assert await receive_all(server) == DATA[:1000]
        assert server.at_end


async def test_a_reset_is_a_reset() -> None:
    async with connection_pair() as (server, client):
        client.send(memoryview(DATA[:1000]))
        await until_readable(server)
        client.reset()
        async with asyncio.timeout(10):
            while not server.is_reset():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert server.receive_into(memoryview(bytearray(5000))) == 1000, "what came before counts"
        with pytest.raises(ConnectionResetError):
            server.receive()


async def test_a_flipped_byte_is_found() -> None:
    async with connection_pair() as (server, client):
        client.sock.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises(OSError, match="TLS failed"):
            await receive_all(server)


@EITHER_VERSION
async def test_what_nobody_reads_is_no_reset(version: ssl.TLSVersion) -> None:
    """Closed with something unread in it, a socket would send a reset behind the last data."""
    async with connection_pair(version) as (server, client):
        client.send(memoryview(DATA[:5000]))
        server.say(b"nobody reads this")
        await until_readable(client)
        client.close()
        assert await receive_all(server) == DATA[:5000]
        assert not server.is_reset()
