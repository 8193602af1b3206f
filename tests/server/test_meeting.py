"""Both ends dial for a download (OPTS MULT Both=1): the first connection decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Server

from .support import (
    HOST,
    Data,
    assembled,
    codes,
    dial,
    listening,
    multiple_ports,
    outcome,
    pattern,
    until,
)
from .test_tls import secure as secure
from .tls_client import secure_session

CONTENT = pattern(300_000)
CLOSED_PORT = 1025
"""Nobody listens there."""


async def ask(client: RawClient, ports: list[int], *, both: bool = True) -> list[int]:
    """Name ports to dial, and ask for ports to be dialled; give the latter."""
    wish = f"OPTS MULT Connections={len(ports)};{'Both=1;' if both else ''}"
    reply = await client.command(wish)
    assert reply.code == 200
    assert ("Both=1;" in reply.text) is both
    listed = ",".join(map(str, ports))
    assert (await client.command(f"MPRT IP4|TCP|{HOST}|{listed}")).code == 200
    reply = await client.command("MPSV")
    assert reply.code == 229
    return multiple_ports(reply.text)[1]


async def read_all(connections: list[Data]) -> bytes:
    streams = await asyncio.gather(*(data.read() for data in connections))
    return assembled(list(streams), len(CONTENT))


async def test_a_client_that_can_be_dialled_is(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    async with listening(2) as (ports, arrived):
        offered = await ask(client, ports)
        client.send("RETR file")
        await until(lambda: len(arrived) == 2)
        with pytest.raises(ConnectionRefusedError):
            await dial(offered[0])
        assert await read_all(arrived) == CONTENT
    assert await outcome(client) == [150, 226]


async def test_a_client_that_cannot_be_dialled_dials(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    offered = await ask(client, [CLOSED_PORT, CLOSED_PORT])
    client.send("RETR file")
    assert await codes(client, 1) == [150]
    connections = [await dial(port) for port in offered[:2]]
    assert await read_all(connections) == CONTENT
    assert await codes(client, 1) == [226]


async def test_only_who_asks_for_it_is_dialled(client: RawClient, root: Path) -> None:
    """MPSV takes the place of MPRT, as it always did."""
    (root / "file").write_bytes(CONTENT)
    async with listening(2) as (ports, arrived):
        offered = await ask(client, ports, both=False)
        client.send("RETR file")
        assert await codes(client, 1) == [150]
        connections = [await dial(port) for port in offered[:2]]
        assert await read_all(connections) == CONTENT
        assert not arrived
    assert await codes(client, 1) == [226]


async def test_an_upload_goes_over_the_connections_of_the_client(
    client: RawClient, root: Path
) -> None:
    async with listening(1) as (ports, arrived):
        offered = await ask(client, ports)
        assert (await client.command("ALLO 3")).code == 200
        client.send("STOR up")
        assert await codes(client, 1) == [150]
        await (await dial(offered[0])).finish(bytes(4) + b"abc")
        assert await codes(client, 1) == [226]
        assert not arrived
    assert (root / "up").read_bytes() == b"abc"


async def test_a_refused_download_leaves_neither_way_open(client: RawClient) -> None:
    offered = await ask(client, [CLOSED_PORT])
    assert (await client.command("RETR nothing")).code == 550
    with pytest.raises(ConnectionRefusedError):
        await dial(offered[0])
    assert (await client.command("RETR nothing")).code == 425


async def test_within_tls_it_is_not_granted(secure: Server) -> None:
    async with secure_session(secure.server_port) as client:
        reply = await client.command("OPTS MULT Connections=2;Both=1;")
        assert reply.text == "MULT Connections=2;"
