"""The loop of one session: its commands one after the other, in their order, until its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from xftp.errors import FileError, XftpError
from xftp.protocol.commands import BadLine, Command
from xftp.protocol.replies import Reply
from xftp.protocol.standing import format_greeting

from .beside import HashBeside
from .ending import Ending
from .limits import Lease, TooMany
from .registry import Row
from .session import Session
from .watch import DIRECTIONS, SERIES, RunningTransfer

logger = logging.getLogger(__name__)

T = TypeVar("T")


class CommandLoop:
    """Executes the commands of a session and ends it: for its client, or for the server."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._control = session.control
        self._beside = HashBeside(session)
        self._ending = Ending()
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.Task[Command | BadLine | None] | None = None
        self._is_over = False

    async def run(self) -> None:
        """Serve the client until it leaves or is idle for too long."""
        self._task = asyncio.current_task()
        peer = self._control.peer_host
        logger.info("%s connected", peer, extra={"event": "connect", "peer": peer})
        try:
            if self.session.begins_tls:  # the port of TLS from the first byte on
                await self._protect()
                self.session.protects_data = self.session.buffer_size_is_set = True
            self._say(220, self._greeting())
            self._control.start(self._urgent)
            await self._serve()
        except TimeoutError:
            logger.info("%s: replies not taken", peer)
            self._control.hurry()
        except OSError as error:
            logger.info("%s: %s", peer, error)
        except asyncio.CancelledError:
            self._say(421, self._ending.farewell)
            self._control.hurry()
            raise
        finally:
            self._is_over = True
            await self._beside.stop()
            self.session.reset()
            await self._control.close()
            logger.info("%s left", peer, extra={"event": "leave", "peer": peer})

    def take_account(self) -> None:
        """Go on as the accounts are now; without this one, or with another password, not at all."""
        session = self.session
        if session.user is None:
            return
        before = session.user.account
        user = session.accounts.find(before.name)
        if user is None or not user.account.is_same_login(before):
            self.drain("The account was changed, log in again.")
        else:
            session.user = user

    def make_room(self) -> bool:
        """End the session for another one's sake, unless data moves; tell whether it ends."""
        if self._is_over:
            return True
        if self._task is None or self.session.running.may_be_aborted:
            return False
        self._ending.farewell = "Others need the place, try again later."
        self._task.cancel()
        return True

    def drain(self, farewell: str | None = None) -> None:
        """End the session: at once if nothing runs, after the running transfer otherwise.

        Whoever has just moved a file may ask for its hash before that, unless a farewell is given:
        the text of the 421 at the end.
        """
        self._ending.announce(farewell)
        self._end_waiting()

    # -- between commands ----------------------------------------------------------------------

    async def _serve(self) -> None:
        while (command := await self._next_command()) is not None:
            for reply in await self._execute(command):
                self._control.reply(reply)
            await self._control.flush()
            if self.session.is_leaving:
                return
            if self.session.begins_tls:
                await self._protect()
                self._control.start(self._urgent)
            if _moves_data(command):
                self._ending.note_transfer()
            if self._is_time_to_end:
                self._say(421, self._ending.farewell)
                return

    def _greeting(self) -> str:
        port = self.session.shared.standing_port
        return format_greeting(self.session.settings.welcome, port.number if port else None)

    async def _protect(self) -> None:
        """Begin with TLS, within the time that a login may take. Raises OSError."""
        session, peer = self.session, self._control.peer_host
        session.begins_tls = False
        tls = session.settings.tls
        assert tls is not None

        async def in_thread(work: Callable[[], T]) -> T:
            return await session.shared.threads.run(peer, work)

        try:
            async with asyncio.timeout_at(session.login_by_s):
                await self._control.protect(await in_thread(tls.new_context), in_thread)
        except TimeoutError as error:
            raise ConnectionError("the TLS handshake took too long") from error

    async def _next_command(self) -> Command | BadLine | None:
        """Wait for the next command; None ends the session, with a 421 if that is our wish."""
        session, loop = self.session, asyncio.get_running_loop()
        what, limit_s = "command", session.idle_timeout_s
        ends_s = loop.time() + limit_s
        if session.user is None:  # the login as a whole has its time, not each of its commands
            what, limit_s = "login", session.settings.login_timeout_s
            ends_s = session.login_by_s
        is_behind = self._control.has_waiting
        self._idle = asyncio.create_task(self._control.next_command())
        if self._ending.is_due and not is_behind:
            self._end_waiting()
        try:
            async with asyncio.timeout_at(ends_s):
                command = await self._idle
        except TimeoutError:
            self._say(421, f"No {what} for {limit_s:g} s, closing.")
            return None
        except asyncio.CancelledError:
            if not self._ending.is_due:
                raise
            self._say(421, self._ending.farewell)
            return None
        finally:
            self._idle = None
        if not is_behind and self._ending.is_due and command and _moves_data(command):
            self._say(421, self._ending.farewell)
            return None
        return command

    def _end_waiting(self) -> None:
        """Wait for a next command no longer than there is time for last words."""
        if self._idle is not None:
            asyncio.get_running_loop().call_later(self._ending.last_words_s, self._idle.cancel)

    @property
    def _is_time_to_end(self) -> bool:
        """Whether the session is to end, and nothing is left that the client may still ask."""
        ending = self._ending
        return ending.is_due and not self._control.has_waiting and not ending.last_words_s

    def _say(self, code: int, text: str) -> None:
        self._control.reply(Reply(code, (text,)))

    def _urgent(self, command: Command) -> bool:
        """Deal at once with what may interrupt a running command (RFC 959 section 4.1)."""
        running = self.session.running
        if not running.may_be_aborted:
            return False
        if command.verb == "ABOR":
            running.abort()
            return True
        if command.verb == "STAT" and not command.argument and running.has_begun:
            self._control.reply(Reply(211, self.session.status_lines()))
            return True
        if running.has_begun:
            self._beside.look_at(command)
        return False

    # -- one command ---------------------------------------------------------------------------

    async def _execute(self, command: Command | BadLine) -> list[Reply]:
        """Execute one command; give the replies that end it."""
        session = self.session
        if isinstance(command, BadLine):
            session.forget_restart()  # it may have been the command that this was for
            return [Reply(500, (f"{command.reason}.",))]
        row = session.commands.get(command.verb)
        if row is None:
            session.forget_restart()
            return [Reply(500, (f"{command.verb} is not understood.",))]
        session.running.aborts = 0
        session.heard_s = asyncio.get_running_loop().time()
        try:
            reply = await self._checked(row, command)
        except XftpError as error:
            reply = Reply(error.reply_code, (_sentence(error),))
        except Exception:
            # A mistake of ours must not cost the client its session; the log has it all.
            logger.exception("%s: %s failed", self._control.peer_host, command.verb)
            reply = Reply(451, ("Internal error, see the server's log.",))
        finally:
            if not row.keeps_restart:
                session.forget_restart()
            if row.verb in SERIES:  # refused or not: what was named was named for this one
                session.series.forget()
        return [reply, *session.running.abort_replies()]

    async def _checked(self, row: Row, command: Command) -> Reply:
        """Run a handler if it may run. Raises XftpError."""
        session = self.session
        row.check(command.argument, logged_in=session.user is not None)
        if row.permissions and not session.may(*row.permissions):
            session.data.drop()  # no data connection is left open
            raise FileError(f"Permission denied: this account has no right to {row.verb}")
        return await self._perform(row, command)

    async def _perform(self, row: Row, command: Command) -> Reply:
        """Run a handler, with a place for it if it moves data."""
        session = self.session
        places = self._take_transfer(row)
        watched = self._watched(row, command.argument)
        begun = self._beside.claim(command)
        work = row.handler(session, command.argument) if begun is None else _outcome(begun)
        try:
            return await session.running.run(row, work, watched)
        finally:
            for place in places:
                place.release()
            session.data.give_back_taken()
            if watched is not None:
                session.heard_s = asyncio.get_running_loop().time()

    def _take_transfer(self, row: Row) -> list[Lease]:
        """Take a place for a command that moves data. Raises TooMany (450)."""
        if not row.may_be_aborted:
            return []
        session = self.session
        try:
            return [session.shared.transfers.take(self._control.peer_host, session.user_name)]
        except TooMany:
            session.data.drop()
            raise

    def _watched(self, row: Row, argument: str) -> RunningTransfer | None:
        """Give what the operator sees of a command that moves data."""
        session = self.session
        direction = DIRECTIONS.get(row.verb)
        if direction is None or session.user is None:
            return None
        if row.verb in SERIES:
            return session.watched(direction, f"{len(session.series.files)} files", is_series=True)
        return session.watched(direction, session.path(argument))


async def _outcome(begun: asyncio.Task[Reply]) -> Reply:
    """Wait for work that was begun already; cancelled, it is cancelled too."""
    return await begun


def _moves_data(command: Command | BadLine) -> bool:
    return isinstance(command, Command) and command.verb in DIRECTIONS


def _sentence(error: XftpError) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{text}."
