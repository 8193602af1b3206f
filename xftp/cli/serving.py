"""The running daemon: from the bound port to the signal that ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from xftp.errors import ConnectError, XftpError, system_reason
from xftp.server import Account, Server, Settings

from .privileges import Identity, PrivilegeError, unreadable
from .watching import Watching

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """What the operator wants served, and what runs beside it."""

    settings: Settings
    """How the server behaves."""

    host: str
    """Address to listen on."""

    port: int
    """Port to listen on; 0: a free one."""

    accounts: Callable[[], tuple[Account, ...]]
    """Reads the accounts again, for SIGHUP. Raises XftpError."""

    watching: Watching
    """Logs, metrics and the socket of `xftpd status`."""

    problems: Callable[[], tuple[str, ...]]
    """Tells what of the sockets' settings this machine does not grant."""

    run_as: Identity | None = None
    """Who to be once the port is bound; None: whoever started it."""

    implicit_port: int | None = None
    """Where clients begin with TLS; 0: a free port; None: nowhere."""

    async def run(self) -> None:
        """Serve until a signal ends it. Raises OSError, XftpError, PrivilegeError."""
        server = Server(self.settings)
        await server.start(self.host, self.port)
        async with AsyncExitStack() as stack:
            try:
                if self.implicit_port is not None:
                    await self._listen_for_tls(server, self.implicit_port)
                await self.watching.start(server, stack)
                if self.run_as is not None:
                    _become(self.run_as, self.settings)
                for problem in self.problems():
                    logger.warning("%s", problem)
            except BaseException:
                await server.close()
                raise
            await self._serve(server)

    async def _listen_for_tls(self, server: Server, port: int) -> None:
        try:
            await server.start_implicit(self.host, port)
        except OSError as error:
            reason = system_reason(error)
            raise ConnectError(f"cannot listen on {self.host}:{port}: {reason}") from error

    async def _serve(self, server: Server) -> None:
        signals: asyncio.Queue[None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signals.put_nowait, None)
        loop.add_signal_handler(signal.SIGHUP, self._reload, server)
        shown = f"[{self.host}]" if ":" in self.host else self.host
        print(f"listening on {shown}:{server.server_port}", flush=True)
        if server.implicit_port is not None:
            print(f"listening on {shown}:{server.implicit_port} with TLS", flush=True)
        await signals.get()
        ending = asyncio.create_task(server.shut_down(self.settings.stop_timeout_s))
        again = asyncio.create_task(signals.get())
        await asyncio.wait((ending, again), return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        if not ending.done():
            ending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ending
            await server.close()

    def _reload(self, server: Server) -> None:
        """Read accounts and certificate again; what cannot be read leaves all as it is."""
        self.watching.reopen()
        self._reload_certificate()
        try:
            server.reload(self.accounts())
        except XftpError as error:
            logger.error("the accounts stay as they were: %s", error)
        else:
            logger.info("the accounts were read again")

    def _reload_certificate(self) -> None:
        if self.settings.tls is None:
            return
        try:
            self.settings.tls.reload()
        except XftpError as error:
            logger.error("the certificate stays as it was: %s", error)
        else:
            logger.info("the certificate was read again")


def _become(identity: Identity, settings: Settings) -> None:
    """Drop root for good, and see that what is served can be read then. Raises PrivilegeError."""
    identity.assume()
    for account in settings.accounts:
        if unreadable(account.root):
            raise PrivilegeError(f"{identity.name} may not read {account.root}")
    logger.info("running as %s", identity.name)
