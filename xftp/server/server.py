"""The daemon's core: aioftp's server, with sessions of our own."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import Any

import aioftp

from xftp.errors import ConnectError, PeerError
from xftp.protocol.proxy_protocol import Proxied
from xftp.protocol.replies import format_reply
from xftp.transport.sockets import plain_address, zoned_address

from .accounts import Accounts
from .commands import TABLE
from .control import STREAM_BYTES, ControlConnection
from .hashing import HashWorker
from .limits import Shared, TooMany
from .loop import CommandLoop
from .proxies import is_trusted, read_header
from .session import Session
from .settings import Account, Settings
from .standing import StandingPort, own_ports, standing_ports

logger = logging.getLogger(__name__)

_BACKLOG = 512
"""Control connections that the kernel holds until they are accepted."""


class Server(aioftp.Server):
    """An FTP server with MULT, MPRT and MPSV.

    From aioftp come listening and the user manager; the dispatcher, which it calls for every
    control connection, is ours: see docs/architecture.md for why.
    """

    def __init__(self, settings: Settings) -> None:
        """Make a server; `start(host, port)` or `run(host, port)` makes it listen."""
        self._accounts = Accounts(settings.accounts, settings.pam_service)
        super().__init__(
            self._accounts,
            welcome_message=settings.welcome,
        )
        self.settings = settings
        self.shared = Shared(settings.limits, own_ports(settings))
        self._loops: dict[CommandLoop, asyncio.Task[None]] = {}
        self._implicit: asyncio.Server | None = None
        self.is_stopping = False
        """Whether it was asked to stop."""

    async def start(self, host: str | None = None, port: int = 0, **options: Any) -> None:
        """Listen. Raises OSError, and ConnectError for the data port."""
        await super().start(host, port, limit=STREAM_BYTES, backlog=_BACKLOG, **options)
        self._hashes = HashWorker()
        try:
            self._open_standing_port()
        except BaseException:
            await self.close()
            raise

    def _open_standing_port(self) -> None:
        """Listen for the data connections of all sessions, unless balancers are in front."""
        ports = standing_ports(self.settings, self.server_port)
        if not ports:
            return
        hosts = [zoned_address(each.getsockname()) for each in self.server.sockets]
        try:
            self.shared.standing_port = StandingPort.open(hosts, ports)
        except OSError as error:
            if self.settings.standing_port:
                reason = (
                    f"cannot listen on the data port {ports[0]}: {os.strerror(error.errno or 0)}"
                )
                raise ConnectError(reason) from error
            logger.warning("there is no data port for all sessions: %s", error.strerror)
            return
        logger.info("data port %d", self.shared.standing_port.number)

    async def start_implicit(self, host: str | None = None, port: int = 0) -> None:
        """Listen for clients that begin with TLS, beside `start`. Raises OSError."""
        assert self.settings.tls is not None
        self._implicit = await asyncio.start_server(
            self._dispatch_implicit, host, port, limit=STREAM_BYTES, backlog=_BACKLOG
        )

    @property
    def implicit_port(self) -> int | None:
        """Where clients begin with TLS; None: nowhere."""
        return self._implicit.sockets[0].getsockname()[1] if self._implicit is not None else None

    @property
    def sessions(self) -> list[Session]:
        """The sessions that there are."""
        return [loop.session for loop in self._loops]

    @property
    def session_count(self) -> int:
        """How many sessions there are."""
        return len(self._loops)

    async def _dispatch_implicit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self.dispatcher(reader, writer, begins_with_tls=True)

    async def dispatcher(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        begins_with_tls: bool = False,
    ) -> None:
        """Serve one control connection until it ends."""
        task = asyncio.current_task()
        assert task is not None
        try:
            proxied = await self._proxied(reader, writer)
        except PeerError as error:
            logger.warning("%s", error)
            writer.close()
            return
        peer = plain_address(writer.get_extra_info("peername")[0])
        if proxied is not None:
            peer = plain_address(proxied.source_host)
        loop: CommandLoop | None = None
        try:
            place = self.shared.sessions.take(
                peer, give_up=lambda: loop is not None and loop.make_room()
            )
        except TooMany as error:
            logger.info("%s refused: %s", peer, error)
            if not begins_with_tls:  # there no handshake is made to say so
                writer.write(format_reply(421, f"{error}."))
            writer.close()
            return
        control = ControlConnection(reader, writer, self.settings.limits.command_line_bytes)
        if proxied is not None:
            control.take_addresses(proxied)
        loop = CommandLoop(
            Session(control, self.settings, self._accounts, TABLE, self._hashes, self.shared, place)
        )
        loop.session.begins_tls = begins_with_tls
        self._loops[loop] = task
        self.shared.watch.sessions += 1
        try:
            await loop.run()
        except asyncio.CancelledError:
            logger.debug("session of %s ended by the server", peer)
        finally:
            del self._loops[loop]
            place.release()

    async def _proxied(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Proxied | None:
        """Give what a load balancer says of its client; None for other peers. Raises PeerError."""
        peer = plain_address(writer.get_extra_info("peername")[0])
        if not is_trusted(peer, self.settings.proxies):
            return None
        return await read_header(reader.readexactly)

    def reload(self, accounts: Iterable[Account]) -> None:
        """Let these be the accounts; running sessions get their new rights with the next command.

        A session whose account is gone, or has another password or home, ends with 421 once its
        running transfer is done.
        """
        self._accounts.replace(accounts)
        for loop in list(self._loops):
            loop.take_account()

    async def shut_down(self, patience_s: float = 60.0) -> None:
        """Stop listening, let running transfers finish for `patience_s` seconds, then end all."""
        self.is_stopping = True
        self._stop_listening()
        for loop in list(self._loops):
            loop.drain()
        if self._loops:
            await asyncio.wait(self._loops.values(), timeout=patience_s)
        await self.close()

    async def close(self) -> None:
        """Stop listening and end all sessions now."""
        self._stop_listening()
        tasks = list(self._loops.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self.shared.standing_port is not None:
            self.shared.standing_port.close()
        self._accounts.close()
        self.shared.threads.close()
        self._hashes.close()
        await self.server.wait_closed()
        if self._implicit is not None:
            await self._implicit.wait_closed()

    def _stop_listening(self) -> None:
        self.server.close()
        if self._implicit is not None:
            self._implicit.close()
