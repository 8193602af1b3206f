"""The standing port: whose a connection is, and what happens to those that are nobody's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.errors import ConnectError
from xftp.server import Server, standing
from xftp.server.limits import Limit

from .support import HOST, Data, assembled, codes, dealt, dial, multiple_ports, pattern, until

CONTENT = pattern(300_000)
TOKEN = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
OTHER_TOKEN = 2 * "5eed5eed5eed5eed"


def port_of(server: Server) -> int:
    assert server.shared.standing_port is not None
    return server.shared.standing_port.number


def waiting(server: Server) -> int:
    """Count the connections that are nobody's."""
    assert server.shared.standing_port is not None
    return server.shared.standing_port._quota.total


async def call(server: Server, token: str = TOKEN, source: str | None = None) -> Data:
    """Connect, and tell a token."""
    data = await dial(port_of(server), source=source)
    await data.send(f"XFTP {token}\r\n".encode())
    return data


async def ask(client: RawClient, count: int, token: str = TOKEN) -> list[int]:
    """Tell the token of the connections that come; give the ports of the reply."""
    for command in ("TYPE I", f"OPTS MULT Connections={count};"):
        assert (await client.command(command)).code == 200
    reply = await client.command(f"MPSV {token}")
    assert reply.code == 229, reply
    return multiple_ports(reply.text)[1]


async def read_all(connections: list[Data]) -> bytes:
    streams = await asyncio.gather(*(data.read() for data in connections))
    return assembled(list(streams), len(CONTENT))


async def is_closed(data: Data) -> bool:
    """Tell whether the server closes a connection without a byte."""
    try:
        return await data.read() == b""
    except ConnectionResetError:
        return True


async def test_the_port_is_told_in_greeting_and_feat(server: Server) -> None:
    reader, writer = await asyncio.open_connection(HOST, server.server_port)
    client = RawClient(reader, writer)
    greeting = await client.reply()
    assert greeting.text == f"XFTP server ready. Data port {port_of(server)}."
    assert f"MPSV Port={port_of(server)};" in [
        line.strip() for line in (await client.command("FEAT")).lines
    ]
    await client.close()


@pytest.mark.parametrize("is_early", [False, True], ids=["asked for first", "come first"])
async def test_a_download(server: Server, client: RawClient, root: Path, is_early: bool) -> None:
    (root / "file").write_bytes(CONTENT)
    connections: list[Data] = []
    if is_early:
        connections = [await call(server) for _ in range(3)]
        await until(lambda: waiting(server) == 3)
    assert await ask(client, 3) == [port_of(server)] * 3
    client.send("RETR file")
    assert await codes(client, 1) == [150]
    connections = connections or [await call(server) for _ in range(3)]
    assert await read_all(connections) == CONTENT
    assert await codes(client, 1) == [226]
    assert waiting(server) == 0


async def test_an_upload_right_behind_the_token(
    server: Server, client: RawClient, root: Path
) -> None:
    await ask(client, 2)
    assert (await client.command(f"ALLO {len(CONTENT)}")).code == 200
    client.send("STOR up")
    for stream in dealt(CONTENT, 2):
        data = await dial(port_of(server))
        await data.finish(f"XFTP {TOKEN}\r\n".encode() + stream)
    assert await codes(client, 2) == [150, 226]
    assert (root / "up").read_bytes() == CONTENT


async def test_a_token_in_pieces(server: Server, client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    await ask(client, 1)
    client.send("RETR file")
    data = await dial(port_of(server))
    for byte in f"XFTP {TOKEN}\r\n".encode():
        await data.send(bytes([byte]))
    assert await read_all([data]) == CONTENT
    assert await codes(client, 2) == [150, 226]


async def test_each_session_gets_its_own(server: Server, root: Path) -> None:
    contents = {"a": pattern(100_000), "b": pattern(50_000)[::-1]}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    async with raw_session(server) as one, raw_session(server) as two:
        ours, theirs = await call(server), await call(server, OTHER_TOKEN)
        await ask(two, 1, OTHER_TOKEN)
        await ask(one, 1)
        one.send("RETR a")
        two.send("RETR b")
        assert assembled([await ours.read()], 100_000) == contents["a"]
        assert assembled([await theirs.read()], 50_000) == contents["b"]
        assert await codes(one, 2) == await codes(two, 2) == [150, 226]


async def test_more_than_are_taken(server: Server, client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    connections = [await call(server) for _ in range(3)]
    await until(lambda: waiting(server) == 3)
    await ask(client, 2)
    client.send("RETR file")
    streams = await asyncio.gather(*(data.read() for data in connections))
    assert sorted(stream == b"" for stream in streams) == [False, False, True]
    assert assembled(streams, len(CONTENT)) == CONTENT


async def test_the_right_token_from_another_address(
    server: Server, client: RawClient, root: Path
) -> None:
    (root / "file").write_bytes(CONTENT)
    early = await call(server, source="127.0.0.2")
    await until(lambda: waiting(server) == 1)
    await ask(client, 1)
    late = await call(server, source="127.0.0.2")
    assert await is_closed(early)
    assert await is_closed(late)
    client.send("RETR file")
    assert await read_all([await call(server)]) == CONTENT


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\nHost: 127.0.0.1:2120\r\n\r\n", b"\0" * 39, b"XFTP " + b"x" * 34],
    ids=["HTTP", "zeros", "no token"],
)
async def test_what_is_no_call_is_closed(server: Server, said: bytes) -> None:
    data = await dial(port_of(server))
    await data.send(said)
    assert await is_closed(data)
    assert waiting(server) == 0


async def test_nobody_waits_for_ever(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "CALL_TIMEOUT_S", 0.1)
    silent, unwanted = await dial(port_of(server)), await call(server)
    assert await is_closed(silent)
    assert await is_closed(unwanted)
    assert waiting(server) == 0


async def test_who_goes_before_a_word_is_forgotten(server: Server) -> None:
    data = await dial(port_of(server))
    await until(lambda: waiting(server) == 1)
    await data.reset()
    await until(lambda: waiting(server) == 0)


async def test_a_token_counts_once(server: Server, client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    await ask(client, 1)
    assert (await client.command("RETR nothing")).code == 550
    assert (await client.command(f"MPSV {TOKEN}")).code == 425
    assert await is_closed(await call(server))  # too late
    await ask(client, 1, OTHER_TOKEN)
    client.send("RETR file")
    assert await read_all([await call(server, OTHER_TOKEN)]) == CONTENT


async def test_two_sessions_with_one_token(server: Server, client: RawClient, root: Path) -> None:
    """The second is refused: it may be somebody's who has seen the first."""
    (root / "file").write_bytes(CONTENT)
    await ask(client, 1)
    async with raw_session(server) as other:
        assert (await other.command(f"MPSV {TOKEN}")).code == 425
    client.send("RETR file")
    assert await read_all([await call(server)]) == CONTENT


async def test_an_address_with_many_makes_room_for_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "CALLERS", Limit(4, 3))
    (root / "file").write_bytes(CONTENT)
    async with running_server(root) as server, raw_session(server) as client:
        many = [await dial(port_of(server), source="127.0.0.2") for _ in range(4)]
        assert await is_closed(many[3])
        await until(lambda: waiting(server) == 3)
        connections = [await call(server) for _ in range(2)]
        assert await is_closed(many[0])
        await ask(client, 2)
        client.send("RETR file")
        assert await read_all(connections) == CONTENT


async def test_the_end_of_the_server_closes_all(root: Path) -> None:
    async with running_server(root) as server:
        port, data = port_of(server), await call(server)
        await until(lambda: waiting(server) == 1)
    assert await is_closed(data)
    with pytest.raises(ConnectionRefusedError):
        await dial(port)


# -- which port ----------------------------------------------------------------------------------


@asynccontextmanager
async def free_ports(count: int) -> AsyncIterator[tuple[int, ...]]:
    """Give ports that nobody listens on."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = tuple(each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    yield ports


async def test_the_first_of_the_passive_ports_is_taken(root: Path) -> None:
    async with free_ports(9) as ports, running_server(root, passive_ports=ports) as server:
        assert port_of(server) == ports[0]
        assert server.shared.listeners.limit.in_all == 8
        async with raw_session(server) as client:
            listed = multiple_ports((await client.command("MPSV")).text)[1]
            assert listed[0] in ports[1:]


async def test_few_passive_ports_stay_what_they_are(root: Path) -> None:
    async with free_ports(7) as ports, running_server(root, passive_ports=ports) as server:
        assert server.shared.standing_port is None


async def test_a_port_that_is_named(root: Path) -> None:
    async with free_ports(1) as (port,), running_server(root, standing_port=port) as server:
        assert port_of(server) == port


async def test_a_named_port_that_is_taken_is_an_error(root: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match=f"data port {port}: Address already in use"):
            async with running_server(root, standing_port=port):
                pass


async def test_without_a_port_the_token_means_nothing(root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    async with running_server(root, standing_port=None) as server:
        assert server.shared.standing_port is None
        async with raw_session(server) as client:
            (port,) = await ask(client, 1)
            client.send("RETR file")
            assert await read_all([await dial(port)]) == CONTENT
