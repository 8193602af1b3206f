"""A live session that is sent anything: every command gets its replies, in order, and no more."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tests.server.support import until
from tests.support import RawClient
from xftp.protocol.commands import BadLine, Command, CommandParser
from xftp.protocol.replies import Reply
from xftp.server import Account, Server, Settings
from xftp.server.commands import TABLE

_HOST = "127.0.0.1"
_MOST_LINES = 24
_MOST_DIALLED = 8
_PATIENCE_S = 60.0
_CONTENT = bytes(range(256)) * 40
_PORTS = re.compile(r"\((?:\|\|\|(\d+)\||IP4\|TCP\|[\d.]+\|([\d,]+)|[\d,]*?(\d+),(\d+))\)")

_MAY_OVERTAKE = frozenset({"ABOR", "STAT"})
"""Answered while a transfer runs that was asked for before them (docs/protocol.md)."""


def session(data: bytes) -> None:
    """Send the lines of `data`, each behind it a command whose reply is known, all at once.

    Whatever the lines say, each command gets one final reply, none of them "internal error", and
    nothing is left in the server when the session has ended.
    """
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")[:_MOST_LINES]]
    stream, commands = _with_markers(lines)
    before = _descriptors()
    asyncio.run(_talk(stream, commands, payload=data[:4096]))
    assert _descriptors() == before


def _with_markers(lines: list[bytes]) -> tuple[bytes, list[Command | BadLine]]:
    """Give what is sent, up to a QUIT, and the commands in it."""
    parser, stream = CommandParser(), b""
    commands: list[Command | BadLine] = []
    for number, line in enumerate([*lines, b"QUIT"]):
        piece = line + b"\r\n"
        if line != b"QUIT":
            piece += b"Z%d\r\n" % number
        stream += piece
        commands += parser.feed(piece)
        quits = [n for n, each in enumerate(commands) if _verb(each) == "QUIT"]
        if quits:
            return stream, commands[: quits[0] + 1]
    raise AssertionError("the last line is QUIT")


def _verb(command: Command | BadLine) -> str:
    return command.verb if isinstance(command, Command) else ""


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _talk(stream: bytes, commands: list[Command | BadLine], payload: bytes) -> None:
    async with asyncio.timeout(_PATIENCE_S), _running() as server:
        client = await RawClient.connect(_HOST, server.server_port)
        data = _DataSide(payload)
        try:
            await client.log_in()
            client.writer.write(stream)
            replies = [reply async for reply in _all_replies(client, data)]
        finally:
            await data.close()
            await client.close()
        _check(commands, replies)
        await until(lambda: not server.session_count)
        shared = server.shared
        for places in (shared.transfers, shared.listeners, shared.data_connections):
            assert places.total == 0


@contextlib.asynccontextmanager
async def _running() -> AsyncIterator[Server]:
    """Run a server that loses no time over a wrong password or a missing connection."""
    with _tree() as root:
        accounts = (Account("anonymous", root, None, True), Account("ann", root, "secret"))
        settings = Settings(
            accounts, login_tries=1000, wrong_login_s=0.0, open_timeout_s=0.1, stall_timeout_s=1.0
        )
        server = Server(settings)
        await server.start(_HOST, 0)
        try:
            yield server
        finally:
            await server.close()


@contextlib.contextmanager
def _tree() -> Iterator[Path]:
    """Make files to play with; what became of their modes hinders nobody from removing them."""
    with tempfile.TemporaryDirectory(prefix="xftp-fuzz-") as name:
        root = Path(name) / "root"
        (root / "dir").mkdir(parents=True)
        (root / "file").write_bytes(_CONTENT)
        (root / "dir" / "inner").write_bytes(_CONTENT)
        (root / "link").symlink_to("dir/inner")
        try:
            yield root
        finally:
            root.chmod(0o700)
            for path, directories, _ in os.walk(root):
                for each in directories:
                    Path(path, each).chmod(0o700)


async def _all_replies(client: RawClient, data: _DataSide) -> AsyncIterator[Reply]:
    with contextlib.suppress(ConnectionError):
        while True:
            reply = await client.reply()
            if reply.code in (227, 229):
                data.dial(reply.text)
            yield reply


def _check(commands: list[Command | BadLine], replies: list[Reply]) -> None:
    assert not [reply for reply in replies if "Internal error" in reply.text]
    finals = [reply for reply in replies if not reply.is_preliminary]
    assert len(finals) == len(commands)
    if not any(_verb(each) in _MAY_OVERTAKE for each in commands):
        for command, reply in zip(commands, finals, strict=True):
            _check_pair(command, reply)
        for reply, following in itertools.pairwise(replies):
            assert not (reply.is_preliminary and following.is_preliminary)
    said = [reply.text for reply in finals if reply.code == 500]
    expected = [_unknown(each) for each in commands if _verb(each)[:1] == "Z"]
    assert [text for text in said if text.startswith("Z")] == expected
    assert finals[-1].code == 221


def _check_pair(command: Command | BadLine, reply: Reply) -> None:
    """See that a final reply can be that to this command."""
    if isinstance(command, BadLine):
        assert (reply.code, reply.text) == (500, f"{command.reason}.")
    elif command.verb not in TABLE:
        assert (reply.code, reply.text) == (500, _unknown(command))
    else:
        assert "is not understood" not in reply.text


def _unknown(command: Command | BadLine) -> str:
    return f"{_verb(command)} is not understood."


class _DataSide:
    """Dials what the server offers, sends the same bytes everywhere, and reads what comes."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._tasks: list[asyncio.Task[None]] = []

    def dial(self, text: str) -> None:
        """Dial the ports that a reply to PASV, EPSV or MPSV tells."""
        found = _PORTS.search(text)
        if found is None:
            return
        extended, multiple, high, low = found.groups()
        if multiple:
            ports = [int(port) for port in multiple.split(",")]
        else:
            ports = [int(extended) if extended else int(high) * 256 + int(low)]
        for port in ports[:_MOST_DIALLED]:
            self._tasks.append(asyncio.create_task(self._exchange(port)))

    async def _exchange(self, port: int) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(_HOST, port)
            try:
                writer.write(self._payload)
                writer.write_eof()
                while await reader.read(65536):
                    pass
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def close(self) -> None:
        """End what is still there."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
