"""Ports that the server listens on for data: nobody can tell the next one, or take its place."""

from __future__ import annotations

from pathlib import Path

from tests.support import RawClient, raw_session, running_server
from xftp.transport.ports import ephemeral_ports

from .support import dial, extended_port, multiple_ports, opened, plain


async def test_sixty_of_sixty_differ(root: Path) -> None:
    async with running_server(root) as server, raw_session(server) as client:
        found = [extended_port((await client.command("EPSV")).text) for _ in range(60)]
    assert len(set(found)) == 60


async def test_sixty_of_sixty_differ_in_a_range(root: Path) -> None:
    first = ephemeral_ports().start + 1000
    ports = tuple(range(first, first + 400))
    async with running_server(root, passive_ports=ports) as server, raw_session(server) as client:
        found = [multiple_ports((await client.command("MPSV")).text)[1][0] for _ in range(60)]
    assert len(set(found)) == 60
    assert set(found) <= set(ports)


async def test_a_thief_takes_no_place(client: RawClient, root: Path) -> None:
    """The one place of EPSV is still there after 40 connections from another address."""
    port = extended_port((await client.command("EPSV")).text)
    thieves = [await dial(port, source="127.0.0.2") for _ in range(40)]
    for thief in thieves:
        assert await thief.read() == b""
    data = await dial(port)
    client.send("STOR file")
    assert (await client.reply()).code == 150
    await data.finish(b"mine")
    assert (await client.reply()).code == 226
    assert (root / "file").read_bytes() == b"mine"


async def test_a_thief_during_the_transfer_gets_nothing(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"secret" * 1000)
    port = extended_port((await client.command("EPSV")).text)
    client.send("RETR file")
    assert (await client.reply()).code == 150
    thief = await dial(port, source="127.0.0.2")
    assert await thief.read() == b""
    data = await dial(port)
    assert await data.read() == b"secret" * 1000
    await data.close()
    assert (await client.reply()).code == 226


async def test_one_connection_too_many_is_closed(client: RawClient) -> None:
    first = await plain(client)
    port = first.writer.get_extra_info("peername")[1]
    second = await dial(port)
    assert await second.read() == b""
    client.send("NLST")
    assert (await client.reply()).code == 150
    assert await first.read() == b""
    assert (await client.reply()).code == 226
    assert len(opened) == 2
