"""What is known of the server at the other end, and how it is asked.

One dialogue is one logged-in control connection. Everything that moves files stands on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from xftp.errors import ArgumentError, ReplyError
from xftp.protocol.commands import Command
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS, parse_feat, parse_mult_reply
from xftp.protocol.replies import Reply

from .control import Control
from .options import Options
from .text import printable

NOT_LOGGED_IN = 530
_UNKNOWN_COMMAND = frozenset({500, 502})
"""What servers say of a command they do not have (RFC 959 section 4.2.1)."""

_EXTENSIONS = frozenset({"SIZE", "MDTM", "MFMT", "EPSV", "EPRT", "MLSD", "MLST"})
"""Commands of which it is remembered that the server lacks them."""


def reply_error(reply: Reply, command: str) -> ReplyError:
    """Turn a refusal into the error that is raised."""
    return ReplyError(reply.code, printable(reply.text), command)


def is_unsupported(reply: Reply) -> bool:
    """Tell whether the server lacks the command: any 5yz but "not logged in"."""
    return reply.code // 100 == 5 and reply.code != NOT_LOGGED_IN


class Dialogue:
    """A control connection, and what was learnt over it."""

    def __init__(self, control: Control, options: Options) -> None:
        self.control = control
        self.options = options
        self.passive = options.passive
        self.asked = options.connections
        """Data connections that the user asked for."""
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
        self.has_tuned_server = False
        """Whether settings of the server's sockets may be in force (OPTS MULT)."""
        self._type_in_force: str | None = None
        self._lacking: set[str] = set()
        self._told_cut = False
        self._told: set[str] = set()

    # -- asking ----------------------------------------------------------------------------------

    async def ask(self, verb: str, argument: str = "", codes: Collection[int] = ()) -> Reply:
        """Send a command and give its final reply, whatever it is.

        Raises ArgumentError (nothing was sent), ConnectError.
        """
        command = Command(verb, argument)
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

        They leave in one write where the server is known to take that, else one by one.
        """
        if not self.pipelines:
            return [await self.ask(command.verb, command.argument) for command in commands]
        for command in commands:
            self._forget(command)
        timeout_s = self.options.reply_timeout_s
        replies = [await answer.wait_final(timeout_s) for answer in self.control.send(*commands)]
        for command, reply in zip(commands, replies, strict=True):
            self._learn(command, reply)
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

    async def discover(self) -> None:
        """Ask what the server can do, after the login."""
        feat = await self.ask("FEAT")
        self.features = parse_feat(feat.lines) if feat.is_positive else None
        commands = []
        if self.features is not None and "UTF8" in self.features:
            commands.append(Command("OPTS", "UTF8 ON"))
        if self.pipelines:
            commands.append(Command("TYPE", "I"))
            if self.wanted > 1:
                commands.append(Command("MULT", ""))
        for command, reply in zip(commands, await self.flight(*commands), strict=True):
            if command.verb == "MULT":
                self._take_mult(reply)

    @property
    def pipelines(self) -> bool:
        """Whether several commands may be sent at once: only to servers of our own kind."""
        return self.announces_connections

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
        return await self.connections_in_force()

    async def connections_in_force(self) -> int:
        """Give the number of data connections for the next transfer; asks MULT if need be."""
        if self.wanted > 1 and self.supports_multiple is None:
            self._take_mult(await self.ask("MULT"))
        if self.connections < self.asked and self.supports_multiple and not self._told_cut:
            self._told_cut = True
            self.notice(f"{self.asked} data connections asked, {self.connections} granted")
        return self.connections

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
