"""What is done to a server that speaks TLS: injection, silence, other protocols."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, running_server
from tests.tls import HOST, client_context
from xftp.server import Server

from .support import until
from .tls_client import SecureClient, secure_session, server_tls


@pytest.fixture
async def secure(root: Path, tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(root, tls=server_tls(tmp_path)) as server:
        await server.start_implicit(HOST)
        yield server


def client_hello() -> bytes:
    """Give what a TLS client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client_context().wrap_bio(incoming, outgoing, server_hostname=HOST)
    with contextlib.suppress(ssl.SSLWantReadError):
        asking.do_handshake()
    return outgoing.read()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Give what comes until the server closes."""
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_commands_injected_behind_auth(secure: Server) -> None:
    """CVE-2011-0411: what came in the clear would be executed as if it had come within TLS."""
    client = await RawClient.connect(HOST, secure.server_port)
    client.send("AUTH TLS", "USER anonymous", "PASS x")
    assert (await client.reply()).code == 421
    assert await rest_of(client.reader) == b""
    assert secure.shared.watch.logins[True] == 0
    await client.close()


async def test_half_a_command_injected_behind_auth(secure: Server) -> None:
    """The rest of the line would come within TLS, and be executed with what the thief put first."""
    client = await RawClient.connect(HOST, secure.server_port)
    client.writer.write(b"AUTH TLS\r\nDELE file ")
    assert (await client.reply()).code == 421
    assert await rest_of(client.reader) == b""
    await client.close()


@pytest.mark.parametrize("tail", [b"", b"hello"], ids=["alone", "before the handshake"])
async def test_commands_injected_behind_the_reply(secure: Server, tail: bytes) -> None:
    client = await RawClient.connect(HOST, secure.server_port)
    assert (await client.command("AUTH TLS")).code == 234
    injected = b"USER anonymous\r\nPASS x\r\n" + (client_hello() if tail else b"")
    client.writer.write(injected)
    assert b"220" not in (said := await rest_of(client.reader))
    assert b"331" not in said
    assert secure.shared.watch.logins[True] == 0
    await client.close()
    await until(lambda: secure.session_count == 0)


async def test_commands_ahead_of_auth_are_none_of_its_business(secure: Server) -> None:
    client = await SecureClient.connect(HOST, secure.server_port)
    client.send("FEAT", "NOOP", "AUTH TLS")
    assert [(await client.reply()).code for _ in range(3)] == [211, 200, 234]
    await client.begin_tls()
    await client.log_in()
    await client.close()


@pytest.mark.parametrize("implicit", [True, False])
async def test_a_handshake_that_never_ends(root: Path, tmp_path: Path, implicit: bool) -> None:
    """The login's time is its limit, and it is no idle session meanwhile."""
    tls = server_tls(tmp_path)
    async with running_server(root, tls=tls, login_timeout_s=0.5) as server:
        await server.start_implicit(HOST)
        port = server.implicit_port if implicit else server.server_port
        reader, writer = await asyncio.open_connection(HOST, port)
        if not implicit:
            await reader.readline()
            writer.write(b"AUTH TLS\r\n")
            assert (await reader.readline()).startswith(b"234")
        writer.write(client_hello()[:50])
        assert await rest_of(reader) == b""
        writer.close()
        await until(lambda: server.session_count == 0)


@pytest.mark.parametrize(
    "said",
    [b"USER anonymous\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(70_000)],
    ids=["ftp", "http", "a record too long"],
)
async def test_what_is_no_tls_on_the_implicit_port(secure: Server, said: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, secure.implicit_port)
    writer.write(said)
    answer = await rest_of(reader)
    assert b"220" not in answer
    assert len(answer) < 100, "an alert at most"
    writer.close()
    await until(lambda: secure.session_count == 0)


async def test_http_within_tls(secure: Server) -> None:
    """ALPACA: a browser was led to this port, with a request that holds commands."""
    client = await SecureClient.implicit(secure.implicit_port)
    client.writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nUSER anonymous\r\nPASS x\r\n")
    assert await rest_of(client.reader) == b""
    assert secure.shared.watch.logins[True] == 0
    await client.close()


async def test_tls_on_the_plain_port(secure: Server) -> None:
    reader, writer = await asyncio.open_connection(HOST, secure.server_port)
    assert (await reader.readline()).startswith(b"220")
    writer.write(client_hello())
    assert await rest_of(reader) == b""
    writer.close()


async def test_the_implicit_port_protects_data_from_the_start(secure: Server, root: Path) -> None:
    (root / "file").write_bytes(b"data")
    client = await SecureClient.implicit(secure.implicit_port)
    await client.log_in()
    assert (await client.command("TYPE I")).code == 200
    assert await client.receive("RETR file") == b"data"
    assert (await client.command("PROT C")).code == 200
    await client.close()


async def test_a_full_server_makes_no_handshake(root: Path, tmp_path: Path) -> None:
    async with running_server(root, tls=server_tls(tmp_path)) as server:
        await server.start_implicit(HOST)
        quota = server.shared.sessions
        held = [quota.take(HOST) for _ in range(50)]
        reader, writer = await asyncio.open_connection(HOST, server.implicit_port)
        assert await rest_of(reader) == b""
        writer.close()
        for place in held:
            place.release()
        await (await SecureClient.implicit(server.implicit_port)).close()


async def test_the_end_of_a_client_within_tls(secure: Server) -> None:
    """With and without close_notify, the session is over."""
    for ends_well in (True, False):
        async with secure_session(secure.server_port) as client:
            if ends_well:
                client.writer.close()
            else:
                client.writer.transport.abort()
            await until(lambda: secure.session_count == 0)


async def test_stopping_ends_sessions_within_tls(root: Path, tmp_path: Path) -> None:
    async with running_server(root, tls=server_tls(tmp_path)) as server:
        await server.start_implicit(HOST)
        client = await SecureClient.implicit(server.implicit_port)
        await client.log_in()
        stopping = asyncio.create_task(server.shut_down(5))
        assert (await client.reply()).code == 421
        assert await rest_of(client.reader) == b""
        await stopping
        await client.close()
