"""One data connection: EPSV and PASV, EPRT and PORT."""

from pathlib import Path

import pytest

from xftp.errors import DataConnectionError, PeerError, ReplyError

from .scripted import (
    Conversation,
    Handler,
    epsv,
    names,
    pasv,
    receives,
    scripted,
    sends,
    session_with,
)

DATA = b"one connection is enough\n" * 1000


async def port(talk: Conversation, argument: str) -> None:
    *_, high, low = map(int, argument.split(","))
    talk.data.put_nowait(await talk.dial(256 * high + low))
    talk.say("200 fine")


async def foreign_pasv(talk: Conversation, _: str) -> None:
    high, low = divmod(await talk.listen(), 256)
    talk.say(f"227 192,0,2,1,{high},{low}")


@pytest.mark.parametrize(
    ("script", "passive", "expected"),
    [
        ({"EPSV": epsv}, True, ["EPSV", "RETR", "EPSV", "RETR"]),
        ({"PASV": pasv}, True, ["EPSV", "PASV", "RETR", "PASV", "RETR"]),
        ({"EPSV": "229 unreadable", "PASV": pasv}, True, ["EPSV", "PASV", "RETR"] * 2),
        ({"PASV": foreign_pasv}, True, ["EPSV", "PASV", "RETR", "PASV", "RETR"]),
        ({"PORT": port}, False, ["EPRT", "PORT", "RETR", "PORT", "RETR"]),
    ],
)
async def test_what_works_is_found_and_remembered(
    tmp_path: Path, script: dict[str, Handler], passive: bool, expected: list[str]
) -> None:
    async with (
        scripted({"RETR": sends(DATA), **script}) as server,
        session_with(server, passive=passive) as session,
    ):
        for name in ("a", "b"):
            await session.get("x", tmp_path / name)
            assert (tmp_path / name).read_bytes() == DATA
        data = {"EPSV", "PASV", "EPRT", "PORT", "RETR"}
        assert [verb for verb in server.verbs() if verb in data] == expected


async def test_nobody_listens_where_the_server_says(tmp_path: Path) -> None:
    async def nowhere(talk: Conversation, _: str) -> None:
        number = await talk.listen()
        talk.server.listeners.pop().close()
        talk.say(f"229 here (|||{number}|)")

    async with (
        scripted({"EPSV": nowhere, "RETR": "425 no connection"}) as server,
        session_with(server) as session,
    ):
        with pytest.raises((ReplyError, DataConnectionError)):
            await session.get("x", tmp_path / "a")
        assert not session.is_closed
    assert names(tmp_path) == []


@pytest.mark.parametrize("reply", ["227 nothing", "227 (1,2,3,4,5,256)", "227 (1,2,3,4,0,0)"])
async def test_a_malformed_reply_to_pasv_is_the_servers_fault(tmp_path: Path, reply: str) -> None:
    async with scripted({"PASV": reply}) as server, session_with(server) as session:
        with pytest.raises(PeerError):
            await session.get("x", tmp_path / "a")


async def test_a_file_is_stored(tmp_path: Path) -> None:
    got: list[bytes] = []
    source = tmp_path / "a"
    source.write_bytes(DATA)
    script: dict[str, Handler] = {"EPSV": epsv, "STOR": receives(got), "SIZE": "550 none"}
    async with scripted(script) as server, session_with(server) as session:
        report = await session.put(source)
        assert report is not None
        assert report.bytes == len(DATA)
        assert server.heard[-3:] == [f"ALLO {len(DATA)}", "EPSV", "STOR a"]
    assert got == [DATA]


async def test_text_is_converted_both_ways(tmp_path: Path) -> None:
    got: list[bytes] = []
    script: dict[str, Handler] = {
        "EPSV": epsv,
        "STOR": receives(got),
        "RETR": sends(b"one\r\ntwo\rthree\r\n", opening="150 go (16 bytes)"),
        "SIZE": "550 not in ASCII",
        "MLST": "502 no",
    }
    async with scripted(script) as server, session_with(server, connections=4) as session:
        await session.set_type("a")
        await session.get("x", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == b"one\ntwo\rthree\n"
        await session.put(tmp_path / "a", "x", existing="overwrite")
        assert "TYPE A" in server.heard
        assert "MULT" not in server.heard
    assert got == [b"one\r\ntwo\rthree\r\n"]


async def test_streams_go_in_order(tmp_path: Path) -> None:
    got: list[bytes] = []
    pieces = iter([b"a" * 100_000, None, b"b", b""])
    script: dict[str, Handler] = {"EPSV": epsv, "STOR": receives(got), "RETR": sends(DATA)}
    async with scripted(script) as server, session_with(server) as session:
        text = bytearray()
        report = await session.get_stream("x", text.extend)
        assert (bytes(text), report.bytes) == (DATA, len(DATA))
        await session.put_stream(lambda: next(pieces), "x")
    assert got == [b"a" * 100_000 + b"b"]
