"""One client's session: what it has said so far, and what its commands may use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from xftp.errors import ClearDataError, ConnectError, NotLoggedInError, SequenceError
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.options import MultOptions
from xftp.protocol.parts import PartFacts
from xftp.protocol.replies import Reply
from xftp.protocol.reports import ReportedTransfer
from xftp.transport.channels import DataChannel
from xftp.transport.connection import DataConnection
from xftp.transport.lingering import Lingering
from xftp.transport.ratelimit import RateLimit
from xftp.transport.sockets import Tuning
from xftp.transport.tls import DataTls

from .accounts import Accounts, User
from .control import ControlConnection
from .data_connections import DataConnections
from .filesystem import Filesystem, absolute
from .hashing import HashWorker
from .limits import Lease, Shared, TooMany
from .permissions import Permission
from .running import RunningCommand
from .series import NamedSeries
from .settings import Settings
from .storage import Storage, StorageLimit
from .watch import Direction, RunningTransfer

if TYPE_CHECKING:
    from .registry import Row

T = TypeVar("T")

MLST_FACTS = ("type", "size", "modify", "perm", "unique", "unix.mode")
"""The facts of MLST and MLSD that there are (RFC 3659 section 7.5)."""

HASH_DEFAULT = "SHA-256"
"""What HASH computes unless OPTS HASH says otherwise."""


class Session:
    """The state of one control connection; `CommandLoop` executes its commands."""

    def __init__(
        self,
        control: ControlConnection,
        settings: Settings,
        accounts: Accounts,
        commands: dict[str, Row],
        hashes: HashWorker,
        shared: Shared,
        place: Lease,
    ) -> None:
        """Make a session. place: what it takes of `shared`; the caller releases it."""
        self.control = control
        self.settings = settings
        self.accounts = accounts
        self.commands = commands
        self.hashes = hashes
        self.shared = shared
        self.running = RunningCommand(control, shared.watch)
        """The command that runs, if one does."""
        self.data = DataConnections(control, shared, settings.open_timeout_s)
        """Those of the next transfer."""
        self.begun_s = self.heard_s = asyncio.get_running_loop().time()
        """When it began, and when a command came or a transfer ended last (event loop's clock)."""
        self.is_leaving = False
        """Whether it ends with the reply to the current command."""
        self.begins_tls = False
        """Whether TLS begins with the reply to the current command."""
        self.protects_data = self.buffer_size_is_set = False
        """Whether PROT P is in force, and whether PBSZ came (RFC 4217 section 9)."""
        self.transfers = 0
        self.failed_logins = 0
        self.user: User | None = None
        self._files: Filesystem | None = None
        self._place = place
        self._lingering: Lingering | None = None
        self.reset()

    def reset(self) -> None:
        """Go back to the state before the login (REIN)."""
        self.data.drop()
        self.data.framed = False
        self.linger(None)
        if self._files is not None:
            self._files.close()
        self._files = None
        if self.user is not None:
            self.accounts.leave(self.user)
            self._place.assign(None)
        self.user = None
        self.login_by_s = asyncio.get_running_loop().time() + self.settings.login_timeout_s
        self.user_name: str | None = None
        self.current = "/"
        self.is_ascii = True
        self.restart_offset = 0
        self.byte_range: ByteRange | None = None
        self.part: PartFacts | None = None
        self.hash_algorithm = HASH_DEFAULT
        self.rename_from: str | None = None
        self.announced_size: int | None = None
        self.extended_passive_only = False
        self.mult_options = MultOptions()
        self.last_transfer: ReportedTransfer | None = None
        self.series = NamedSeries()
        self.mlst_facts: tuple[str, ...] = MLST_FACTS

    def linger(self, connection: DataConnection | None) -> None:
        """Read a refused upload to its end, beside what comes next; the one before has had it."""
        if self._lingering is not None:
            self._lingering.end()
        self._lingering = None if connection is None else Lingering(connection)

    def forget_restart(self) -> None:
        """Let no REST, RANG, PART or ALLO hold for the next command."""
        self.restart_offset, self.announced_size, self.byte_range = 0, None, None
        self.part = None

    def forget_part_ranges(self) -> None:
        """Let PART say no more than which file is meant: REST or RANG came after it."""
        if self.part is not None:
            self.part = self.part._replace(ranges=None)

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
    def idle_timeout_s(self) -> float:
        """How long this session may be without command and transfer."""
        own = self.user.account.idle_timeout_s if self.user is not None else None
        return self.settings.idle_timeout_s if own is None else own

    @property
    def stall_timeout_s(self) -> float:
        """How long nothing of a transfer of this session may move."""
        own = self.user.account.stall_timeout_s if self.user is not None else None
        return self.settings.stall_timeout_s if own is None else own

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
        storage = Storage(self.shared.usages.of(user.account.root), self._storage_limit)
        files = Filesystem(user.account.root, storage)
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

    def take_data(self) -> DataChannel:
        """Give the data connections to a transfer. Raises DataConnectionError."""
        tls = self.settings.tls
        if tls is not None and tls.policy.requires_data and not self.protects_data:
            self.data.drop()
            raise ClearDataError("Data connections have to be protected here: use PROT P.")
        return self.data.take(self.tuning, replaces=self.replaces, tls=self.data_tls)

    @property
    def data_tls(self) -> DataTls | None:
        """How data connections are protected; None: not."""
        tls, control = self.settings.tls, self.control.tls
        if tls is None or control is None or not self.protects_data:
            return None
        return control.for_data(tls.policy)

    def _tls_lines(self) -> tuple[str, ...]:
        """Describe what protects the connections."""
        if self.control.tls is None:
            return ()
        data = "protected" if self.protects_data else "clear"
        return (f"{self.control.tls.agreed}, data connections {data}",)

    def _storage_limit(self) -> StorageLimit | None:
        """What the user may keep, as the accounts are now."""
        return self.user.account.storage_limit if self.user is not None else None

    def path(self, argument: str) -> str:
        """Give the absolute virtual path that an argument names."""
        return absolute(self.current, argument)

    def may(self, *permissions: Permission) -> bool:
        """Tell whether the account has at least one of these permissions."""
        return self.user is not None and self.user.may(*permissions)

    def begin(self, text: str) -> None:
        """Say that a transfer begins, and look at what was sent together with its command."""
        self.control.reply(Reply(150, (text,)))
        self.running.has_begun = True
        self.control.offer_waiting(self._is_transfer)

    def begin_silently(self) -> None:
        """Look at what was sent together with a long command that gives no preliminary reply."""
        self.control.offer_waiting(self._is_transfer)

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

    def close_after_reply(self) -> None:
        """End the session once the reply to the current command is sent."""
        self.is_leaving = True

    def _is_transfer(self, command: Command) -> bool:
        row = self.commands.get(command.verb)
        return row is not None and row.may_be_aborted

    def watched(
        self, direction: Direction, path: str, *, is_series: bool = False
    ) -> RunningTransfer:
        """Give what the operator sees of a transfer of this session, which is logged in."""
        assert self.user is not None
        return RunningTransfer(
            direction,
            path,
            self.control.peer_host,
            self.user.account.name,
            is_anonymous=self.user.asks_no_password,
            is_ascii=self.is_ascii,
            is_protected=self.control.tls is not None and self.protects_data,
            is_series=is_series,
        )

    def describe(self) -> dict[str, object]:
        """Describe the session for the operator; times in seconds."""
        now_s = asyncio.get_running_loop().time()
        return {
            "peer": self.control.peer_host,
            "user": self.user.account.name if self.user is not None else None,
            "tls": self.control.tls.agreed if self.control.tls is not None else None,
            "since_s": round(now_s - self.begun_s, 3),
            "idle_s": round(now_s - self.heard_s, 3) if not self.running.is_there else 0.0,
            "transfers": self.transfers,
        }

    def status_lines(self) -> tuple[str, ...]:
        """Describe the session, for STAT."""
        mode = "ASCII" if self.is_ascii else "image"
        doing = "Idle"
        if self.running.may_be_aborted:
            doing = f"Moving data: {self.running.bytes_moved} bytes so far"
        return (
            "Status of the session:",
            f"Connected from {self.control.peer_host}",
            f"Logged in as {self.user_name}" if self.user else "Not logged in",
            f"Type {mode}, mode stream, structure file",
            f"At most {self.connection_limit} data connections",
            *self._tls_lines(),
            doing,
            "End of status.",
        )


def require(condition: bool, sentence: str) -> None:
    """Raise SequenceError unless `condition`."""
    if not condition:
        raise SequenceError(sentence)
