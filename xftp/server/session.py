"""One client's session: its state, and the loop that executes its commands one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from xftp.errors import (
    DataConnectionError,
    FileError,
    NotLoggedInError,
    SequenceError,
    TransferAborted,
    XftpError,
)
from xftp.protocol.addresses import Endpoint
from xftp.protocol.commands import BadLine, Command
from xftp.protocol.options import MultOptions
from xftp.protocol.replies import Reply
from xftp.transport.channels import ActiveChannel, DataChannel
from xftp.transport.sockets import Tuning

from .accounts import Accounts, User
from .control import ControlConnection
from .filesystem import Filesystem, absolute
from .settings import Settings

if TYPE_CHECKING:
    from .registry import Row

logger = logging.getLogger(__name__)
T = TypeVar("T")

MLST_FACTS = ("type", "size", "modify", "perm", "unique", "unix.mode")
"""The facts of MLST and MLSD that there are (RFC 3659 section 7.5)."""


class _Closing(Exception):
    """Ends the session after the replies that were given."""


class Session:
    """State and loop of one control connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        settings: Settings,
        accounts: Accounts,
        commands: dict[str, Row],
    ) -> None:
        self.settings = settings
        self.accounts = accounts
        self.commands = commands
        self.control = ControlConnection(reader, writer, self._urgent)
        self.is_draining = False
        self._running: asyncio.Task[Reply] | None = None
        self._idle: asyncio.Task[Command | BadLine | None] | None = None
        self._may_be_aborted = False
        self._is_ending = False
        self._has_begun = False
        self._aborts = 0
        self._is_leaving = False
        self._channel: DataChannel | None = None
        self._dialling: tuple[Endpoint, ...] = ()
        self._files: Filesystem | None = None
        self.bytes_moved: Callable[[], int] = lambda: 0
        self.transfers = 0
        self.failed_logins = 0
        self.reset()

    def reset(self) -> None:
        """Go back to the state before the login (REIN)."""
        self.drop_channel()
        if self._files is not None:
            self._files.close()
        self._files = None
        self.user_name: str | None = None
        self.candidate: User | None = None
        self.user: User | None = None
        self.current = "/"
        self.is_ascii = True
        self.restart_offset = 0
        self.rename_from: str | None = None
        self.announced_size: int | None = None
        self.framed = False
        self.extended_passive_only = False
        self.mult_options = MultOptions()
        self.mlst_facts: tuple[str, ...] = MLST_FACTS

    # -- for the handlers ----------------------------------------------------------------------

    @property
    def files(self) -> Filesystem:
        """The files of the account that is logged in."""
        if self._files is None:
            raise NotLoggedInError("Log in with USER and PASS first.")
        return self._files

    @property
    def connection_limit(self) -> int:
        """Data connections that a transfer of this session may have."""
        limit = self.settings.connection_limit
        return min(limit, self.mult_options.connections or limit)

    def tuning(self, connections: int) -> Tuning | None:
        """Give the setting of each of `connections` data sockets; None: as the system has it."""
        tuner = self.settings.tuner
        return tuner.tuning(self.mult_options, connections) if tuner is not None else None

    def log_in(self, user: User) -> None:
        """Enter an account. Raises FileError if its root cannot be used."""
        self._files = Filesystem(user.account.root)
        self.user = user
        self.failed_logins = 0

    def path(self, argument: str) -> str:
        """Give the absolute virtual path that an argument names."""
        return absolute(self.current, argument)

    def check_writable(self) -> None:
        """Raise FileError unless this account may change files."""
        if self.user is None or not self.user.account.writable:
            raise FileError("Permission denied: this account can only read.")

    def begin(self, text: str) -> None:
        """Say that a transfer begins, and look at what was sent together with its command."""
        self.control.reply(Reply(150, (text,)))
        self._has_begun = True
        self.control.offer_waiting(self._is_transfer)

    def set_channel(self, channel: DataChannel, *, framed: bool) -> None:
        """Take the place that the next transfer's data connections come from."""
        self.drop_channel()
        self._channel = channel
        self.framed = framed

    def set_dialling(self, endpoints: tuple[Endpoint, ...], *, framed: bool) -> None:
        """Take the addresses that the next transfer is to dial."""
        self.drop_channel()
        self._dialling = endpoints
        self.framed = framed

    def take_channel(self) -> DataChannel:
        """Give the data connections for a transfer. Raises DataConnectionError without any."""
        channel, self._channel = self._channel, None
        endpoints, self._dialling = self._dialling, ()
        if channel is not None:
            return channel
        if not endpoints:
            raise DataConnectionError("Use PASV, EPSV, MPSV, PORT, EPRT or MPRT first.")
        return ActiveChannel(
            endpoints,
            local_host=self.control.local_host,
            tuning=self.tuning(len(endpoints)),
            timeout_s=self.settings.open_timeout_s,
        )

    def drop_channel(self) -> bool:
        """Close data connections that no transfer used; tell whether there were any."""
        channel, self._channel, self._dialling = self._channel, None, ()
        if channel is not None:
            channel.close()
        return channel is not None

    async def in_thread(
        self, work: Callable[[], T], *, undo: Callable[[T], None] | None = None
    ) -> T:
        """Run file work that may block; it is finished even if the command is aborted.

        undo: told the result, such as an open file, that an aborted command does not get.
        """
        job = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.wait([job])
            if job.exception() is None and undo is not None:
                undo(job.result())
            raise

    def forbid_abort(self) -> None:
        """Do what is left of the command whatever comes: an ABOR waits for its turn."""
        self._may_be_aborted = False

    def close_after_reply(self) -> None:
        """End the session once the reply to the current command is sent."""
        self._is_leaving = True

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the client until it leaves or is idle for too long."""
        logger.info("%s connected", self.control.peer_host)
        self._say(220, self.settings.welcome)
        self.control.start()
        try:
            while (command := await self._next_command()) is not None:
                for reply in await self._execute(command):
                    self.control.reply(reply)
                await self.control.flush()
                if self._is_leaving:
                    break
                if self.is_draining and not self.control.has_waiting:
                    self._say(421, "The server is shutting down.")
                    break
        except (OSError, TimeoutError) as error:
            logger.info("%s: %s", self.control.peer_host, error or "replies not taken")
        finally:
            self.reset()
            await self.control.close()
            logger.info("%s left", self.control.peer_host)

    def _say(self, code: int, text: str) -> None:
        self.control.reply(Reply(code, (text,)))

    def drain(self) -> None:
        """End the session: at once if nothing runs, after the running transfer otherwise."""
        self.is_draining = True
        if self._idle is not None:
            self._idle.cancel()

    async def _next_command(self) -> Command | BadLine | None:
        """Wait for the next command; None ends the session, with a 421 if that is our wish."""
        limit_s = (
            self.settings.idle_timeout_s if self.user is not None else self.settings.login_timeout_s
        )
        self._idle = asyncio.create_task(self.control.next_command())
        try:
            async with asyncio.timeout(limit_s):
                return await self._idle
        except TimeoutError:
            self._say(421, f"No command for {limit_s:g} s, closing.")
            return None
        except asyncio.CancelledError:
            if not self.is_draining:
                raise
            self._say(421, "The server is shutting down.")
            return None
        finally:
            self._idle = None

    async def _execute(self, command: Command | BadLine) -> list[Reply]:
        """Execute one command; give the replies that end it."""
        if isinstance(command, BadLine):
            return [Reply(500, (f"{command.reason}.",))]
        row = self.commands.get(command.verb)
        if row is None:
            return [Reply(500, (f"{command.verb} is not understood.",))]
        self._aborts = 0
        try:
            row.check(command.argument, logged_in=self.user is not None)
            return [await self._perform(row, command.argument), *self._abort_replies()]
        except XftpError as error:
            return [Reply(error.reply_code, (_sentence(error),)), *self._abort_replies()]
        except Exception:
            # A mistake of ours must not cost the client its session; the log has it all.
            logger.exception("%s: %s failed", self.control.peer_host, command.verb)
            text = "Internal error, see the server's log."
            return [Reply(451, (text,)), *self._abort_replies()]
        finally:
            if not row.keeps_restart:
                self.restart_offset, self.announced_size = 0, None

    async def _perform(self, row: Row, argument: str) -> Reply:
        """Run a handler as a task of its own, so that ABOR can end it."""
        self._may_be_aborted = row.may_be_aborted
        self._is_ending = self._has_begun = False
        self._running = task = asyncio.create_task(row.handler(self, argument))
        lost = asyncio.create_task(self.control.ended.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not self.control.quit_seen:
                self._end_running()
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            self._end_running()
            await asyncio.wait((task,))
            raise
        finally:
            lost.cancel()
            self._running = None
        if task.cancelled():
            raise TransferAborted("Transfer aborted.")
        return task.result()

    def _abort_replies(self) -> list[Reply]:
        """Give the reply to every ABOR that came while the command ran, however that ended."""
        return [Reply(226, ("Abort successful.",))] * self._aborts

    def _end_running(self) -> None:
        """Cancel the running command if it may be; once, so that it can clean up in peace."""
        if self._running is not None and self._may_be_aborted and not self._is_ending:
            self._is_ending = True
            self._running.cancel()

    def _is_transfer(self, command: Command) -> bool:
        row = self.commands.get(command.verb)
        return row is not None and row.may_be_aborted

    def _urgent(self, command: Command) -> bool:
        """Deal at once with what may interrupt a running command (RFC 959 section 4.1)."""
        if self._running is None or not self._may_be_aborted:
            return False
        if command.verb == "ABOR":
            self._aborts += 1
            self._end_running()
            return True
        if command.verb == "STAT" and not command.argument and self._has_begun:
            self.control.reply(Reply(211, self.status_lines()))
            return True
        return False

    def status_lines(self) -> tuple[str, ...]:
        """Describe the session, for STAT."""
        mode = "ASCII" if self.is_ascii else "image"
        moving = self._running is not None and self._may_be_aborted
        doing = f"Moving data: {self.bytes_moved()} bytes so far" if moving else "Idle"
        return (
            "Status of the session:",
            f"Connected from {self.control.peer_host}",
            f"Logged in as {self.user_name}" if self.user else "Not logged in",
            f"Type {mode}, mode stream, structure file",
            f"At most {self.connection_limit} data connections",
            doing,
            "End of status.",
        )


def _sentence(error: XftpError) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{text}."


def require(condition: bool, sentence: str) -> None:
    """Raise SequenceError unless `condition`."""
    if not condition:
        raise SequenceError(sentence)
