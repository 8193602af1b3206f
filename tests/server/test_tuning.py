"""OPTS MULT with a tuner: what is granted, and which sockets it is applied to, and when."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.protocol.options import MultOptions
from xftp.server import Server

from .support import (
    HOST,
    dial,
    download,
    download_records,
    extended_port,
    listening,
    multiple_ports,
    outcome,
    upload,
)

CONTENT = bytes(range(256)) * 100
MOST = 65536


@dataclass
class Applied:
    """A socket that was tuned, and what it was then."""

    sock: socket.socket
    port: int
    """Its own port at that moment: 0 before bind, connect and listen."""
    connections: int
    granted: MultOptions


@dataclass
class FakeTuner:
    """Grants every key it lists, buffers up to MOST, and notes whatever it is asked."""

    keys: tuple[str, ...] = ("Congestion", "Rate", "SendBuffer")
    asked: list[MultOptions] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    observed: list[int] = field(default_factory=list)
    failure: Exception | None = None
    closed: int = 0

    def grant(self, asked: MultOptions, peer_host: str) -> MultOptions:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        size = asked.send_buffer_bytes
        return replace(
            asked,
            initial_window_segments=None,
            receive_buffer_bytes=None,
            send_buffer_bytes=size and min(size, MOST),
        )

    def tuning(self, granted: MultOptions, connections: int, peer_host: str) -> FakeTuning:
        return FakeTuning(self, granted, connections)


@dataclass
class FakeTuning:
    tuner: FakeTuner
    granted: MultOptions
    connections: int

    def apply(self, sock: socket.socket) -> None:
        port = sock.getsockname()[1]
        self.tuner.applied.append(Applied(sock, port, self.connections, self.granted))

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        self.tuner.observed.append(sock.fileno())
        return {}

    def close(self) -> None:
        self.tuner.closed += 1


@pytest.fixture
def tuner() -> FakeTuner:
    return FakeTuner()


@pytest.fixture
async def server(root: Path, tuner: FakeTuner) -> AsyncIterator[Server]:
    (root / "file").write_bytes(CONTENT)
    async with running_server(root, tuner=tuner) as running:
        yield running


async def mult_feature(client: RawClient) -> str:
    """Give what FEAT says of MULT."""
    (line,) = (line for line in (await client.command("FEAT")).lines if "MULT" in line)
    return line.strip()


async def granted(client: RawClient, options: str) -> str:
    """Ask, and give the text of the reply, which must be 200."""
    reply = await client.command(f"OPTS MULT {options}".rstrip())
    assert reply.code == 200
    return reply.text


# -- what is said --------------------------------------------------------------------------------


async def test_feat_lists_the_keys(client: RawClient) -> None:
    assert await mult_feature(client) == "MULT Connections;Replace;Feed;Congestion;Rate;SendBuffer;"


async def test_without_a_tuner_only_connections(root: Path) -> None:
    async with running_server(root) as server, raw_session(server) as client:
        assert await mult_feature(client) == "MULT Connections;Replace;Feed;"
        said = await granted(client, "Connections=3;Congestion=reno;Rate=1000;Colour=red;")
        assert said == "MULT Connections=3; Ignored: Colour."
        assert await granted(client, "SendBuffer=65536;") == "MULT"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Congestion=reno;", "MULT Congestion=reno;"),
        ("congestion=reno;RATE=5000;", "MULT Congestion=reno;Rate=5000;"),
        ("Rate=5000", "MULT Rate=5000;"),
        ("SendBuffer=1;", "MULT SendBuffer=1;"),
        ("SendBuffer=999999999999999;", f"MULT SendBuffer={MOST};"),
        ("Connections=99;Rate=5000;", "MULT Connections=8;Rate=5000;"),
        ("InitialWindow=40;Rate=5000;", "MULT Rate=5000;"),
        ("InitialWindow=40;", "MULT"),
        ("Colour=red;Rate=5000;Size=XL;", "MULT Rate=5000; Ignored: Colour, Size."),
        ("Colour=;", "MULT Ignored: Colour."),
        ("", "MULT"),
    ],
)
async def test_what_is_granted_is_in_the_reply(client: RawClient, asked: str, said: str) -> None:
    assert await granted(client, asked) == said


async def test_the_tuner_is_told_what_was_asked(client: RawClient, tuner: FakeTuner) -> None:
    await granted(
        client,
        "Connections=3;Congestion=x.y_z-1;InitialWindow=40;Rate=50000000;"
        "SendBuffer=4000000;ReceiveBuffer=5000000;",
    )
    assert tuner.asked == [MultOptions(3, "x.y_z-1", 40, 50_000_000, 4_000_000, 5_000_000)]


@pytest.mark.parametrize(
    "bad",
    [
        "Rate=fast;",
        "Rate=0;",
        "Rate=-1;",
        "Rate=50mbit;",
        "Rate=1e6;",
        "Rate=;",
        "Rate=1000000000000000;",
        "InitialWindow=0;",
        "SendBuffer=4M;",
        "ReceiveBuffer=0;",
        "Congestion=;",
        "Congestion=a/b;",
        "Congestion=sixteen_letters_;",
        "Rate=5000;rate=6000;",
        "Rate",
        "Rate=5000;;",
        "=5;",
        "Rate=5000; Connections=2;",
        "Connections=2;Rate=5000;SendBuffer=x;",
    ],
)
async def test_what_is_malformed_changes_nothing(
    client: RawClient, tuner: FakeTuner, bad: str
) -> None:
    await granted(client, "Connections=2;Rate=7000;")
    assert (await client.command(f"OPTS MULT {bad}")).code == 501
    _, ports = multiple_ports((await client.command("MPSV")).text)
    assert len(ports) == 2
    assert len(tuner.asked) == 1
    assert tuner.applied[-1].granted == MultOptions(connections=2, rate_bps=7000)


async def test_a_tuner_that_fails_changes_nothing(
    client: RawClient, tuner: FakeTuner, caplog: pytest.LogCaptureFixture
) -> None:
    await granted(client, "Rate=7000;")
    tuner.failure = RuntimeError("a mistake")
    assert (await client.command("OPTS MULT Rate=8000;")).code == 451
    assert "a mistake" in caplog.text
    assert (await client.command("EPSV")).code == 229
    assert tuner.applied[-1].granted == MultOptions(rate_bps=7000)


# -- what is done --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "connections"), [("MPSV", 3), ("EPSV", 1), ("PASV", 1), ("EPSV 1", 1)]
)
async def test_listeners_are_tuned_before_they_are_told_of(
    client: RawClient, tuner: FakeTuner, command: str, connections: int
) -> None:
    await granted(client, "Connections=3;Rate=9000;")
    reply = await client.command(command)
    applied = tuner.applied[-1]  # those before were for ports that somebody has
    assert applied.granted == MultOptions(connections=3, rate_bps=9000)
    assert applied.connections == connections
    assert applied.port == 0
    assert applied.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    port = applied.sock.getsockname()[1]
    numbers = [int(number) for number in re.findall(r"\d+", reply.text)]
    assert port in numbers or port == 256 * numbers[-2] + numbers[-1]


async def test_mpsv_without_a_number_is_tuned_for_the_limit(
    client: RawClient, tuner: FakeTuner
) -> None:
    await granted(client, "Rate=9000;")
    await client.command("MPSV")
    assert tuner.applied[0].connections == 8


@pytest.mark.parametrize("count", [1, 2, 4])
async def test_sockets_that_dial_for_mprt_are_tuned_before_they_connect(
    client: RawClient, tuner: FakeTuner, count: int
) -> None:
    await granted(client, "Rate=9000;")
    found, _ = await download_records(client, "RETR file", count, active=True)
    assert found == [150, 226]
    assert len(tuner.applied) == count
    for applied in tuner.applied:
        assert (applied.port, applied.connections) == (0, count)
        assert applied.granted == MultOptions(rate_bps=9000)


@pytest.mark.parametrize("verb", ["PORT", "EPRT"])
async def test_a_socket_that_dials_is_tuned_when_the_transfer_comes(
    client: RawClient, tuner: FakeTuner, verb: str
) -> None:
    async with listening() as ((port,), arrived):
        places = {
            "PORT": f"127,0,0,1,{port // 256},{port % 256}",
            "EPRT": f"|1|{HOST}|{port}|",
        }
        assert (await client.command(f"{verb} {places[verb]}")).code == 200
        assert tuner.applied == []
        await granted(client, "Rate=9000;")  # not too late
        client.send("RETR file")
        assert await outcome(client) == [150, 226]
        assert await arrived[0].read() == CONTENT
    (applied,) = tuner.applied
    assert (applied.port, applied.connections) == (0, 1)
    assert applied.granted == MultOptions(rate_bps=9000)


async def test_a_listener_keeps_what_held_when_it_was_made(
    client: RawClient, tuner: FakeTuner
) -> None:
    await granted(client, "Rate=9000;")
    reply = await client.command("EPSV")
    await granted(client, "Rate=5000;")
    data = await dial(extended_port(reply.text))
    client.send("RETR file")
    assert await data.read() == CONTENT
    assert await outcome(client) == [150, 226]
    assert {applied.granted.rate_bps for applied in tuner.applied} == {9000}


async def test_what_is_granted_holds_until_it_is_taken_back(
    client: RawClient, tuner: FakeTuner
) -> None:
    await granted(client, "Rate=9000;Congestion=reno;")
    for _ in range(2):
        assert await download(client, "RETR file") == ([150, 226], CONTENT)
        assert await upload(client, "STOR new", CONTENT) == [150, 226]
    asked = {applied.granted for applied in tuner.applied}
    assert asked == {MultOptions(rate_bps=9000, congestion="reno")}
    await granted(client, "Rate=5000;")
    await client.command("EPSV")
    assert tuner.applied[-1].granted == MultOptions(rate_bps=5000)
    assert await granted(client, "") == "MULT"
    await client.command("EPSV")
    assert tuner.applied[-1].granted == MultOptions()


async def test_rein_takes_it_back(client: RawClient, tuner: FakeTuner) -> None:
    await granted(client, "Rate=9000;")
    assert (await client.command("REIN")).code == 220
    await client.log_in()
    await client.command("EPSV")
    assert tuner.applied[-1].granted == MultOptions()


async def test_sessions_do_not_share_it(
    client: RawClient, server: Server, tuner: FakeTuner
) -> None:
    await granted(client, "Rate=9000;")
    async with raw_session(server) as other:
        await other.command("EPSV")
    assert tuner.applied[-1].granted == MultOptions()


async def test_whoever_asks_nothing_is_tuned_as_well(client: RawClient, tuner: FakeTuner) -> None:
    assert await download(client, "RETR file") == ([150, 226], CONTENT)
    assert {applied.granted for applied in tuner.applied} == {MultOptions()}
    assert tuner.observed
    assert tuner.asked == []


async def test_accepted_sockets_inherit(root: Path) -> None:
    """What the listener has been told is true of a connection from its first segment on."""

    class Small(FakeTuning):
        def apply(self, sock: socket.socket) -> None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 500)

        def observe(self, sock: socket.socket) -> Mapping[str, object]:
            seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
            return {}

    class Tuner(FakeTuner):
        def tuning(self, granted: MultOptions, connections: int, peer_host: str) -> FakeTuning:
            return Small(self, granted, connections)

    seen: list[int] = []
    (root / "file").write_bytes(CONTENT)
    async with running_server(root, tuner=Tuner()) as server, raw_session(server) as client:
        assert (await client.command("TYPE I")).code == 200
        assert await download(client, "RETR file") == ([150, 226], CONTENT)
    assert seen
    assert max(seen) <= 500
