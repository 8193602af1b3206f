"""What the tests share: a running server, and a raw control connection to speak to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from xftp.protocol.replies import Reply, ReplyParser
from xftp.server import Account, Server, Settings

REPLY_TIMEOUT_S = 20.0


class RawClient:
    """A control connection without manners: sends bytes, gives replies in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._parser = ReplyParser()
        self._replies: list[Reply] = []

    @classmethod
    async def connect(cls, host: str, port: int) -> RawClient:
        """Connect and take the greeting."""
        client = cls(*await asyncio.open_connection(host, port))
        assert (await client.reply()).code == 220
        return client

    async def reply(self) -> Reply:
        """Wait for the next reply. Raises ConnectionError at the end."""
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            while not self._replies:
                data = await self.reader.read(65536)
                if not data:
                    raise ConnectionResetError("the server closed the control connection")
                self._replies += self._parser.feed(data)
        return self._replies.pop(0)

    def send(self, *lines: str) -> None:
        """Send command lines without waiting."""
        data = "".join(f"{line}\r\n" for line in lines)
        self.writer.write(data.encode("utf-8", "surrogateescape"))

    async def command(self, line: str) -> Reply:
        """Send a command, give its first reply."""
        self.send(line)
        return await self.reply()

    async def log_in(self, user: str = "anonymous", password: str = "me@here") -> None:
        """Log in."""
        assert (await self.command(f"USER {user}")).code == 331
        assert (await self.command(f"PASS {password}")).code == 230

    async def close(self) -> None:
        """Close without QUIT."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def running_server(
    root: Path, *, writable: bool = True, host: str = "127.0.0.1", **settings: Any
) -> AsyncIterator[Server]:
    """Run a server in this event loop, on a free port; `server.server_port` tells which."""
    account = Account("anonymous", root, None, writable)
    server = Server(replace(Settings((account,)), **settings))
    await server.start(host, 0)
    try:
        yield server
    finally:
        await server.close()


@contextlib.asynccontextmanager
async def raw_session(server: Server, *, host: str = "127.0.0.1") -> AsyncIterator[RawClient]:
    """Log in on a control connection."""
    client = await RawClient.connect(host, server.server_port)
    try:
        await client.log_in()
        yield client
    finally:
        await client.close()
