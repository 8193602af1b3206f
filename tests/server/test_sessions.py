"""The control connection: lines, order of replies, limits, and mistakes of our own."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.protocol.replies import Reply
from xftp.server import Server
from xftp.server.commands import TABLE
from xftp.server.filesystem import Filesystem
from xftp.server.limits import Limit, Limits
from xftp.server.session import Session

from .support import codes, download, listening, outcome, plain, until, upload


def _is_closed(client: RawClient) -> bool:
    return client.reader.at_eof()


async def _closes(client: RawClient) -> None:
    with pytest.raises(ConnectionError):
        await client.reply()


# -- pipelining ------------------------------------------------------------------------------------

MIX = (
    ("NOOP", 200),
    ("PWD", 257),
    ("XYZZY", 500),
    ("MKD d{n}", 257),
    ("TYPE Q", 501),
    ("RETR nothing", 425),
    ("MULT", 200),
    ("MULT 4", 500),
    ("RNTO x", 503),
    ("STAT", 211),
    ("ABOR", 225),
    ("FEAT", 211),
)


async def test_200_commands_at_once(client: RawClient, root: Path) -> None:
    commands = [MIX[n % len(MIX)] for n in range(200)]
    client.send(*(command.format(n=n) for n, (command, _) in enumerate(commands)))
    replies = [await client.reply() for _ in commands]
    assert [reply.code for reply in replies] == [code for _, code in commands]
    made = [reply.text for reply in replies if "was made" in reply.text]
    assert made == [f'"/d{n}" was made.' for n in range(3, 200, len(MIX))]


async def test_transfers_sent_at_once(client: RawClient, root: Path) -> None:
    (root / "one").write_bytes(b"1" * 100_000)
    (root / "two").write_bytes(b"2" * 100_000)
    async with listening(3) as (ports, arrived):
        first, second, third = (f"EPRT |1|127.0.0.1|{port}|" for port in ports)
        client.send(first, "RETR one", second, "RETR two", "RETR two", third, "LIST", "PWD")
        for number, expected in enumerate((b"1" * 100_000, b"2" * 100_000)):
            await until(lambda: len(arrived) > number)  # noqa: B023 (awaited at once)
            assert await arrived[number].read() == expected
        await until(lambda: len(arrived) == 3)
        assert b"two" in await arrived[2].read()
        expected_codes = [200, 150, 226, 200, 150, 226, 425, 200, 150, 226, 257]
        assert await codes(client, len(expected_codes)) == expected_codes


async def test_commands_wait_for_the_transfer(client: RawClient, root: Path) -> None:
    """What comes while data moves changes nothing of it."""
    content = b"line\r\n" * 1000
    (root / "sub").mkdir()
    (root / "other").write_bytes(b"?")
    data = await plain(client)
    client.send("STOR file")
    assert await codes(client, 1) == [150]
    await data.send(content[:3000])
    client.send("REST 5", "TYPE A", "CWD sub", "RETR ../other", "STOR ../file", "RNFR x")
    assert (await client.command("STAT")).code == 211  # first: the others wait
    await data.finish(content[3000:])
    assert await codes(client, 7) == [226, 350, 200, 250, 425, 425, 550]
    assert (root / "file").read_bytes() == content


# -- lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [b"RETR a\xff\xfe\r\n", b"RETR a\rb\r\n", b"RETRIEVE a\r\n"])
async def test_what_was_said_for_a_line_that_is_none_holds_for_no_other(
    client: RawClient, root: Path, line: bytes
) -> None:
    (root / "other").write_bytes(b"0123456789")
    assert (await client.command("REST 5")).code == 350
    client.writer.write(line)
    assert await codes(client, 1) == [500]
    assert await download(client, "RETR other") == ([150, 226], b"0123456789")


async def test_line_cut_at_every_byte(client: RawClient) -> None:
    for byte in b"NOOP\r\nPWD\r\n":
        client.writer.write(bytes([byte]))
        await client.writer.drain()
    assert await codes(client, 2) == [200, 257]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"noop\r\n", [200]),
        (b"NOOP\n", [200]),
        (b"\r\n\r\nNOOP\r\n", [200]),
        (b"NOOP ignored\r\n", [200]),
        (b"N\0OOP\r\n", [200]),  # no operation, in Telnet
        (b"CWD a\0b\r\n", [500]),
        (b"CWD a\rb\r\n", [500]),
        (b"*NOOP\r\n", [500]),
        (b" NOOP\r\n", [500]),
        (b"NO\xffOP\r\n", [500]),
        (b"NOOP" * 5 + b"\r\n", [500]),
        (b"CWD " + b"x" * 20_000 + b"\r\n", [500]),
        (b"x" * 1_000_000 + b"\r\nPWD\r\n", [500, 257]),
        (b"\xff\xfb\x01\xff\xf1NOOP\r\n", [200]),
    ],
)
async def test_odd_lines(client: RawClient, line: bytes, expected: list[int]) -> None:
    client.writer.write(line)
    assert await codes(client, len(expected)) == expected
    assert (await client.command("NOOP")).code == 200


async def test_client_that_closes_its_half(server: Server) -> None:
    """Commands sent before are executed all the same."""
    client = await RawClient.connect("127.0.0.1", server.server_port)
    client.send("USER anonymous", "PASS x", "MKD a", "MKD b", "PWD", "RMD a", "STAT /")
    client.writer.write_eof()
    assert await codes(client, 7) == [331, 230, 257, 257, 257, 250, 212]
    await _closes(client)
    await client.close()


# -- limits ----------------------------------------------------------------------------------------


async def test_idle_session_ends(root: Path) -> None:
    async with running_server(root, idle_timeout_s=0.1) as server, raw_session(server) as client:
        assert (await client.reply()).code == 421
        await _closes(client)


async def test_session_without_login_ends(root: Path) -> None:
    async with running_server(root, login_timeout_s=0.1) as server:
        client = await RawClient.connect("127.0.0.1", server.server_port)
        assert (await client.command("USER anonymous")).code == 331
        assert (await client.reply()).code == 421
        await _closes(client)
        await client.close()


async def test_transfer_is_not_idle(root: Path) -> None:
    async with running_server(root, idle_timeout_s=0.1) as server, raw_session(server) as client:
        data = await plain(client)
        client.send("STOR file")
        assert (await client.reply()).code == 150
        loop = asyncio.get_running_loop()
        late = loop.time() + 0.3
        await until(lambda: loop.time() > late)
        await data.finish(b"abc")
        assert (await client.reply()).code == 226


async def test_who_reads_no_replies_is_not_waited_for(
    client: RawClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xftp.server.control._WRITE_TIMEOUT_S", 0.2)
    client.writer.transport.pause_reading()
    (session,) = server.sessions
    session.control._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # soon full
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    questions = b"HELP\r\n" * 1000

    async def is_gone() -> bool:
        if not client.writer.is_closing():
            client.writer.write(questions)
        return server.session_count == 0

    await until(is_gone)


async def test_session_limit(root: Path) -> None:
    async with running_server(root, limits=Limits(sessions=Limit(2))) as server:
        async with raw_session(server) as first, raw_session(server) as second:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.server_port)
            assert (await reader.read()).startswith(b"421 ")
            writer.close()
            assert await second.command("NOOP")
            assert (await first.command("QUIT")).code == 221
            await until(lambda: server.session_count == 1)
            async with raw_session(server) as third:
                assert (await third.command("NOOP")).code == 200
        await until(lambda: server.session_count == 0)


async def test_many_questions_unread(client: RawClient, server: Server, root: Path) -> None:
    """Who asks STAT on and on during a transfer, and reads nothing, does not fill our memory."""
    await plain(client)
    client.send("STOR file")
    assert (await client.reply()).code == 150
    client.writer.transport.pause_reading()
    (session,) = server.sessions
    transport = session.control._writer.transport
    questions = b"STAT\r\n" * 1000

    async def stuck() -> bool:
        client.writer.write(questions)
        await asyncio.sleep(0)
        return transport.get_write_buffer_size() > 0

    await until(stuck)
    for _ in range(100):
        client.writer.write(questions)
    await asyncio.wait([asyncio.create_task(client.writer.drain())], timeout=0.2)
    assert transport.get_write_buffer_size() < 1_000_000
    client.writer.transport.abort()


# -- mistakes of ours ------------------------------------------------------------------------------


async def test_crashing_handler(
    client: RawClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def crash(session: Session, argument: str) -> Reply:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setitem(TABLE, "SYST", replace(TABLE["SYST"], handler=crash))
    with caplog.at_level(logging.ERROR):
        assert (await client.command("SYST")).code == 451
    assert "ZeroDivisionError" in caplog.text
    assert (await client.command("NOOP")).code == 200


@pytest.mark.parametrize(
    ("command", "method"), [("RETR file", "open_source"), ("STOR file", "open_target")]
)
async def test_crashing_transfer(
    client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch, command: str, method: str
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake")

    (root / "file").write_bytes(b"abc")
    with monkeypatch.context() as patched:
        patched.setattr(Filesystem, method, crash)
        data = await plain(client)
        assert (await client.command(command)).code == 451
        assert await data.read() == b""
    assert await download(client, "RETR file") == ([150, 226], b"abc")


async def test_password_is_not_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with raw_session(server) as client:
            assert (await client.command("NOOP")).code == 200
    assert "NOOP" in caplog.text
    assert "me@here" not in caplog.text


# -- the end of the server -------------------------------------------------------------------------


async def test_shutdown_lets_the_transfer_finish(root: Path) -> None:
    async with (
        running_server(root) as server,
        raw_session(server) as busy,
        raw_session(server) as idle,
    ):
        data = await plain(busy)
        busy.send("STOR file")
        assert (await busy.reply()).code == 150
        ending = asyncio.create_task(server.shut_down())
        assert (await idle.reply()).code == 421
        await _closes(idle)
        with pytest.raises(ConnectionError):
            await RawClient.connect("127.0.0.1", server.server_port)
        await data.finish(b"abc")
        assert await codes(busy, 2) == [226, 421]
        await ending
    assert (root / "file").read_bytes() == b"abc"


async def test_shutdown_has_an_end(root: Path) -> None:
    async with running_server(root) as server, raw_session(server) as client:
        data = await plain(client)
        client.send("STOR file")
        assert (await client.reply()).code == 150
        await data.send(b"abc")
        await server.shut_down(patience_s=0.1)
        assert server.session_count == 0
    assert not (root / "file").exists()


async def test_next_session_after_a_lost_one(client: RawClient, server: Server) -> None:
    await client.close()
    await until(lambda: server.session_count == 0)
    async with raw_session(server) as another:
        assert await upload(another, "STOR file", b"abc") == [150, 226]
        assert await outcome_of(another, "SIZE file") == [550]  # TYPE A, as every session begins


async def outcome_of(client: RawClient, command: str) -> list[int]:
    client.send(command)
    return await outcome(client)
