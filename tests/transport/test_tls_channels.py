"""Whose protected connections are taken, and what comes of those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tls import client_context
from xftp.errors import DataConnectionError, TransferAborted
from xftp.protocol.addresses import Endpoint
from xftp.transport import handshakes
from xftp.transport.active import MOST_OPENINGS, ActiveChannel
from xftp.transport.connection import reset_socket
from xftp.transport.passive import PassiveChannel
from xftp.transport.plain import PlainReceiver, PlainSender
from xftp.transport.tls import DataTls, TlsConnection

from .support import HOST, dial
from .test_lasting import descriptors, nothing_is_left
from .tls_support import (
    DATA,
    EITHER_VERSION,
    both,
    both_sides,
    linked_by_tls,
    server_context,
    session_between,
    source_of,
    without_session,
)


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
    await refused(passive, client._replace(session=lambda: other_session))
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
    server = server._replace(requires_resumed=False)
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


async def cut(listener: socket.socket, count: int) -> None:
    """Accept so many connections, and reset them within their handshakes."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        sock, _ = await loop.sock_accept(listener)
        assert await loop.sock_recv(sock, 1)
        reset_socket(sock)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.mark.parametrize("openings", [1, 2])
async def test_all_that_are_cut_in_their_handshakes_are_dialled_again(
    listener: socket.socket, openings: int
) -> None:
    server, client = both_sides()
    active = ActiveChannel([Endpoint(*listener.getsockname())] * 3, tls=client)
    active.replaces = True
    async with asyncio.timeout(10):
        await cut(listener, 3 * openings)
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        sock.setblocking(False)
        theirs = await TlsConnection.agreed(sock, 0, server, None)
        await active.wait_for_first()
    assert active.may_bring_more, "the other two are dialled too"
    active.close()
    active.connections[0].close()
    theirs.close()


@pytest.mark.parametrize(("replaces", "openings"), [(False, 1), (True, MOST_OPENINGS)])
async def test_not_for_ever(listener: socket.socket, replaces: bool, openings: int) -> None:
    _, client = both_sides()
    active = ActiveChannel([Endpoint(*listener.getsockname())] * 3, tls=client)
    active.replaces = replaces
    cutting = asyncio.create_task(cut(listener, 3 * openings))
    with pytest.raises(DataConnectionError, match="no data connection could be opened"):
        await active.wait_for_first(10)
    await cutting
    with pytest.raises(BlockingIOError):
        listener.accept()
    active.close()


async def test_refused_ones_end_the_wait_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xftp.transport.accepting.REFUSED_S", 0.1)
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
        HOST, HOST, expected=1, limit=1, tls=server._replace(requires_resumed=False)
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
