"""Data connections within TLS: the same transfers, and what only TLS can go wrong at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tls import client_context
from xftp.errors import DataConnectionError, TransferAborted
from xftp.transport import channels, handshakes
from xftp.transport.channels import ActiveChannel, PassiveChannel
from xftp.transport.connection import DataConnection
from xftp.transport.files import SourceFile
from xftp.transport.plain import PlainReceiver, PlainSender, StreamSender
from xftp.transport.ratelimit import RateLimit
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender
from xftp.transport.tls import TLS_RECORD_BYTES, DataTls, Piece, TlsConnection
from xftp.transport.transfer import Transfer

from .proxy import Pair, Proxy, proxied
from .support import HOST, content, dial, partial
from .test_lasting import COUNTS, ROLES, SIZE, descriptors, nothing_is_left, transfer
from .tls_support import (
    VERSIONS,
    both_sides,
    linked_by_tls,
    server_context,
    session_between,
    without_session,
)

EITHER_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=["tls1.2", "tls1.3"])
DATA = content(3_000_003)


async def both(sender: Transfer, receiver: Transfer) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(sender.run())
        group.create_task(receiver.run())


def source_of(path: Path, data: bytes) -> SourceFile:
    path.write_bytes(data)
    return SourceFile.open(str(path))


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
    server = replace(server, requires_close_notify=requires_close_notify)
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


# -- transfers ---------------------------------------------------------------------------------


@EITHER_VERSION
@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("size", [0, 1, 8193, len(DATA)])
@pytest.mark.parametrize("server_sends", [True, False], ids=["download", "upload"])
@pytest.mark.parametrize("server_dials", [True, False], ids=["active", "passive"])
async def test_records(
    tmp_path: Path,
    version: ssl.TLSVersion,
    count: int,
    size: int,
    server_sends: bool,
    server_dials: bool,
) -> None:
    source = source_of(tmp_path / "source", DATA[:size])
    target = partial(tmp_path / "target")
    passive, active = linked_by_tls(count, *both_sides(version), server_dials=server_dials)
    sends, receives = (passive, active) if server_sends != server_dials else (active, passive)
    sender, receiver = RecordSender(sends, source), RecordReceiver(receives, target, size)
    await both(sender, receiver)
    target.commit(receiver.size)
    source.close()
    assert (tmp_path / "target").read_bytes() == DATA[:size]
    for report in (sender.report(), receiver.report()):
        assert sum(each.bytes for each in report.connections) == size + 4 * -(-size // 8192)
        for each in report.connections:
            assert each.socket["tls"] == ("TLSv1.2" if version is VERSIONS[0] else "TLSv1.3")
            assert "GCM" in str(each.socket["tls_cipher"])


@EITHER_VERSION
@pytest.mark.parametrize("size", [0, 1, TLS_RECORD_BYTES, len(DATA)])
async def test_plain(tmp_path: Path, version: ssl.TLSVersion, size: int) -> None:
    source = source_of(tmp_path / "source", DATA[:size])
    passive, active = linked_by_tls(1, *both_sides(version))
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece), size)
    await both(PlainSender(passive, source), receiver)
    source.close()
    assert received == DATA[:size]


async def test_stream() -> None:
    passive, active = linked_by_tls(1, *both_sides())
    pieces = [DATA[at : at + 99_999] for at in range(0, len(DATA), 99_999)]
    pieces_and_pauses = [each for piece in pieces for each in (piece, None)]
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece))
    await both(
        StreamSender(passive, lambda: pieces_and_pauses.pop(0) if pieces_and_pauses else b""),
        receiver,
    )
    assert received == DATA


@pytest.mark.parametrize("sender_is_limited", [True, False])
@pytest.mark.parametrize("plain", [True, False])
async def test_with_a_limited_rate(tmp_path: Path, sender_is_limited: bool, plain: bool) -> None:
    """Pieces that are smaller than a TLS record leave something behind that was decrypted."""
    data, limit = DATA[:100_000], RateLimit(400_000)
    limits = (limit, None) if sender_is_limited else (None, limit)
    source, received = source_of(tmp_path / "source", data), bytearray()
    passive, active = linked_by_tls(1 if plain else 3, *both_sides())
    target = partial(tmp_path / "target")
    if plain:
        await both(
            PlainSender(passive, source, limit=limits[0]),
            PlainReceiver(active, lambda piece, _: received.extend(piece), limit=limits[1]),
        )
        assert received == data
        target.discard()
    else:
        await both(
            RecordSender(passive, source, limit=limits[0]),
            RecordReceiver(active, target, len(data), limit=limits[1]),
        )
        target.commit(len(data))
        assert (tmp_path / "target").read_bytes() == data
    source.close()


@COUNTS
@ROLES
async def test_lost_connections_are_replaced(
    tmp_path: Path, count: int, sender_dials: bool, server_sends: bool
) -> None:
    def fault(_: Proxy, pair: Pair) -> None:
        if pair.number == 0 and pair.moved > SIZE / count / 4:
            pair.reset()

    before = descriptors()
    ended = await transfer(
        tmp_path,
        count,
        fault,
        sender_dials=sender_dials,
        server_sends=server_sends,
        tls=both_sides(),
    )
    assert ended.sender.lost_connections >= 1
    assert len(ended.proxy.pairs) > count, "it is replaced"
    await nothing_is_left(before)


async def test_silent_connections_are_replaced(tmp_path: Path) -> None:
    def fault(proxy: Proxy, pair: Pair) -> None:
        if pair.moved > 100_000 and all(each.flowing.is_set() for each in proxy.pairs):
            pair.freeze()

    ended = await transfer(
        tmp_path, 4, fault, sender_dials=False, server_sends=True, tls=both_sides()
    )
    assert ended.sender.report().repeated_bytes > 0


async def test_the_handshakes_run_at_once() -> None:
    """None is answered before all have begun, which would be never if one waited for another."""
    server, client = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=8, limit=8, tls=server)

    def hold(proxy: Proxy, pair: Pair) -> None:
        all_began = len(proxy.pairs) == 8 and all(each.moved for each in proxy.pairs)
        for each in proxy.pairs:
            if all_began:
                each.thaw()
        if not all_began:
            pair.freeze()

    async with proxied(passive.endpoint, lambda pair: hold(proxy, pair)) as proxy:
        active = ActiveChannel([proxy.endpoint] * 8, tls=client)
        async with asyncio.timeout(20):
            while len(active.connections) < 8:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        active.close()
        passive.close()


# -- one connection ----------------------------------------------------------------------------


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


# -- whose connection it is --------------------------------------------------------------------


async def refused(passive: PassiveChannel, client: DataTls | None) -> None:
    """Dial, and see that it comes to nothing."""
    sock = await dial(passive)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(10):
            if client is not None:
                await TlsConnection.agreed(sock, 0, client, None)
            else:
                await loop.sock_sendall(sock, b"GET / HTTP/1.1\r\n\r\n")
            while await loop.sock_recv(sock, 1000):
                pass
    except OSError:
        pass
    finally:
        sock.close()


@EITHER_VERSION
async def test_a_stranger_takes_no_place(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Only what resumes the session of the control connection is let in."""
    server, client = both_sides(version)
    other_session = session_between(server_context(version), client.context)
    passive = PassiveChannel.listen(HOST, HOST, expected=1, limit=1, tls=server)
    await refused(passive, without_session(client))
    await refused(passive, replace(client, session=lambda: other_session))
    await refused(passive, None)
    idle = [await dial(passive) for _ in range(handshakes.SPARE_HANDSHAKES)]
    assert not passive.connections
    active = ActiveChannel([passive.endpoint], tls=client)
    source, received = source_of(tmp_path / "source", DATA), bytearray()
    await both(
        PlainSender(passive, source),
        PlainReceiver(active, lambda piece, _: received.extend(piece)),
    )
    assert received == DATA
    source.close()
    for sock in idle:
        sock.close()


@EITHER_VERSION
async def test_no_session_is_needed_if_so_configured(version: ssl.TLSVersion) -> None:
    server, client = both_sides(version)
    server = replace(server, requires_resumed=False)
    passive, active = linked_by_tls(2, server, without_session(client))
    async with asyncio.timeout(10):
        while len(passive.connections) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    active.close()
    passive.close()


async def test_the_dialling_server_looks_too() -> None:
    server, client = both_sides()
    _, active = linked_by_tls(1, server, without_session(client), server_dials=True)
    with pytest.raises(DataConnectionError, match="did not resume the TLS session"):
        await active.wait_for_first()
    active.close()
    _.close()


async def test_refused_ones_end_the_wait_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "REFUSED_S", 0.1)
    server, client = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=1, limit=1, tls=server)
    await refused(passive, without_session(client))
    with pytest.raises(DataConnectionError, match="did not resume the TLS session"):
        await passive.wait_for_first(30)
    passive.close()


async def test_handshakes_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end by time, or when there are too many: the oldest first."""
    monkeypatch.setattr(handshakes, "HANDSHAKE_TIMEOUT_S", 0.3)
    before = descriptors()
    server, _ = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=1, limit=1, tls=server)
    many = [await dial(passive) for _ in range(30)]
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        for sock in many:
            with contextlib.suppress(ConnectionResetError):
                assert await loop.sock_recv(sock, 1) == b""
            sock.close()
    passive.close()
    await nothing_is_left(before)


async def test_failing_handshakes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_FAILURES", 3)
    server, client = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=1, limit=1, tls=server)
    for _ in range(4):
        await refused(passive, without_session(client))
    assert len(passive.failures) == 1, "no list grows"
    await refused(passive, client)
    assert not passive.connections
    passive.close()


async def test_a_certificate_that_nobody_knows() -> None:
    server, _ = both_sides()
    stranger = DataTls(ssl.create_default_context(), server_side=False, server_hostname=HOST)
    passive, active = linked_by_tls(1, server, stranger)
    with pytest.raises(DataConnectionError, match="the certificate cannot be trusted: "):
        await active.wait_for_first()
    active.close()
    passive.close()


async def test_a_cut_upload_fails(tmp_path: Path) -> None:
    """The number of bytes is not known, so that only TLS can tell."""
    server, client = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=1, limit=1, tls=server)
    sock = await dial(passive)
    uploader = await TlsConnection.agreed(sock, 0, client, None)
    uploader.send(memoryview(DATA[:4000]))
    sock.close()
    with pytest.raises(TransferAborted, match="close_notify"):
        await PlainReceiver(passive, lambda *_: None).run()


async def test_ordinary_tls_clients_are_understood() -> None:
    """Python's own streams at the other end."""
    server, _ = both_sides()
    passive = PassiveChannel.listen(
        HOST, HOST, expected=1, limit=1, tls=replace(server, requires_resumed=False)
    )
    received = bytearray()
    receiving = asyncio.create_task(
        PlainReceiver(passive, lambda piece, _: received.extend(piece)).run()
    )
    _, writer = await asyncio.open_connection(HOST, passive.endpoint.port, ssl=client_context())
    writer.write(DATA)
    async with asyncio.timeout(20):
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await receiving
    assert received == DATA
