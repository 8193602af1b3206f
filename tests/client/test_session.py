"""The commands that move nothing."""

import pytest

import xftp
from xftp.errors import PeerError, ReplyError

from .scripted import Conversation, scripted, session_with


async def test_commands_and_their_arguments() -> None:
    script = {
        "CWD": "250 ok",
        "CDUP": "200 ok",
        "MKD": '257 "made"',
        "RMD": "250 ok",
        "DELE": "250 ok",
        "RNFR": "350 to what?",
        "RNTO": "250 ok",
        "SYST": "215 UNIX",
        "HELP": "214-these\r\n A B\r\n214 end",
        "STAT": "211-so\r\n so\r\n211 end",
        "NOOP": "200 ok",
    }
    async with scripted(dict(script)) as server, session_with(server) as session:
        server.heard.clear()
        await session.cwd("a b")
        await session.cdup()
        await session.make_directory("c")
        await session.remove_directory("c")
        await session.remove("d")
        await session.rename("e", "f")
        assert await session.system() == "UNIX"
        assert "A B" in await session.help("X")
        assert "so" in await session.status()
        await session.noop()
        assert server.heard == [
            *("CWD a b", "CDUP", "MKD c", "RMD c", "DELE d", "RNFR e", "RNTO f"),
            *("SYST", "HELP X", "STAT", "NOOP"),
        ]


async def test_a_refusal_is_a_reply_error() -> None:
    async with (
        scripted({"DELE": "550 no such \x1bfile"}) as server,
        session_with(server) as session,
    ):
        with pytest.raises(ReplyError) as caught:
            await session.remove("x")
    assert caught.value.code == 550
    assert str(caught.value) == "DELE: the server answered 550 no such ?file"


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        ('257 "/a" is here', "/a"),
        ('257 "/a ""b"" c" is here', '/a "b" c'),
        ('257 "/\udcff"', "/\udcff"),
        ('257 "/"', "/"),
    ],
)
async def test_the_working_directory(reply: str, path: str) -> None:
    async with scripted({"PWD": reply}) as server, session_with(server) as session:
        assert await session.pwd() == path


async def test_unreadable_answers_are_the_servers_fault() -> None:
    script = {"PWD": "257 here", "SIZE": "213 big", "MDTM": "213 today"}
    async with scripted(dict(script)) as server, session_with(server) as session:
        with pytest.raises(PeerError):
            await session.pwd()
        with pytest.raises(PeerError):
            await session.size("a")
        with pytest.raises(PeerError):
            await session.modified("a")


async def test_size_and_time() -> None:
    script = {"SIZE": "213 123", "MDTM": "213 20200101000000.5"}
    async with scripted(dict(script)) as server, session_with(server) as session:
        assert await session.size("a") == 123
        assert await session.modified("a") == 1577836800.5


async def test_quote_gives_any_reply_and_may_change_the_type() -> None:
    async with scripted({"SITE": "500 what?"}) as server, session_with(server) as session:
        assert (await session.quote("site chmod 600 a")).code == 500
        assert server.heard[-1] == "SITE chmod 600 a"
        await session.set_type("I")
        await session.quote("TYPE A")
        await session.set_type("I")
        assert server.heard[-1] == "TYPE I"


async def test_a_type_whose_reply_was_never_seen_is_sent_again() -> None:
    async def lost(talk: Conversation, _: str) -> None:
        talk.say("500 what?")

    async with scripted() as server, session_with(server) as session:
        await session.set_type("I")
        server.script["TYPE"] = lost
        with pytest.raises(ReplyError):
            await session.set_type("A")
        server.script["TYPE"] = "200 ok"
        await session.set_type("I")
        assert server.heard[-3:] == ["TYPE I", "TYPE A", "TYPE I"]
        assert session.type == "I"


async def test_abort_without_a_transfer_says_so_to_the_server() -> None:
    async with scripted() as server, session_with(server) as session:
        await session.abort()
        assert server.heard[-1] == "ABOR"


def test_the_public_names_exist() -> None:
    for name in xftp.__all__:
        assert getattr(xftp, name) is not None
    assert set(xftp.__all__) <= set(dir(xftp))
    with pytest.raises(AttributeError):
        _ = xftp.nonsense
