"""Behind a load balancer: whose word counts, and what follows from it."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import RawClient, running_server
from xftp.server import Server
from xftp.server.limits import Limit, Limits

from .support import Data, dial, extended_port, until

BALANCER = "127.0.0.5"
CLIENT = "192.0.2.7"
NETWORKS = (ipaddress.ip_network("127.0.0.4/30"),)
LINE = f"PROXY TCP4 {CLIENT} 198.51.100.1 4000 21\r\n".encode()
BINARY = (
    b"\r\n\r\n\0\r\nQUIT\n"
    + struct.pack(">BBH", 0x21, 0x11, 12)
    + ipaddress.ip_address(CLIENT).packed
    + ipaddress.ip_address("198.51.100.1").packed
    + struct.pack(">HH", 4000, 21)
)
LOCAL = b"\r\n\r\n\0\r\nQUIT\n" + struct.pack(">BBH", 0x20, 0, 0)


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    async with running_server(root, proxies=NETWORKS) as running:
        yield running


@asynccontextmanager
async def connected(
    server: Server, opening: bytes, source: str = BALANCER
) -> AsyncIterator[RawClient]:
    client = RawClient(
        *await asyncio.open_connection("127.0.0.1", server.server_port, local_addr=(source, 0))
    )
    try:
        client.writer.write(opening)
        yield client
    finally:
        await client.close()


async def log_in(client: RawClient) -> None:
    assert (await client.reply()).code == 220
    await client.log_in()


@pytest.mark.parametrize("header", [LINE, BINARY])
async def test_session_is_the_clients(server: Server, header: bytes) -> None:
    async with connected(server, header) as client:
        await log_in(client)
        assert f"Connected from {CLIENT}" in (await client.command("STAT")).text
        assert (await client.command("PORT 192,0,2,7,200,1")).code == 200
        assert (await client.command("PORT 127,0,0,5,200,1")).code == 504
        assert "(198,51,100,1," in (await client.command("PASV")).text


@pytest.mark.parametrize("header", [LINE, BINARY])
async def test_header_and_commands_in_one_segment(server: Server, header: bytes) -> None:
    async with connected(server, header + b"NOOP\r\n") as client:
        assert (await client.reply()).code == 220
        assert (await client.reply()).code == 200


async def test_header_byte_by_byte(server: Server) -> None:
    async with connected(server, b"") as client:
        for byte in LINE:
            client.writer.write(bytes((byte,)))
            await client.writer.drain()
        assert (await client.reply()).code == 220


async def test_the_balancers_own_connections(server: Server) -> None:
    async with connected(server, LOCAL) as client:
        await log_in(client)
        assert f"Connected from {BALANCER}" in (await client.command("STAT")).text


@pytest.mark.parametrize(
    "opening", [b"USER anonymous\r\nPASS x\r\n", LINE[:-3] + b"x\r\n", b"PROXY " * 40]
)
async def test_a_balancer_without_header_is_refused(server: Server, opening: bytes) -> None:
    async with connected(server, opening) as client:
        with pytest.raises(ConnectionError):
            await client.reply()
    await until(lambda: server.session_count == 0)


@pytest.mark.parametrize("header", [LINE, BINARY])
async def test_others_are_not_believed(server: Server, header: bytes) -> None:
    async with connected(server, header + b"NOOP\r\n", "127.0.0.8") as client:
        assert (await client.reply()).code == 220
        with pytest.raises(ConnectionError):
            await client.reply()


async def test_data_connections(server: Server, root: Path) -> None:
    (root / "file").write_bytes(b"content")
    other = LINE.replace(CLIENT.encode(), b"192.0.2.8")
    async with connected(server, LINE) as client:
        await log_in(client)
        for header in (LINE, BINARY):
            port = extended_port((await client.command("EPSV")).text)
            for source, opening in ((BALANCER, other), (BALANCER, LOCAL), ("127.0.0.8", header)):
                thief = await dial(port, source=source)
                await thief.send(opening)
                assert await _everything(thief) == b""
            data = await dial(port, source=BALANCER)
            await data.send(header)
            client.send("RETR file")
            assert (await client.reply()).code == 150
            assert await data.read() == b"content"
            assert (await client.reply()).code == 226


async def test_upload_right_behind_the_header(server: Server, root: Path) -> None:
    async with connected(server, LINE) as client:
        await log_in(client)
        assert (await client.command("TYPE I")).code == 200
        port = extended_port((await client.command("EPSV")).text)
        data = await dial(port, source=BALANCER)
        client.send("STOR file")
        await data.finish(BINARY + b"content")
        assert [(await client.reply()).code, (await client.reply()).code] == [150, 226]
    assert (root / "file").read_bytes() == b"content"


async def _everything(data: Data) -> bytes:
    try:
        return await data.read()
    except ConnectionResetError:
        return b""


async def test_limits_are_the_clients(root: Path) -> None:
    limits = Limits(sessions=Limit(None, 1))
    other = LINE.replace(CLIENT.encode(), b"192.0.2.8")
    async with (
        running_server(root, proxies=NETWORKS, limits=limits) as server,
        connected(server, LINE) as first,
        connected(server, other) as second,
        connected(server, LINE) as third,
    ):
        assert (await first.reply()).code == 220
        assert (await second.reply()).code == 220
        assert (await third.reply()).code == 421
