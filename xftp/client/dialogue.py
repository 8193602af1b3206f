"""What is known of the server at the other end, and how it is asked.

One dialogue is one logged-in control connection. Everything that moves files stands on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from xftp.errors import ArgumentError, ConnectError, PeerError, ReplyError
from xftp.protocol.commands import Command
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS, MULT_KEYS, parse_feat, parse_mult_reply
from xftp.protocol.replies import Reply
from xftp.protocol.standing import port_of_feature
from xftp.transport.ports import PassivePorts

from .control import Answer, Control, SessionEnded
from .flights import Pace, PipeliningError, check_replies, groups, patience_s
from .memory import KnownPath, Way
from .options import Options
from .text import printable

NOT_LOGGED_IN = 530
_UNKNOWN_COMMAND = frozenset({500, 502})
"""What servers say of a command they do not have (RFC 959 section 4.2.1)."""

OUR_FEATURES = {
    "MULT": "".join(f"{name};" for name, _ in MULT_KEYS),
    "HASH": "SHA-256",
    **dict.fromkeys(("SIZE", "MDTM", "MFMT", "EPSV", "EPRT", "MLST", "UTF8"), ""),
    **dict.fromkeys(("SERI", "PART", "HELD"), ""),
}
"""What FEAT of a server of our own kind lists at least, until its reply is there."""

_EXTENSIONS = frozenset({"SIZE", "MDTM", "MFMT", "EPSV", "EPRT", "MLSD", "MLST"})
"""Commands of which it is remembered that the server lacks them."""


def reply_error(reply: Reply, command: str) -> ReplyError:
    """Turn a refusal into the error that is raised."""
    return ReplyError(reply.code, printable(reply.text), command)


def is_unsupported(reply: Reply) -> bool:
    """Tell whether the server lacks the command: any 5yz but "not logged in"."""
    return reply.code // 100 == 5 and reply.code != NOT_LOGGED_IN


class _Deferred(NamedTuple):
    """Commands that leave with the next flight, ahead of it."""

    commands: tuple[Command, ...]
    take: Callable[[Sequence[Reply]], None]
    """Told their replies before the flight's own are looked at; may raise."""


class Dialogue:
    """A control connection, and what was learnt over it."""

    def __init__(self, control: Control, options: Options, *, may_pipeline: bool = True) -> None:
        """Begin a dialogue; may_pipeline: False for servers that cannot take flights."""
        self.may_pipeline = may_pipeline
        self.pace = Pace.ONE_BY_ONE
        self._is_proven = False
        self._deferred: list[_Deferred] = []
        self.control = control
        self.options = options
        self.passive = options.passive
        self.ports = PassivePorts(options.listen_ports)
        """Where this side listens if the server dials."""
        self.asked = options.connections
        """Data connections that the user asked for."""
        self.auto = options.auto
        """Chooses how many of them are opened, if the user left it open."""
        self.features: dict[str, str] | None = None
        """What FEAT listed; None if the server does not know FEAT."""
        self.supports_multiple: bool | None = None
        """None: not asked yet."""
        self.server_limit: int | None = None
        """The number in the reply to MULT; None: not asked, or not told."""
        self.type_code = "I"
        """The representation the user wants: "I" (image) or "A" (ASCII)."""
        self.lock = asyncio.Lock()
        """Held by whatever takes several commands, so that nothing comes between them."""
        self.stop_transfer: asyncio.Future[None] | None = None
        """While a transfer runs: done when it shall stop."""
        self.sender_answer: Answer | None = None
        """To SITE REPORT, asked behind the transfer that runs."""
        self.has_tuned_server = False
        """Whether settings of the server's sockets may be in force (OPTS MULT)."""
        self._type_in_force: str | None = None
        self._lacking: set[str] = set()
        self.place: tuple[str, int] | None = None
        """Host and port as the user named them, by which they are remembered."""
        self.standing_port: int | None = None
        """The server's port for the data connections of all sessions; None: not known."""
        self.paths: dict[Way, KnownPath] = {}
        """What is known of the path, each way."""
        self.asked_rate_bps: float | None = None
        """Rate that the sender of the present transfer was told, if it was."""
        self.sender_takes_windows = True
        """Whether that sender has a use for a rate, as far as it is known."""
        self._told_cut = False
        self._told: set[str] = set()

    # -- asking ----------------------------------------------------------------------------------

    async def ask(self, verb: str, argument: str = "", codes: Collection[int] = ()) -> Reply:
        """Send a command and give its final reply, whatever it is.

        Raises ArgumentError (nothing was sent), ConnectError.
        """
        command = Command(verb, argument)
        if self._deferred:
            return (await self.flight(command))[-1]
        self._forget(command)
        reply = await self.control.ask(command, codes)
        self._learn(command, reply)
        return reply

    async def demand(self, verb: str, argument: str = "") -> Reply:
        """Send a command that must succeed. Raises ReplyError, and what `ask` raises."""
        reply = await self.ask(verb, argument)
        if not reply.is_positive:
            raise reply_error(reply, verb)
        return reply

    async def flight(self, *commands: Command) -> list[Reply]:
        """Send commands whose replies do not depend on each other; give all final replies.

        They leave in one write as far as the server takes that, else one after the other. Raises
        PipeliningError if it turns out not to; then the connection is closed.
        """
        replies = []
        for group in groups(self.pace, commands):
            replies += (await self._fly(group, None))[0]
        return replies

    async def flight_with(
        self, commands: Sequence[Command], transfer: Command
    ) -> tuple[list[Reply], Answer | None]:
        """Send commands, and the transfer behind them in the same flight if that is safe.

        It is with servers of our own kind: a transfer without data connections is refused by them,
        and one that changes files, or must not go in the clear, leaves only when they have answered
        a flight before. Gives the transfer's answer, which is not waited for; None if it has to be
        sent later.
        """
        is_grave = transfer.verb not in ("RETR", "MRTR") or self.control.tls is not None
        if self.pace is not Pace.ALL or (is_grave and not self._is_proven):
            return await self.flight(*commands), None
        return await self._fly(list(commands), transfer)

    async def settle(self) -> None:
        """Send what was deferred, and take its replies."""
        if self._deferred:
            await self._fly([], None)

    def defer(self, commands: Sequence[Command], take: Callable[[Sequence[Reply]], None]) -> None:
        """Let commands leave with the next flight, ahead of it; only where `pace` is ALL.

        take: told their replies before the flight's own are looked at; it may raise.
        """
        self._deferred.append(_Deferred(tuple(commands), take))

    @property
    def is_settled(self) -> bool:
        """Whether nothing is deferred."""
        return not self._deferred

    async def _fly(
        self, commands: list[Command], transfer: Command | None
    ) -> tuple[list[Reply], Answer | None]:
        """Send what was deferred, `commands` and `transfer` in one write."""
        deferred, self._deferred = self._deferred, []
        ahead = [command for each in deferred for command in each.commands]
        leaving = [*ahead, *commands]
        for command in leaving:
            self._forget(command)
        answers = self.control.send(*leaving, *([transfer] if transfer else []))
        begun = answers.pop() if transfer else None
        replies = await self._replies(leaving, answers)
        for command, reply in zip(leaving, replies, strict=True):
            self._learn(command, reply)
        for each in deferred:
            each.take(replies[: len(each.commands)])
            replies = replies[len(each.commands) :]
        return replies, begun

    async def _replies(self, commands: list[Command], answers: list[Answer]) -> list[Reply]:
        """Wait for the final replies, and judge those to the first flight."""
        await self.control.connected()
        limit_s = self.options.reply_timeout_s
        if self._is_proven or len(answers) < 2:
            await self.control.greet()
            return [await answer.wait_final(limit_s) for answer in answers]
        limit_s = min(limit_s, patience_s(self.options.pipelining_patience_s, self.control.rtt_s))
        try:
            await self.control.greet()
            replies = [await answer.wait_final(limit_s) for answer in answers]
            check_replies(commands, replies)
        except SessionEnded:
            raise
        except (ConnectError, PeerError) as error:
            self.control.close()
            raise PipeliningError(str(error)) from error
        self._is_proven = True
        return replies

    def trace(self, text: str) -> None:
        """Tell of a way around something, to those who follow every step."""
        self.control.trace(f"* {text}")

    def notice_once(self, text: str) -> None:
        """Tell the user something that would else be said for every file."""
        if text not in self._told:
            self._told.add(text)
            self.notice(text)

    def notice(self, text: str) -> None:
        """Tell the user something that is no failure."""
        (self.options.notice or self.trace)(text)

    # -- what the server can do ------------------------------------------------------------------

    def assume_our_kind(
        self, features: Mapping[str, str] | None = None, limit: int | None = None
    ) -> None:
        """Go by what a server of our own kind can do, until its replies tell.

        features, limit: what FEAT and MULT said in an earlier session.
        """
        self.features = dict(features or OUR_FEATURES)
        self.supports_multiple, self.server_limit = True, limit
        self.standing_port = port_of_feature(self.features.get("MPSV", ""))
        self.pace = Pace.ALL
        self.control.is_taken_for_ours = True

    async def discover(self) -> None:
        """Ask what the server can do, after the login."""
        self._take_features(await self.ask("FEAT"))
        commands = self.discovery()[1:]
        if self.pace is Pace.ALL:
            commands.append(Command("TYPE", "I"))
        else:
            commands = [command for command in commands if command.verb != "MULT"]
        self.take_discovery(commands, await self.flight(*commands))

    def discovery(self) -> list[Command]:
        """Give the commands that ask what the server can do, FEAT first."""
        commands = [Command("FEAT", "")]
        if self.features is not None and "UTF8" in self.features:
            commands.append(Command("OPTS", "UTF8 ON"))
        if self.wanted > 1:
            commands.append(Command("MULT", ""))
        return commands

    def take_discovery(self, commands: Sequence[Command], replies: Sequence[Reply]) -> None:
        """Take the replies to `discovery`."""
        for command, reply in zip(commands, replies, strict=True):
            if command.verb == "FEAT":
                self._take_features(reply)
            elif command.verb == "MULT":
                self._take_mult(reply)

    def _take_features(self, feat: Reply) -> None:
        self.features = parse_feat(feat.lines) if feat.is_positive else None
        self.standing_port = port_of_feature((self.features or {}).get("MPSV", ""))
        if not self.may_pipeline:
            self.pace = Pace.ONE_BY_ONE
        else:
            self.pace = Pace.ALL if self.announces_connections else Pace.SELF_CHECKING

    @property
    def announces_connections(self) -> bool:
        """Whether the server takes OPTS MULT Connections=N (its FEAT line says so)."""
        return "connections" in (self.features or {}).get("MULT", "").lower()

    def lacks(self, verb: str) -> bool:
        """Tell whether it is useless to send an extension: not in FEAT, or refused before."""
        return verb in self._lacking or (self.features is not None and verb not in self.features)

    def refused(self, verb: str) -> bool:
        """Tell whether the server answered before that it lacks an extension."""
        return verb in self._lacking

    def type_commands(self, code: str | None = None) -> list[Command]:
        """Give the TYPE command that is needed before a transfer; none if it is in force."""
        code = code or self.type_code
        return [] if self._type_in_force == code else [Command("TYPE", code)]

    async def ensure_type(self, code: str | None = None) -> None:
        """Put the type in force. Raises ReplyError."""
        for command in self.type_commands(code):
            await self.demand(command.verb, command.argument)

    def forget_type(self) -> None:
        """Note that the type in force is no longer known."""
        self._type_in_force = None

    def _forget(self, command: Command) -> None:
        """Forget what a command that leaves now may change: its reply may never be seen."""
        if command.verb == "TYPE":
            self._type_in_force = None

    def _learn(self, command: Command, reply: Reply) -> None:
        """Remember what a reply tells for the rest of the session."""
        if command.verb == "TYPE" and reply.is_positive:
            self._type_in_force = command.argument
        if command.verb in _EXTENSIONS and reply.code in _UNKNOWN_COMMAND:
            self._lacking.add(command.verb)

    # -- several data connections ----------------------------------------------------------------

    @property
    def wanted(self) -> int:
        """Data connections asked for, within this side's limit."""
        return min(self.asked, self.options.connection_limit)

    @property
    def connections(self) -> int:
        """The number in force, as far as it is known."""
        if self.supports_multiple is False:
            return 1
        limit = self.wanted if self.server_limit is None else self.server_limit
        return max(1, min(self.wanted, limit))

    async def multiple(self, wanted: int | None) -> int:
        """Ask for several data connections; give the number in force (Allman 1997 B.3).

        Raises ArgumentError for less than 1.
        """
        wanted = MULT_DEFAULT_CONNECTIONS if wanted is None else wanted
        if wanted < 1:
            raise ArgumentError("at least 1 data connection is needed")
        self.asked, self._told_cut, self.supports_multiple = wanted, False, None
        self.auto = None
        return await self.connections_in_force()

    async def connections_in_force(self) -> int:
        """Give the number of data connections for the next transfer; asks MULT if need be."""
        if self.wanted > 1 and self.supports_multiple is None:
            self._take_mult(await self.ask("MULT"))
        self._tell_cut()
        return self.connections

    def _tell_cut(self) -> None:
        """Say once that fewer connections are in force than were asked for."""
        if self.auto is not None:
            return
        if self.connections < self.asked and self.supports_multiple and not self._told_cut:
            self._told_cut = True
            self.notice(f"{self.asked} data connections asked, {self.connections} granted")

    def give_up_multiple(self, reason: str) -> None:
        """Go on with single data connections from now on."""
        self.trace(f"{reason}: one data connection from now on")
        self.supports_multiple = False

    def _take_mult(self, reply: Reply) -> None:
        if reply.code == NOT_LOGGED_IN:
            raise reply_error(reply, "MULT")
        if not reply.is_positive:
            self.give_up_multiple("the server does not know MULT")
            return
        self.supports_multiple = True
        self.server_limit = parse_mult_reply(reply.text)
        self._tell_cut()
