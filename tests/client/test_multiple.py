"""MULT, MPSV and MPRT, and the way back to a single connection (Allman 1997 B.2)."""

import socket
from pathlib import Path

import pytest

from xftp.client.options import Options
from xftp.errors import ArgumentError, PeerError, ReplyError

from .scripted import (
    HOST,
    Conversation,
    Handler,
    epsv,
    mpsv,
    names,
    records,
    scripted,
    sends,
    sends_records,
    session_with,
)

DATA = bytes(range(256)) * 100
FEAT = "211-\r\n MULT Connections;\r\n SIZE\r\n MDTM\r\n MFMT\r\n211 end"


@pytest.mark.parametrize(
    ("reply", "wanted", "in_force", "limit", "supported"),
    [
        ("200 8 data connections available.", 4, 4, 8, True),
        ("200 8 data connections available.", None, 4, 8, True),
        ("200 2 data connections available.", 4, 2, 2, True),
        ("200 16 data connections available.", 100, 8, 16, True),
        ("200 Command okay.", 6, 6, None, True),
        ("200 0 data connections available.", 4, 1, 0, True),
        ("500 what?", 4, 1, None, False),
        ("501 no", 4, 1, None, False),
        ("502 no", 4, 1, None, False),
        ("504 no", 4, 1, None, False),
        ("450 not now", 4, 1, None, False),
        ("200 8 data connections available.", 1, 1, None, None),
    ],
)
async def test_the_number_in_force(
    reply: str, wanted: int | None, in_force: int, limit: int | None, supported: bool | None
) -> None:
    async with scripted({"MULT": reply}) as server, session_with(server) as session:
        assert await session.multiple(wanted) == in_force
        assert session.connections == in_force
        assert session.server_limit == limit
        assert session.supports_multiple is supported


@pytest.mark.parametrize("wanted", [0, -1])
async def test_less_than_one_connection_is_refused(wanted: int) -> None:
    async with scripted() as server, session_with(server) as session:
        with pytest.raises(ArgumentError):
            await session.multiple(wanted)
        assert "MULT" not in server.heard
    with pytest.raises(ArgumentError):
        Options(connections=wanted)


async def test_not_logged_in_is_no_missing_support() -> None:
    async with scripted({"MULT": "530 log in"}) as server, session_with(server) as session:
        with pytest.raises(ReplyError, match="530"):
            await session.multiple(4)
        assert session.supports_multiple is None


async def test_a_cut_number_is_told_once(tmp_path: Path) -> None:
    notices: list[str] = []
    script: dict[str, Handler] = {
        "MULT": "200 2 data connections available.",
        "MPSV": mpsv(2),
        "RETR": sends_records(records(DATA, [1, 3]), records(DATA, [0, 2])),
        "SIZE": f"213 {len(DATA)}",
    }
    async with (
        scripted(script) as server,
        session_with(server, connections=4, notice=notices.append) as session,
    ):
        for name in ("a", "b"):
            report = await session.get("a", tmp_path / name)
            assert report is not None
            assert len(report.connections) == 2
            assert (tmp_path / name).read_bytes() == DATA
    assert notices == ["4 data connections asked, 2 granted"]


async def test_mult_is_asked_before_the_first_transfer_and_its_lack_passes_in_silence(
    tmp_path: Path,
) -> None:
    notices: list[str] = []
    script: dict[str, Handler] = {"EPSV": epsv, "RETR": sends(DATA), "MULT": "500 what?"}
    async with (
        scripted(script) as server,
        session_with(server, connections=4, notice=notices.append) as session,
    ):
        for name in ("a", "b"):
            report = await session.get("a", tmp_path / name)
            assert report is not None
            assert not report.framed
            assert (tmp_path / name).read_bytes() == DATA
        assert server.verbs().count("MULT") == 1
    assert notices == []


@pytest.mark.parametrize("passive", [True, False])
async def test_a_refusal_of_the_addresses_leads_back_to_one_connection(
    tmp_path: Path, passive: bool
) -> None:
    async def eprt(talk: Conversation, argument: str) -> None:
        talk.data.put_nowait(await talk.dial(int(argument.split("|")[3])))
        talk.say("200 fine")

    script: dict[str, Handler] = {
        "MULT": "200 fine",
        "MPSV": "500 what?",
        "MPRT": "500 what?",
        "EPSV": epsv,
        "EPRT": eprt,
        "RETR": sends(DATA),
    }
    async with (
        scripted(script) as server,
        session_with(server, connections=4, passive=passive) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        assert session.connections == 1


async def test_only_as_many_ports_are_dialled_as_wanted(tmp_path: Path) -> None:
    script: dict[str, Handler] = {
        "MULT": "200 fine",
        "MPSV": mpsv(6),
        "RETR": sends_records(*[records(DATA, [number]) for number in range(4)]),
        "SIZE": f"213 {len(DATA)}",
    }
    async with scripted(script) as server, session_with(server, connections=4) as session:
        report = await session.get("a", tmp_path / "a")
        assert report is not None
        assert len(report.connections) == 4
        assert (tmp_path / "a").read_bytes() == DATA


@pytest.mark.parametrize("host", ["192.0.2.1", "8.8.8.8"])
async def test_another_address_is_not_dialled(tmp_path: Path, host: str) -> None:
    script: dict[str, Handler] = {
        "MULT": "200 fine",
        "MPSV": mpsv(2, host),
        "RETR": sends_records(records(DATA, [0, 1]), records(DATA, [2, 3])),
        "SIZE": f"213 {len(DATA)}",
    }
    trace: list[str] = []
    async with (
        scripted(script) as server,
        session_with(server, connections=2, trace=trace.append) as session,
    ):
        await session.get("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert f"* the server names the address {host}, {HOST} is dialled" in trace


@pytest.mark.parametrize("reply", ["229 nothing", "229 (IP4|TCP|127.0.0.1|0)", "229 (|||1|)"])
async def test_a_malformed_reply_to_mpsv_is_the_servers_fault(tmp_path: Path, reply: str) -> None:
    async with (
        scripted({"MULT": "200 fine", "MPSV": reply}) as server,
        session_with(server, connections=2) as session,
    ):
        with pytest.raises(PeerError):
            await session.get("a", tmp_path / "a")
    assert names(tmp_path) == []


@pytest.mark.parametrize("is_named", [False, True], ids=["any port", "a port of the user's"])
async def test_active_connections_go_to_one_port_named_many_times(
    tmp_path: Path, is_named: bool
) -> None:
    with socket.create_server((HOST, 0)) as listening:
        free_port = listening.getsockname()[1]
    listen_ports = (free_port,) if is_named else ()

    async def mprt(talk: Conversation, argument: str) -> None:
        assert argument.startswith(f"IP4|TCP|{HOST}|")
        ports = argument.split("|")[3].split(",")
        assert len(ports) == 3
        assert len(set(ports)) == 1
        assert not is_named or int(ports[0]) == free_port
        for port in ports:
            talk.data.put_nowait(await talk.dial(int(port)))
        talk.say("200 fine")

    script: dict[str, Handler] = {
        "MULT": "200 8 data connections available.",
        "MPRT": mprt,
        "RETR": sends_records(records(DATA, [0]), records(DATA, [1, 3]), records(DATA, [2])),
        "SIZE": f"213 {len(DATA)}",
    }
    async with (
        scripted(script) as server,
        session_with(server, connections=3, passive=False, listen_ports=listen_ports) as session,
    ):
        report = await session.get("a", tmp_path / "a")
        assert report is not None
        assert len(report.connections) == 3
        assert (tmp_path / "a").read_bytes() == DATA


async def test_a_server_of_our_kind_gets_its_commands_in_flights(tmp_path: Path) -> None:
    script: dict[str, Handler] = {
        "FEAT": FEAT,
        "MULT": "200 8 data connections available.",
        "OPTS": "200 fine",
        "MPSV": mpsv(2),
        "RETR": sends_records(records(DATA, [0, 1]), records(DATA, [2, 3])),
        "SIZE": f"213 {len(DATA)}",
        "MDTM": "213 20200101000000",
    }
    trace: list[str] = []
    async with (
        scripted(script) as server,
        session_with(server, connections=2, trace=trace.append) as session,
    ):
        await session.get("a", tmp_path / "a")
    assert (tmp_path / "a").stat().st_mtime == 1577836800
    flights = "".join(line[0] for line in trace if line[0] in "<>" and "211" not in line)
    # USER, PASS, FEAT one by one; TYPE MULT; SIZE MDTM OPTS MPSV; RETR with two replies
    assert flights == "<><><>" + ">><<" + ">>>><<<<" + "><<"
    assert "OPTS MULT Connections=2;" in server.heard
