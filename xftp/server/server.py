"""The daemon's core: aioftp's server, with sessions of our own."""

from __future__ import annotations

import asyncio
import logging

import aioftp

from xftp.protocol.replies import format_reply

from .accounts import Accounts
from .commands import TABLE
from .session import Session
from .settings import Settings

logger = logging.getLogger(__name__)


class Server(aioftp.Server):
    """An FTP server with MULT, MPRT and MPSV.

    From aioftp come listening, the user manager and the count of connections; the dispatcher,
    which it calls for every control connection, is ours: see docs/architecture.md for why.
    """

    def __init__(self, settings: Settings) -> None:
        """Make a server; `start(host, port)` or `run(host, port)` makes it listen."""
        self._accounts = Accounts(settings.accounts)
        super().__init__(
            self._accounts,
            maximum_connections=settings.session_limit,
            welcome_message=settings.welcome,
        )
        self.settings = settings
        self._sessions: dict[Session, asyncio.Task[None]] = {}

    @property
    def session_count(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    async def dispatcher(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one control connection until it ends."""
        if self.available_connections.locked():
            writer.write(format_reply(421, "Too many sessions, try again later."))
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self.available_connections.acquire()
        session = Session(reader, writer, self.settings, self._accounts, TABLE)
        self._sessions[session] = task
        try:
            await session.run()
        except asyncio.CancelledError:
            logger.debug("session of %s ended by the server", session.control.peer_host)
        finally:
            del self._sessions[session]
            self.available_connections.release()

    async def shut_down(self, patience_s: float = 60.0) -> None:
        """Stop listening, let running transfers finish for `patience_s` seconds, then end all."""
        self.server.close()
        for session in list(self._sessions):
            session.drain()
        if self._sessions:
            await asyncio.wait(self._sessions.values(), timeout=patience_s)
        await self.close()

    async def close(self) -> None:
        """Stop listening and end all sessions now."""
        self.server.close()
        tasks = list(self._sessions.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.server.wait_closed()
