"""Where data connections may go to and come from."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.server import Server
from xftp.transport.passive import PassiveChannel

from .support import (
    Data,
    assembled,
    codes,
    dial,
    download,
    extended_port,
    listening,
    multiple_ports,
    outcome,
    pattern,
    until,
    upload,
)

STRANGER = "127.0.0.2"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        # another host than that of the control connection (RFC 2577 section 3)
        ("PORT 127,0,0,2,200,1", 504),
        ("PORT 10,0,0,1,200,1", 504),
        ("EPRT |1|127.0.0.2|2345|", 504),
        ("EPRT |2|::1|2345|", 504),
        ("EPRT |2|::ffff:127.0.0.2|2345|", 504),
        ("MPRT IP4|TCP|127.0.0.2|2345", 504),
        ("MPRT IP6|TCP|::1|2345", 504),
        # ports below 1024
        ("PORT 127,0,0,1,3,255", 504),
        ("EPRT |1|127.0.0.1|1023|", 504),
        ("MPRT IP4|TCP|127.0.0.1|1023", 504),
        ("MPRT IP4|TCP|127.0.0.1|2345,22,2346", 504),
        # ports that there are not
        ("PORT 127,0,0,1,0,0", 501),
        ("PORT 127,0,0,1,256,1", 501),
        ("EPRT |1|127.0.0.1|0|", 501),
        ("EPRT |1|127.0.0.1|65536|", 501),
        ("MPRT IP4|TCP|127.0.0.1|0", 501),
        ("MPRT IP4|TCP|127.0.0.1|2345,0", 501),
        ("MPRT IP4|TCP|127.0.0.1|65536", 501),
        ("MPRT IP4|TCP|127.0.0.1|", 501),
        ("MPRT IP4|TCP|127.0.0.1|2345,", 501),
        ("MPRT IP4|TCP|127.0.0.1|x", 501),
        ("MPRT IP4|TCP|127.0.0.1|-2345", 501),
        # not an address, or of the other family
        ("PORT 127,0,0,1,200", 501),
        ("PORT localhost", 501),
        ("EPRT |1|localhost|2345|", 501),
        ("EPRT |1|::1|2345|", 501),
        ("EPRT |2|127.0.0.1|2345|", 501),
        ("EPRT 127.0.0.1 2345", 501),
        ("MPRT IP4|TCP|localhost|2345", 501),
        ("MPRT IP4|TCP|::1|2345", 501),
        ("MPRT IP6|TCP|127.0.0.1|2345", 501),
        ("MPRT IP4|127.0.0.1|2345", 501),
        # other protocols (RFC 2428 section 2)
        ("EPRT |3|127.0.0.1|2345|", 522),
        ("EPSV 3", 522),
        ("EPSV 2", 522),
        ("MPRT IP5|TCP|127.0.0.1|2345", 522),
        ("MPRT IP4|UDP|127.0.0.1|2345", 522),
        ("EPSV x", 501),
        ("MPSV 4", 501),
    ],
)
async def test_refused(client: RawClient, root: Path, command: str, code: int) -> None:
    (root / "file").write_bytes(b"abc")
    assert (await client.command(command)).code == code
    assert (await client.command("RETR file")).code == 425


async def test_refusal_names_what_can_be_used(client: RawClient) -> None:
    assert "(1,2)" in (await client.command("EPRT |3|127.0.0.1|2345|")).text
    assert "(1)" in (await client.command("EPSV 2")).text
    assert "(IP4,IP6)" in (await client.command("MPRT IP5|TCP|127.0.0.1|2345")).text


@pytest.mark.parametrize("limit", [8, 3])
async def test_ports_beyond_the_limit_are_ignored(root: Path, limit: int) -> None:
    content = pattern(1_000_000)
    (root / "file").write_bytes(content)
    async with (
        running_server(root, connection_limit=limit) as server,
        raw_session(server) as client,
        listening() as (ports, arrived),
    ):
        reply = await client.command(f"MPRT IP4|TCP|127.0.0.1|{','.join(map(str, ports * 100))}")
        assert (reply.code, reply.text) == (200, f"Will open {limit} data connection(s).")
        client.send("TYPE I", "RETR file")
        assert await codes(client, 2) == [200, 150]
        await until(lambda: len(arrived) == limit)
        streams = await asyncio.gather(*map(Data.read, arrived))
        assert await codes(client, 1) == [226]
        assert len(arrived) == limit
        assert assembled(streams, len(content)) == content


async def test_mult_tells_the_limit(root: Path) -> None:
    for limit in (1, 12):
        async with (
            running_server(root, connection_limit=limit) as server,
            raw_session(server) as client,
        ):
            assert (await client.command("MULT")).text == f"{limit} data connections available."
            _, ports = multiple_ports((await client.command("MPSV")).text)
            assert len(ports) == limit


@pytest.mark.parametrize(
    ("options", "code", "text", "ports"),
    [
        ("Connections=3;", 200, "MULT Connections=3;", 3),
        ("connections=3", 200, "MULT Connections=3;", 3),
        ("Connections=100;", 200, "MULT Connections=8;", 8),
        ("Colour=blue;Connections=2;", 200, "MULT Connections=2; Ignored: Colour.", 2),
        ("Colour=blue;Taste=sour", 200, "MULT Ignored: Colour, Taste.", 8),
        ("", 200, "MULT", 8),
        ("Connections=0;", 501, None, 5),
        ("Connections=-1;", 501, None, 5),
        ("Connections=x;", 501, None, 5),
        ("Connections=2;Connections=3;", 501, None, 5),
        ("Connections", 501, None, 5),
        ("Connections=2;;", 501, None, 5),
    ],
)
async def test_opts_mult(
    client: RawClient, options: str, code: int, text: str | None, ports: int
) -> None:
    """What is malformed changes nothing of the five that were granted before."""
    assert (await client.command("OPTS MULT Connections=5;")).code == 200
    reply = await client.command(f"OPTS MULT {options}".rstrip())
    assert reply.code == code
    if text is not None:
        assert reply.text == text
    assert len(multiple_ports((await client.command("MPSV")).text)[1]) == ports


async def test_mpsv_lists_one_port(client: RawClient) -> None:
    reply = await client.command("MPSV")
    host, ports = multiple_ports(reply.text)
    assert reply.code == 229
    assert host == "IP4 127.0.0.1"
    assert len(ports) == 8
    assert len(set(ports)) == 1


# -- strangers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["PASV", "EPSV", "MPSV"])
@pytest.mark.parametrize("when", ["before", "during"])
async def test_stranger_is_closed_and_takes_no_place(
    client: RawClient, root: Path, way: str, when: str
) -> None:
    (root / "file").write_bytes(b"abc")
    assert (await client.command("OPTS MULT Connections=1;")).code == 200
    reply = await client.command(way)
    port = {"PASV": _pasv_port, "EPSV": extended_port, "MPSV": lambda t: multiple_ports(t)[1][0]}[
        way
    ](reply.text)
    if when == "during":
        client.send("RETR file")
        assert await codes(client, 1) == [150]
    for _ in range(3):
        stranger = await dial(port, source=STRANGER)
        assert await stranger.read() == b""
    if when == "before":
        client.send("RETR file")
        assert await codes(client, 1) == [150]
    data = await dial(port)
    assert (await data.read())[-3:] == b"abc"
    assert await codes(client, 1) == [226]


async def test_stranger_cannot_upload(client: RawClient, root: Path) -> None:
    port = extended_port((await client.command("EPSV")).text)
    client.send("STOR file")
    assert await codes(client, 1) == [150]
    stranger = await dial(port, source=STRANGER)
    await stranger.finish(b"not theirs to write")
    data = await dial(port)
    await data.finish(b"ours")
    assert await codes(client, 1) == [226]
    assert (root / "file").read_bytes() == b"ours"


def _pasv_port(text: str) -> int:
    high, low = text.split("(")[1].split(")")[0].split(",")[4:]
    return int(high) * 256 + int(low)


# -- listeners -------------------------------------------------------------------------------------


async def test_listener_is_gone_after_use(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    first = extended_port((await client.command("EPSV")).text)
    second = extended_port((await client.command("EPSV")).text)
    for port in (first, second):
        if port == second:
            data = await dial(port)
            client.send("RETR file")
            assert await data.read() == b"abc"
            assert await outcome(client) == [150, 226]
        with pytest.raises(ConnectionRefusedError):
            await dial(port)


async def test_connection_that_comes_too_late_is_closed_politely() -> None:
    """With the listener it would be reset, which looks like a failure."""
    channel = PassiveChannel.listen("127.0.0.1", "127.0.0.1", limit=2)
    with socket.create_connection(("127.0.0.1", channel.endpoint.port)) as sock:
        channel.close()  # the event loop had no chance to accept
        assert sock.recv(1) == b""


async def test_a_range_of_one_port(root: Path) -> None:
    """The port serves again while its last connection is in TIME_WAIT."""
    (root / "file").write_bytes(b"abc")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with (
        running_server(root, passive_ports=(port,)) as server,
        raw_session(server) as client,
        raw_session(server) as other,
    ):
        for _ in range(3):
            assert await download(client, "RETR file") == ([150, 226], b"abc")
        assert extended_port((await client.command("EPSV")).text) == port
        assert (await other.command("EPSV")).code == 425
        assert (await client.command("ABOR")).code == 225
        assert await upload(other, "STOR new", b"abc") == [150, 226]


async def test_public_host(root: Path) -> None:
    async with (
        running_server(root, public_host="192.0.2.7") as server,
        raw_session(server) as client,
    ):
        assert "(192,0,2,7," in (await client.command("PASV")).text
        assert multiple_ports((await client.command("MPSV")).text)[0] == "IP4 192.0.2.7"


# -- EPSV ALL --------------------------------------------------------------------------------------


async def test_epsv_all(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    assert (await client.command("EPSV ALL")).code == 200
    for command in (
        "PORT 127,0,0,1,200,1",
        "EPRT |1|127.0.0.1|2345|",
        "MPRT IP4|TCP|127.0.0.1|2345",
        "PASV",
        "MPSV",
    ):
        assert (await client.command(command)).code == 503
    assert await download(client, "RETR file") == ([150, 226], b"abc")
    client.send("REIN", "USER anonymous", "PASS x", "PASV")
    assert await codes(client, 4) == [220, 331, 230, 227]


# -- IPv6 ------------------------------------------------------------------------------------------


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="there is no IPv6 loopback here")


@pytest.fixture
async def ipv6(root: Path) -> AsyncIterator[RawClient]:
    (root / "file").write_bytes(b"abc")
    async with (
        running_server(root, host="::1") as server,
        raw_session(server, host="::1") as session,
    ):
        assert (await session.command("TYPE I")).code == 200
        yield session


@needs_ipv6
async def test_ipv6_passive(ipv6: RawClient) -> None:
    for command in ("EPSV", "EPSV 2"):
        port = extended_port((await ipv6.command(command)).text)
        ipv6.send("RETR file")
        assert await (await dial(port, "::1")).read() == b"abc"
        assert await outcome(ipv6) == [150, 226]
    host, ports = multiple_ports((await ipv6.command("MPSV")).text)
    assert host == "IP6 ::1"
    ipv6.send("RETR file")
    assert await (await dial(ports[0], "::1")).read() == b"\0\0\0\0abc"
    assert await outcome(ipv6) == [150, 226]


@needs_ipv6
async def test_ipv6_active(ipv6: RawClient) -> None:
    async with listening(host="::1") as ((port,), arrived):
        for command, content in (
            (f"EPRT |2|::1|{port}|", b"abc"),
            (f"EPRT |2|0:0:0:0:0:0:0:1|{port}|", b"abc"),
            (f"MPRT IP6|TCP|::1|{port}", b"\0\0\0\0abc"),
        ):
            ipv6.send(command, "RETR file")
            assert await codes(ipv6, 3) == [200, 150, 226]
            assert await arrived.pop().read() == content


@needs_ipv6
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("PASV", 425),
        ("EPSV 1", 522),
        ("PORT 127,0,0,1,200,1", 504),
        ("EPRT |1|127.0.0.1|2345|", 504),
        ("MPRT IP4|TCP|127.0.0.1|2345", 504),
        ("MPRT IP6|TCP|::2|2345", 504),
        ("MPRT IP6|TCP|fe80::1%lo|2345", 501),
    ],
)
async def test_ipv6_refused(ipv6: RawClient, command: str, code: int) -> None:
    assert (await ipv6.command(command)).code == code
    assert (await ipv6.command("NOOP")).code == 200


async def test_rest_and_allo_may_come_before_the_address(
    client: RawClient, server: Server, root: Path
) -> None:
    (root / "file").write_bytes(b"abcdef")
    client.send("REST 2", "TYPE I", "NOOP", "SIZE file", "FEAT")
    assert await codes(client, 5) == [350, 200, 200, 213, 211]
    assert await download(client, "RETR file") == ([150, 226], b"cdef")
    client.send("ALLO 4")
    assert await codes(client, 1) == [200]
    assert await upload(client, "STOR file", b"abc") == [150, 426]
    assert (root / "file").read_bytes() == b"abcdef"
    assert await upload(client, "STOR file", b"abc") == [150, 226]  # that ALLO is spent
