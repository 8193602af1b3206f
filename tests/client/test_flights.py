"""Commands that leave together, and servers that cannot take them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.client.flights import (
    Pace,
    PipeliningError,
    check_replies,
    groups,
    patience_s,
)
from xftp.client.memory import KnownServer, MemoryFile
from xftp.client.options import Options
from xftp.client.session import open_session
from xftp.errors import ConnectError, LoginError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

from .scripted import (
    HOST,
    Conversation,
    Handler,
    ScriptedServer,
    epsv,
    mpsv,
    names,
    receives,
    records,
    scripted,
    sends,
    sends_records,
    session_with,
)

DATA = bytes(range(256)) * 100
OURS = "220 XFTP server ready."
FEAT = "211-\r\n MULT Connections;\r\n SIZE\r\n MDTM\r\n MFMT\r\n211 end"
SIMPLE_FEAT = "211-\r\n SIZE\r\n MDTM\r\n EPSV\r\n211 end"
PATIENCE_S = 0.3

VERBS = st.sampled_from(["TYPE", "SIZE", "MDTM", "EPSV", "MPSV", "OPTS", "MULT", "NOOP", "PWD"])


def commands(*verbs: str) -> list[Command]:
    return [Command(verb, "") for verb in verbs]


def download_script(**more: Handler) -> dict[str, Handler]:
    return {
        "FEAT": FEAT,
        "MULT": "200 8 data connections available.",
        "OPTS": "200 MULT Connections=2;",
        "MPSV": mpsv(2),
        "RETR": sends_records(records(DATA, [0, 1]), records(DATA, [2, 3])),
        "SIZE": f"213 {len(DATA)}",
        "MDTM": "213 20200101000000",
        **more,
    }


# -- which may leave together ---------------------------------------------------------------------


@given(st.lists(VERBS, max_size=12), st.sampled_from(list(Pace)))
def test_every_command_leaves_once_and_in_order(verbs: list[str], pace: Pace) -> None:
    cut = list(groups(pace, commands(*verbs)))
    assert [command.verb for group in cut for command in group] == verbs
    assert all(cut)
    if pace is Pace.ONE_BY_ONE:
        assert len(cut) == len(verbs)
    if pace is Pace.ALL:
        assert len(cut) == min(1, len(verbs))


@given(st.lists(VERBS, max_size=12))
def test_an_ordinary_server_never_has_two_commands_with_the_same_good_reply(
    verbs: list[str],
) -> None:
    codes = {"TYPE": 200, "MULT": 200, "OPTS": 200, "SIZE": 213, "MDTM": 213, "EPSV": 229}
    codes |= {"MPSV": 229, "NOOP": -1, "PWD": -2}
    for group in groups(Pace.SELF_CHECKING, commands(*verbs)):
        got = [codes[command.verb] for command in group]
        assert len(set(got)) == len(got)
        assert len(group) == 1 or not {-1, -2} & set(got)


@pytest.mark.parametrize(
    ("verbs", "codes", "fits"),
    [
        (("USER", "PASS", "FEAT"), (331, 230, 211), True),
        (("USER", "PASS", "FEAT"), (331, 530, 530), True),  # a wrong password is one
        (("USER", "PASS", "FEAT"), (331, 503, 211), False),
        (("USER", "PASS", "FEAT"), (230, 503, 211), True),  # no password was needed
        (("USER", "PASS"), (500, 500), False),
        (("TYPE", "SIZE"), (213, 200), False),
        (("TYPE", "SIZE"), (200, 550), True),
        (("TYPE", "EPSV"), (502, 229), False),
        (("SIZE", "EPSV"), (229, 213), False),
    ],
)
def test_replies_that_do_not_fit(
    verbs: tuple[str, ...], codes: tuple[int, ...], fits: bool
) -> None:
    replies = [Reply(code, ("x",)) for code in codes]
    if fits:
        check_replies(commands(*verbs), replies)
        return
    with pytest.raises(PipeliningError):
        check_replies(commands(*verbs), replies)


def test_patience_grows_with_the_path() -> None:
    assert patience_s(10, None) == patience_s(10, 0.6) == 10
    assert patience_s(10, 1.5) == 15


# -- servers of our own kind ----------------------------------------------------------------------


async def test_the_greeting_of_our_own_kind_lets_all_leave_at_once(tmp_path: Path) -> None:
    trace: list[str] = []
    async with (
        scripted(download_script(), greeting=OURS) as server,
        session_with(server, connections=2, trace=trace.append) as session,
    ):
        await session.get("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert server.sessions == 1
    flights = "".join(line[0] for line in trace if line[0] in "<>" and line[:5] != "< 211")
    # The greeting; USER PASS FEAT OPTS MULT TYPE; SIZE MDTM OPTS MPSV; RETR, and its two replies.
    assert flights == "<" + ">>>>>>" + "<<<<<" + ">>>><<<<" + "><<"


async def test_a_deferred_login_leaves_with_the_first_transfer(tmp_path: Path) -> None:
    trace: list[str] = []
    options = Options(connections=2, trace=trace.append)
    async with scripted(download_script(), greeting=OURS) as server:
        url = f"ftp://{HOST}:{server.port}/"
        session = await open_session(url, options=options, defer=True)
        assert server.heard == []
        await session.get("a", tmp_path / "a")
        await session.quit()
    assert (tmp_path / "a").read_bytes() == DATA
    kinds = [line[:6] for line in trace if line[0] in "<>"]
    assert kinds.index("> RETR") == kinds.index("< 229 ") + 1
    verbs = [kind[2:] for kind in kinds[1 : kinds.index("< 331 ")]]
    login, file = ["USER", "PASS", "FEAT", "OPTS", "MULT"], ["TYPE", "SIZE", "MDTM", "OPTS", "MPSV"]
    assert verbs == login + file


async def test_a_deferred_login_that_is_refused_is_told_by_the_transfer(tmp_path: Path) -> None:
    script = download_script(PASS="530 wrong", SIZE="530 no", MPSV="530 no", FEAT="530 no")
    async with scripted(script, greeting=OURS) as server:
        url = f"ftp://joe:secret@{HOST}:{server.port}/"
        session = await open_session(url, defer=True)
        with pytest.raises(LoginError, match="530 wrong"):
            await session.get("a", tmp_path / "a")
        assert session.is_closed
        assert session.login_error is not None
    assert server.verbs().count("PASS") == 1
    assert names(tmp_path) == []


async def test_any_other_call_sends_a_deferred_login_first() -> None:
    async with scripted(download_script(PWD='257 "/"'), greeting=OURS) as server:
        session = await open_session(f"ftp://{HOST}:{server.port}/", defer=True)
        assert await session.pwd() == "/"
        assert "MULT" in await session.features()
        await session.quit()
    assert server.verbs()[:2] == ["USER", "PASS"]
    assert server.verbs()[-2:] == ["PWD", "QUIT"]


async def test_a_session_that_never_asked_anything_just_closes() -> None:
    async with scripted(download_script(), greeting=OURS) as server:
        session = await open_session(f"ftp://{HOST}:{server.port}/", defer=True)
        await session.quit()
    assert server.heard == []


# -- servers that cannot --------------------------------------------------------------------------


class TakesFirstLine(ScriptedServer):
    """Reads a packet and looks at its first line only."""

    async def lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while packet := await reader.read(65536):
            yield packet.split(b"\n")[0] + b"\n"


class TakesPacketForLine(ScriptedServer):
    """Takes whatever comes in one packet for one command."""

    async def lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while packet := await reader.read(65536):
            is_one = packet.count(b"\n") == 1
            yield packet if is_one else b"NONSENSE\r\n"


class HangsUp(ScriptedServer):
    """Closes the connection when more than one command is there."""

    async def lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while packet := await reader.read(65536):
            if packet.count(b"\n") > 1:
                return
            yield packet


class AnswersBackwards(ScriptedServer):
    """Executes the last command of a packet first."""

    async def lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while packet := await reader.read(65536):
            for line in reversed(packet.splitlines(keepends=True)):
                yield line


class ForgetsEarlyCommands(ScriptedServer):
    """Throws away what came before it was ready."""

    async def greet(self, talk: Conversation) -> None:
        early = asyncio.create_task(talk.reader.read(65536))
        await asyncio.wait({early}, timeout=PATIENCE_S / 3)
        if not early.done():
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
        await super().greet(talk)


CANNOT = [TakesFirstLine, TakesPacketForLine, HangsUp, AnswersBackwards]


@pytest.mark.parametrize("kind", CANNOT)
async def test_a_server_that_cannot_take_flights_is_found_out(
    tmp_path: Path, kind: type[ScriptedServer]
) -> None:
    """A new connection, one command at a time; the file is asked for once, and arrives."""
    memory = MemoryFile(tmp_path / "memory" / "paths.json")
    options = {"connections": 2, "pipelining_patience_s": PATIENCE_S, "memory": memory}
    (tmp_path / "here").mkdir()
    async with scripted(download_script(), kind, greeting=OURS) as server:
        async with session_with(server, **options) as session:
            for name in ("a", "b"):
                await session.get(name, tmp_path / "here")
                assert (tmp_path / "here" / name).read_bytes() == DATA
        assert server.sessions == 2
        assert server.verbs().count("RETR") == 2
        known = memory.server(HOST, server.port)
        assert known is not None
        assert not known.pipelines
        # The next session knows, and does not try again.
        async with session_with(server, **options) as session:
            await session.get("c", tmp_path / "here")
        assert server.sessions == 3
    assert names(tmp_path / "here") == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [*CANNOT, ForgetsEarlyCommands])
async def test_a_server_that_is_wrongly_said_to_be_ours(
    tmp_path: Path, kind: type[ScriptedServer]
) -> None:
    """Commands before the greeting, a server that is another: the upload happens once."""
    stored: list[bytes] = []
    script: dict[str, Handler] = {
        "FEAT": SIMPLE_FEAT,
        "MULT": "500 what?",
        "EPSV": epsv,
        "STOR": receives(stored),
        "SIZE": "550 none",
    }
    options = Options(connections=4, assume_xftpd=True, pipelining_patience_s=PATIENCE_S)
    (tmp_path / "a").write_bytes(DATA)
    async with scripted(script, kind) as server:
        url = f"ftp://{HOST}:{server.port}/"
        session = await open_session(url, options=options, defer=True)
        await session.put(tmp_path / "a")
        await session.quit()
    assert stored == [DATA]
    assert server.verbs().count("STOR") == 1
    assert server.sessions == 2


@pytest.mark.parametrize("kind", [ScriptedServer, *CANNOT])
async def test_an_ordinary_server_is_tried_after_the_login(
    tmp_path: Path, kind: type[ScriptedServer]
) -> None:
    script: dict[str, Handler] = {
        "FEAT": SIMPLE_FEAT,
        "EPSV": epsv,
        "RETR": sends(DATA),
        "SIZE": f"213 {len(DATA)}",
        "MDTM": "213 20200101000000",
    }
    trace: list[str] = []
    async with (
        scripted(script, kind) as server,
        session_with(server, pipelining_patience_s=PATIENCE_S, trace=trace.append) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        assert (tmp_path / "a").stat().st_mtime == 1577836800
        assert server.verbs().count("RETR") == 1
        assert server.sessions == (1 if kind is ScriptedServer else 2)
    if kind is ScriptedServer:
        kinds = [line.split(" ")[1] for line in trace if line[0] == ">"]
        first = kinds.index("TYPE")
        assert kinds[first : first + 2] == ["TYPE", "SIZE"]


async def test_a_session_that_is_refused_is_not_tried_again(tmp_path: Path) -> None:
    """421 is the server's own word, and no sign that it cannot take flights."""
    for script, greeting in (
        ({}, "421 too many users"),
        ({"USER": "421 too many users"}, OURS),
        ({"PASS": "421 too many users"}, OURS),
    ):
        async with scripted(download_script(**script), greeting=greeting) as server:
            with pytest.raises(ConnectError, match="421 too many users"):
                async with session_with(server, connections=2) as session:
                    await session.get("a", tmp_path / "a")
            assert server.sessions == 1
            assert server.verbs().count("USER") <= 1


async def test_a_control_connection_that_ends_mid_transfer_is_no_reason_to_doubt_flights(
    tmp_path: Path,
) -> None:
    async def cut(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        for _reader, writer in await talk.connections(2):
            writer.write(records(DATA, [0]))
        talk.hang_up()

    async with scripted(download_script(RETR=cut), greeting=OURS) as server:
        with pytest.raises(XftpError, match="closed the control connection"):
            async with session_with(server, connections=2) as session:
                await session.get("a", tmp_path / "a")
        assert server.sessions == 1


# -- active: the transfer leaves too --------------------------------------------------------------


def active_script(**more: Handler) -> dict[str, Handler]:
    async def mprt(talk: Conversation, argument: str) -> None:
        talk.values["ports"] = [int(port) for port in argument.split("|")[3].split(",")]
        talk.say("200 fine")

    async def retr(talk: Conversation, _: str) -> None:
        for port in talk.values["ports"]:
            talk.data.put_nowait(await talk.dial(port))
        await sending(talk, _)

    sending = sends_records(records(DATA, [0, 1]), records(DATA, [2, 3]))
    assert not isinstance(sending, str)
    return download_script(MPRT=mprt, RETR=retr, **more)


async def test_where_the_server_dials_the_transfer_leaves_in_the_first_flight(
    tmp_path: Path,
) -> None:
    trace: list[str] = []
    options = Options(connections=2, passive=False, trace=trace.append)
    async with scripted(active_script(), greeting=OURS) as server:
        url = f"ftp://{HOST}:{server.port}/"
        session = await open_session(url, options=options, defer=True)
        await session.get("a", tmp_path / "a")
        await session.quit()
    assert (tmp_path / "a").read_bytes() == DATA
    kinds = [line[:6] for line in trace if line[0] in "<>"]
    assert kinds.index("> RETR") < kinds.index("< 331 ")
    assert server.verbs().count("RETR") == 1


async def test_a_transfer_that_left_early_is_stopped_when_this_side_cannot(tmp_path: Path) -> None:
    """More records than sequence numbers: known only when SIZE is answered."""
    script = active_script(SIZE=f"213 {2**32 * 8192 + 1}", NOOP="200 yes")
    script |= {"RETR": "150 go", "ABOR": "426 stopped\r\n226 done"}
    options = Options(connections=2, passive=False)
    async with scripted(script, greeting=OURS) as server:
        url = f"ftp://{HOST}:{server.port}/"
        session = await open_session(url, options=options, defer=True)
        with pytest.raises(XftpError):
            await session.get("a", tmp_path / "a")
        await session.noop()
        await session.quit()
    assert server.verbs()[-3:] == ["ABOR", "NOOP", "QUIT"]
    assert names(tmp_path) == []


async def test_a_store_leaves_early_only_at_a_server_that_was_proven(tmp_path: Path) -> None:
    async def stor(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        for port in talk.values["ports"]:
            reader, writer = await talk.dial(port)
            stored.append(await reader.read())
            writer.close()
        talk.say("226 done")

    stored: list[bytes] = []
    trace: list[str] = []
    options = Options(connections=2, passive=False, trace=trace.append)
    (tmp_path / "a").write_bytes(b"x")
    async with scripted(active_script(STOR=stor), greeting=OURS) as server:
        url = f"ftp://{HOST}:{server.port}/"
        session = await open_session(url, options=options, defer=True)
        await session.put(tmp_path / "a", existing="overwrite")
        first = list(trace)
        await session.put(tmp_path / "a", existing="overwrite")
        await session.quit()
    kinds = [line[:6] for line in first]
    assert kinds.index("> STOR") > kinds.index("< 331 ")
    second = [line[:6] for line in trace[len(first) :]]
    assert second.index("> STOR") == second.index("> MPRT") + 1
    assert b"".join(stored) == (bytes(4) + b"x") * 2


async def test_what_memory_knows_is_sent_before_the_greeting(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path / "paths.json")
    heard_early = asyncio.Event()

    class Late(ScriptedServer):
        async def greet(self, talk: Conversation) -> None:
            early = await talk.reader.readuntil(b"MPSV\r\n")
            talk.reader._buffer[:0] = early  # type: ignore[attr-defined]  # to be read again
            heard_early.set()
            await super().greet(talk)

    async with scripted(download_script(), Late, greeting=OURS) as server:
        known = KnownServer(True, features={"MULT": "Connections;", "SIZE": ""}, connection_limit=8)
        memory.note_server(HOST, server.port, known)
        url = f"ftp://{HOST}:{server.port}/"
        options = Options(connections=2, memory=memory)
        session = await open_session(url, options=options, defer=True)
        await session.get("a", tmp_path / "a")
        await session.quit()
        assert heard_early.is_set()
        learnt = memory.server(HOST, server.port)
        assert learnt is not None
        assert learnt.features is not None
        assert "MDTM" in learnt.features  # FEAT said more than was remembered
    assert (tmp_path / "a").read_bytes() == DATA
