"""One client's session: its state, and the loop that executes its commands one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from xftp.errors import (
    ConnectError,
    DataConnectionError,
    FileError,
    NotLoggedInError,
    SequenceError,
    TransferAborted,
    XftpError,
)
from xftp.protocol.addresses import Endpoint
from xftp.protocol.commands import BadLine, Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.options import MultOptions
from xftp.protocol.replies import Reply
from xftp.protocol.reports import ReportedTransfer
from xftp.transport.channels import ActiveChannel, DataChannel
from xftp.transport.ratelimit import RateLimit
from xftp.transport.sockets import Tuning

from .accounts import Accounts, User
from .control import ControlConnection
from .filesystem import Filesystem, absolute
from .hashing import HashWorker
from .limits import Lease, Shared, TooMany
from .permissions import Permission
from .settings import Settings
from .watch import DIRECTIONS, RunningTransfer

if TYPE_CHECKING:
    from .registry import Row

logger = logging.getLogger(__name__)
T = TypeVar("T")

MLST_FACTS = ("type", "size", "modify", "perm", "unique", "unix.mode")
"""The facts of MLST and MLSD that there are (RFC 3659 section 7.5)."""


LAST_WORDS_S = 2.0
"""How long after a transfer a session that is to end waits for what belongs to it, such as HASH."""

HASH_DEFAULT = "SHA-256"
"""What HASH computes unless OPTS HASH says otherwise."""


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
        hashes: HashWorker,
        shared: Shared,
        place: Lease,
    ) -> None:
        """Make a session. place: what it takes of `shared`; the caller releases it."""
        self.settings = settings
        self.shared = shared
        self.accounts = accounts
        self.commands = commands
        self.hashes = hashes
        self.control = ControlConnection(
            reader, writer, self._urgent, settings.limits.command_line_bytes
        )
        self.is_draining = False
        self._running: asyncio.Task[Reply] | None = None
        self._idle: asyncio.Task[Command | BadLine | None] | None = None
        self._may_be_aborted = False
        self._ends_with_session = False
        self._is_ending = False
        self._has_begun = False
        self._aborts = 0
        self._is_leaving = False
        self._place = place
        self.watched: RunningTransfer | None = None
        """What the operator sees of the transfer that runs."""
        self._begun_s = self._heard_s = asyncio.get_running_loop().time()
        self._task: asyncio.Task[None] | None = None
        self._last_words_by_s: float | None = None
        self._gives_last_words = True
        self._is_over = False
        self._channel: DataChannel | None = None
        self._channel_ends: asyncio.TimerHandle | None = None
        self._data_places: list[Lease] = []
        self._moving_places: list[Lease] = []
        self._dialling: tuple[Endpoint, ...] = ()
        self._files: Filesystem | None = None
        self.bytes_moved: Callable[[], int] = lambda: 0
        self.transfers = 0
        self.failed_logins = 0
        self.user: User | None = None
        self._farewell = "The server is shutting down."
        self.reset()

    def reset(self) -> None:
        """Go back to the state before the login (REIN)."""
        self.drop_channel()
        if self._files is not None:
            self._files.close()
        self._files = None
        if self.user is not None:
            self.accounts.leave(self.user)
            self._place.assign(None)
        self.user = None
        self._login_by_s = asyncio.get_running_loop().time() + self.settings.login_timeout_s
        self.user_name: str | None = None
        self.current = "/"
        self.is_ascii = True
        self.restart_offset = 0
        self.byte_range: ByteRange | None = None
        self.hash_algorithm = HASH_DEFAULT
        self.rename_from: str | None = None
        self.announced_size: int | None = None
        self.framed = False
        self.extended_passive_only = False
        self.mult_options = MultOptions()
        self.last_transfer: ReportedTransfer | None = None
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
        limit = self.most_connections
        return min(limit, self.mult_options.connections or limit)

    @property
    def most_connections(self) -> int:
        """Data connections that the operator allows for a transfer of this user."""
        limit = self.settings.connection_limit
        own = self.user.account.connection_limit if self.user is not None else None
        return limit if own is None else min(limit, own)

    @property
    def rate_limit(self) -> RateLimit | None:
        """The limits that all transfers of this user, this address and all sessions share."""
        own = self.user.rate_limit if self.user is not None else None
        return self.shared.rates.limit(self.control.peer_host, self.user_name, own)

    @property
    def replaces(self) -> bool:
        """Whether a lost connection of several is replaced, which the client asked for."""
        return bool(self.mult_options.replaces)

    def tuning(self, connections: int) -> Tuning | None:
        """Give the setting of each of `connections` data sockets; None: as the system has it."""
        tuner = self.settings.tuner
        if tuner is None:
            return None
        return tuner.tuning(self.mult_options, connections, self.control.peer_host)

    def log_in(self, user: User) -> None:
        """Enter an account.

        Raises FileError if its root cannot be used, ConnectError (421) if the account has as many
        sessions as it may have.
        """
        files = Filesystem(user.account.root)
        try:
            self._place.assign(user.account.name)
            if not self.accounts.enter(user):
                self._place.assign(None)
                raise TooMany("Too many sessions")
        except TooMany as error:
            files.close()
            raise ConnectError("Too many sessions of this user, try again later") from error
        self._files = files
        self.user = user

    def path(self, argument: str) -> str:
        """Give the absolute virtual path that an argument names."""
        return absolute(self.current, argument)

    def may(self, *permissions: Permission) -> bool:
        """Tell whether the account has at least one of these permissions."""
        return self.user is not None and self.user.may(*permissions)

    def begin(self, text: str) -> None:
        """Say that a transfer begins, and look at what was sent together with its command."""
        self.control.reply(Reply(150, (text,)))
        self._has_begun = True
        self.control.offer_waiting(self._is_transfer)

    def begin_silently(self) -> None:
        """Look at what was sent together with a long command that gives no preliminary reply."""
        self.control.offer_waiting(self._is_transfer)

    def reserve(self, wanted: int, *, listens: bool) -> int:
        """Take places for the data connections of the next transfer; give how many there are.

        listens: whether a listener waits for them, which ends if nothing uses it for too long.
        What was there before is dropped. Raises DataConnectionError (425) without any place.
        """
        self.drop_channel()
        host, user, shared = self.control.peer_host, self.user_name, self.shared
        available = shared.data_connections.available(host, user)
        count = wanted if available is None else max(1, min(wanted, available))
        try:
            places = [shared.data_connections.take(host, user, count=count)]
            self._data_places = places
            if listens:
                places.append(shared.listeners.take(host, user, give_up=self.drop_channel))
        except TooMany as error:
            self.drop_channel()
            raise DataConnectionError(str(error)) from error
        return count

    def set_channel(self, channel: DataChannel, *, framed: bool) -> None:
        """Take where the next transfer's data connections come from, after `reserve`."""
        self._channel = channel
        self.framed = framed
        self._channel_ends = asyncio.get_running_loop().call_later(
            self.settings.open_timeout_s, self.drop_channel
        )

    def set_dialling(self, endpoints: tuple[Endpoint, ...], *, framed: bool) -> None:
        """Take the addresses that the next transfer is to dial, after `reserve`."""
        self._dialling = endpoints
        self.framed = framed

    def take_channel(self) -> DataChannel:
        """Give the data connections for a transfer. Raises DataConnectionError without any."""
        channel, self._channel = self._channel, None
        endpoints, self._dialling = self._dialling, ()
        self._moving_places, self._data_places = self._data_places, []
        self._keep_channel()
        if channel is not None:
            return channel
        if not endpoints:
            raise DataConnectionError("Use PASV, EPSV, MPSV, PORT, EPRT or MPRT first.")
        channel = ActiveChannel(
            endpoints,
            local_host=self.control.local_host,
            tuning=self.tuning(len(endpoints)),
            timeout_s=self.settings.open_timeout_s,
        )
        channel.replaces = self.framed and self.replaces
        return channel

    def drop_channel(self) -> bool:
        """Close data connections that no transfer used; tell whether there were any."""
        channel, self._channel, self._dialling = self._channel, None, ()
        places, self._data_places = self._data_places, []
        for place in places:
            place.release()
        self._keep_channel()
        if channel is not None:
            channel.close()
        return channel is not None

    def _keep_channel(self) -> None:
        """Wait no longer for a transfer to use the data connections."""
        if self._channel_ends is not None:
            self._channel_ends.cancel()
            self._channel_ends = None

    async def in_thread(
        self, work: Callable[[], T], *, undo: Callable[[T], None] | None = None
    ) -> T:
        """Run file work that may block; it is finished even if the command is aborted.

        undo: told the result, such as an open file, that an aborted command does not get.
        """
        job = self.shared.threads.run(self.control.peer_host, work)
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
        self._task = asyncio.current_task()
        peer = self.control.peer_host
        logger.info("%s connected", peer, extra={"event": "connect", "peer": peer})
        self._say(220, self.settings.welcome)
        self.control.start()
        try:
            while (command := await self._next_command()) is not None:
                for reply in await self._execute(command):
                    self.control.reply(reply)
                await self.control.flush()
                if self._is_leaving:
                    break
                if self._moves_data(command):
                    self._last_words_by_s = asyncio.get_running_loop().time() + LAST_WORDS_S
                if self.is_draining and not self.control.has_waiting and not self._last_words_s:
                    self._say(421, self._farewell)
                    break
        except (OSError, TimeoutError) as error:
            logger.info("%s: %s", self.control.peer_host, error or "replies not taken")
        except asyncio.CancelledError:
            self._say(421, self._farewell)
            self.control.hurry()
            raise
        finally:
            self._is_over = True
            self.reset()
            await self.control.close()
            logger.info("%s left", peer, extra={"event": "leave", "peer": peer})

    def _say(self, code: int, text: str) -> None:
        self.control.reply(Reply(code, (text,)))

    def take_account(self) -> None:
        """Go on as the accounts are now; without this one, or with another password, not at all."""
        if self.user is None:
            return
        user = self.accounts.find(self.user.account.name)
        before = self.user.account
        if user is None or not user.account.is_same_login(before):
            self.drain("The account was changed, log in again.")
        else:
            self.user = user

    def make_room(self) -> bool:
        """End the session for another one's sake, unless data moves; tell whether it ends."""
        if self._is_over:
            return True
        if self._task is None or (self._running is not None and self._may_be_aborted):
            return False
        self._farewell = "Others need the place, try again later."
        self._task.cancel()
        return True

    def drain(self, farewell: str | None = None) -> None:
        """End the session: at once if nothing runs, after the running transfer otherwise.

        Whoever has just moved a file may ask for its hash before that, unless a farewell is given:
        the text of the 421 at the end.
        """
        self.is_draining = True
        if farewell is not None:
            self._farewell, self._last_words_by_s = farewell, None
            self._gives_last_words = False
        if self._idle is not None:
            asyncio.get_running_loop().call_later(self._last_words_s, self._idle.cancel)

    @property
    def _last_words_s(self) -> float:
        """How long a session that is to end is still listened to; no transfer begins then."""
        if self._last_words_by_s is None or not self._gives_last_words:
            return 0.0
        return max(0.0, self._last_words_by_s - asyncio.get_running_loop().time())

    def _moves_data(self, command: Command | BadLine) -> bool:
        return isinstance(command, Command) and command.verb in DIRECTIONS

    async def _next_command(self) -> Command | BadLine | None:
        """Wait for the next command; None ends the session, with a 421 if that is our wish."""
        limit_s, ends_s = self.settings.idle_timeout_s, None
        if self.user is None:  # the login as a whole has its time, not each of its commands
            limit_s, ends_s = self.settings.login_timeout_s, self._login_by_s
        is_behind = self.control.has_waiting
        self._idle = asyncio.create_task(self.control.next_command())
        if self.is_draining and not is_behind:
            asyncio.get_running_loop().call_later(self._last_words_s, self._idle.cancel)
        try:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout_at(loop.time() + limit_s if ends_s is None else ends_s):
                command = await self._idle
            if not is_behind and self.is_draining and command and self._moves_data(command):
                self._say(421, self._farewell)
                return None
            return command
        except TimeoutError:
            what = "command" if ends_s is None else "login"
            self._say(421, f"No {what} for {limit_s:g} s, closing.")
            return None
        except asyncio.CancelledError:
            if not self.is_draining:
                raise
            self._say(421, self._farewell)
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
        self._heard_s = asyncio.get_running_loop().time()
        try:
            row.check(command.argument, logged_in=self.user is not None)
            self._check_permitted(row)
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
                self.restart_offset, self.announced_size, self.byte_range = 0, None, None

    def _check_permitted(self, row: Row) -> None:
        """Raise FileError (550) if the account may not do this; no data connection is left open."""
        if row.permissions and not self.may(*row.permissions):
            self.drop_channel()
            raise FileError(f"Permission denied: this account has no right to {row.verb}")

    async def _perform(self, row: Row, argument: str) -> Reply:
        """Run a handler as a task of its own, so that ABOR can end it."""
        places = self._take_transfer(row)
        self.watched = self._watch(row, argument)
        self._may_be_aborted = row.may_be_aborted
        self._ends_with_session = row.ends_with_session
        self._is_ending = self._has_begun = False
        self._running = task = asyncio.create_task(row.handler(self, argument))
        lost = asyncio.create_task(self.control.ended.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not self.control.quit_seen:
                self._give_up()
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            self._give_up()
            await asyncio.wait((task,))
            raise
        finally:
            lost.cancel()
            self._running = None
            for place in (*places, *self._moving_places):
                place.release()
            self._moving_places = []
            self._end_watching(task)
        if task.cancelled():
            raise TransferAborted("Transfer aborted.")
        return task.result()

    def _take_transfer(self, row: Row) -> list[Lease]:
        """Take a place for a command that moves data. Raises TooMany (450)."""
        if not row.may_be_aborted:
            return []
        try:
            return [self.shared.transfers.take(self.control.peer_host, self.user_name)]
        except TooMany:
            self.drop_channel()
            raise

    def _watch(self, row: Row, argument: str) -> RunningTransfer | None:
        """Let the operator see a command that moves data."""
        direction = DIRECTIONS.get(row.verb)
        if direction is None or self.user is None:
            return None
        watched = RunningTransfer(
            direction,
            self.path(argument),
            self.control.peer_host,
            self.user.account.name,
            is_anonymous=self.user.asks_no_password,
            is_ascii=self.is_ascii,
        )
        self.shared.watch.begin(watched)
        return watched

    def _end_watching(self, task: asyncio.Task[Reply]) -> None:
        """Tell how the command ended."""
        watched, self.watched = self.watched, None
        if watched is None:
            return
        error = None
        if task.cancelled() or not task.done():
            error = "aborted"
        elif (failure := task.exception()) is not None:
            error = str(failure)
        self.shared.watch.end(watched, error)
        self._heard_s = asyncio.get_running_loop().time()

    def _abort_replies(self) -> list[Reply]:
        """Give the reply to every ABOR that came while the command ran, however that ended."""
        return [Reply(226, ("Abort successful.",))] * self._aborts

    def _end_running(self) -> None:
        """Cancel the running command if it may be; once, so that it can clean up in peace."""
        if self._running is not None and self._may_be_aborted and not self._is_ending:
            self._is_ending = True
            self._running.cancel()

    def _give_up(self) -> None:
        """Cancel the running command because nobody waits for its reply any more."""
        if self._ends_with_session and self._running is not None:
            self._running.cancel()
        self._end_running()

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

    def describe(self) -> dict[str, object]:
        """Describe the session for the operator; times in seconds."""
        now_s = asyncio.get_running_loop().time()
        return {
            "peer": self.control.peer_host,
            "user": self.user.account.name if self.user is not None else None,
            "since_s": round(now_s - self._begun_s, 3),
            "idle_s": round(now_s - self._heard_s, 3) if self._running is None else 0.0,
            "transfers": self.transfers,
        }

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
