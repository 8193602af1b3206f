"""Asking a server for the hashes of a file: HASH, with RANG for parts; else XSHA256 and the like.

draft-bryan-ftpext-hash-02, draft-bryan-ftp-range-08. The older commands are specified nowhere and
differ between servers, so they are used only if the user wants to verify whatever it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from xftp.errors import PeerError, VerifyError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.hashes import (
    X_COMMANDS,
    ByteRange,
    format_hash_feature,
    format_rang,
    parse_hash_feature,
    parse_hash_reply,
    parse_x_reply,
)
from xftp.protocol.replies import Reply
from xftp.transport.hashing import algorithms

from .control import Answer
from .dialogue import Dialogue, reply_error
from .flights import Pace
from .paths import LONG_RTT_S

_BESIDE = "HASB"
"""HASH that is answered ahead of the reply to the download that runs (docs/protocol.md)."""

_TOLD = 213
_GOOD = frozenset({"SHA-256", "SHA-512"})
"""Those that are computed everywhere, and that no accident makes equal."""

SLOWEST_BYTES_PER_S = 20e6
"""A server that hashes more slowly than this is not waited for."""


class CannotVerify(XftpError):
    """The server does not tell the hash of a file."""


class Method(NamedTuple):
    """How a server tells hashes."""

    verb: str
    """HASH, or one of the older commands."""

    algorithm: str
    """Which hash, by its name on the wire."""

    has_ranges: bool
    """Whether it tells those of parts, and moves parts, too (RANG)."""


def choose_method(dialogue: Dialogue) -> Method | None:
    """Choose how to verify; None if that is not wanted, or not possible and not insisted on.

    Raises VerifyError if it is insisted on and not possible.
    """
    wish = dialogue.options.verify
    if wish == "never":
        return None
    if dialogue.type_code == "A":  # the line ends of both sides differ
        if wish == "always":
            raise VerifyError("a transfer in ASCII type cannot be verified")
        return None
    method = announced_method(dialogue)
    if method is not None or wish == "auto":
        return method
    for verb, name in X_COMMANDS.items():
        if verb in (dialogue.features or {}):
            return Method(verb, name, False)
    raise VerifyError("the server cannot tell the hash of a file, so nothing can be verified")


def announced_method(dialogue: Dialogue) -> Method | None:
    """Choose among the hashes that the server's HASH tells; None if it tells none that we know."""
    features = dialogue.features or {}
    names, in_force = parse_hash_feature(features.get("HASH", ""))
    rtt_s, known = dialogue.control.rtt_s, algorithms()
    if rtt_s is not None and rtt_s >= LONG_RTT_S and in_force in _GOOD:
        known = (in_force, *known)  # to choose a faster one would cost a round trip
    found = (name for name in known if name in names)
    return next((Method("HASH", name, "RANG" in features) for name in found), None)


class RemoteFile:
    """A file on the server, of which the hashes are asked for.

    may_grow: whether more bytes than are compared may be there, as while somebody appends to what
    is fetched; what was stored has to end where it should.
    """

    def __init__(
        self, dialogue: Dialogue, path: str, method: Method, *, may_grow: bool = True
    ) -> None:
        self.method = method
        self._may_grow = may_grow
        self._dialogue = dialogue
        self._path = path
        self._early: tuple[list[Command], list[Answer]] | None = None
        self._beside: Answer | None = None
        self._has_ranged = False

    def ask_early(self, size: int | None) -> None:
        """Ask for the hash of the whole file behind the transfer command that runs.

        Servers of our own kind answer when the transfer is done, so that it costs no round trip.
        size: of the file, if it is known. Raises ConnectError.
        """
        if self._dialogue.pace is Pace.ALL and self._early is None:
            commands = self._questions([self._whole(size)])
            self._early = commands, self._dialogue.control.send(*commands)

    def ask_beside(self) -> None:
        """Ask for the hash of the whole file while it moves, of a server that can tell it then.

        Raises ConnectError.
        """
        can_tell = self.method.verb == "HASH" and _BESIDE in (self._dialogue.features or {})
        is_one = can_tell and self._is_in_force() and not self._has_ranged
        if self._dialogue.pace is Pace.ALL and is_one and self._early is None:
            command = Command(_BESIDE, self._path)
            (self._beside,) = self._dialogue.control.send(command, codes=(_TOLD,))
            self._early = [command], [self._beside]

    async def told_beside(self, size: int) -> None:
        """Wait until the answer to `ask_beside` is there; for ever if it is of no use.

        size: of the file. Raises ConnectError.
        """
        if self._beside is not None:
            reply = await asyncio.shield(self._beside.final)
            if reply.code == _TOLD and _covers(reply, size):
                return
        await asyncio.get_running_loop().create_future()

    async def digest(self, size: int) -> str:
        """Give the hash of the whole file; size: its bytes, for the time it may take.

        Raises CannotVerify, ConnectError.
        """
        early, self._early = self._early, None
        if early is not None:
            commands, answers = early
            replies = [await self._wait(each, size) for each in answers]
            beside, self._beside = self._beside, None
            if beside is None or _covers(replies[0], size):
                return self._read(commands, replies)[0]
        return (await self.digests([self._whole(size)], size))[0]

    async def digests(self, ranges: Sequence[ByteRange | None], size: int) -> list[str]:
        """Give the hash of each range, None being the whole file; size: the bytes of all.

        Raises as `digest`.
        """
        commands, send = self._questions(ranges), self._dialogue.control.send
        if self._dialogue.pace is Pace.ALL:
            replies = [await self._wait(each, size) for each in send(*commands)]
        else:
            replies = [await self._wait(send(each)[0], size) for each in commands]
        return self._read(commands, replies)

    def _whole(self, size: int | None) -> ByteRange | None:
        """Give what the whole file is: it may have grown since its size was told."""
        is_one_shot = self.method.has_ranges and self._dialogue.pace is Pace.ALL
        return ByteRange(0, size) if size and is_one_shot and self._may_grow else None

    def _questions(self, ranges: Sequence[ByteRange | None]) -> list[Command]:
        commands = []
        if self.method.verb == "HASH" and not self._is_in_force():
            commands.append(Command("OPTS", f"HASH {self.method.algorithm}"))
        for each in ranges:
            if each is not None or self._has_ranged:
                commands.append(Command("RANG", format_rang(each)))
            self._has_ranged = each is not None
            commands.append(Command(self.method.verb, self._path))
        return commands

    def _is_in_force(self) -> bool:
        features = self._dialogue.features or {}
        return parse_hash_feature(features.get("HASH", ""))[1] == self.method.algorithm

    async def _wait(self, answer: Answer, size: int) -> Reply:
        timeout_s = self._dialogue.options.reply_timeout_s + size / SLOWEST_BYTES_PER_S
        return await answer.wait_final(timeout_s)

    def _read(self, commands: Sequence[Command], replies: Sequence[Reply]) -> list[str]:
        digests = []
        for command, reply in zip(commands, replies, strict=True):
            if reply.is_negative:
                raise CannotVerify(str(reply_error(reply, command.verb)))
            if command.verb == "OPTS":
                self._note_selected()
            elif command.verb != "RANG":
                digests.append(self._digest(reply))
        return digests

    def _digest(self, reply: Reply) -> str:
        algorithm = self.method.algorithm
        try:
            if self.method.verb != "HASH":
                return parse_x_reply(reply.text, algorithm)
            found = parse_hash_reply(reply.text)
        except PeerError as error:
            raise CannotVerify(str(error)) from error
        if found.algorithm != algorithm:
            raise CannotVerify(f"the server told {found.algorithm} instead of {algorithm}")
        return found.digest

    def _note_selected(self) -> None:
        """Note what OPTS HASH has put in force, in the way that FEAT would tell."""
        features = self._dialogue.features
        if features is not None:
            names, _ = parse_hash_feature(features["HASH"])
            line = format_hash_feature(names, self.method.algorithm)
            features["HASH"] = line.partition(" ")[2]


def _covers(reply: Reply, size: int) -> bool:
    """Tell whether a hash that was told is of `size` bytes: the file may have grown since."""
    try:
        found = parse_hash_reply(reply.text)
    except PeerError:
        return False
    return (found.first, found.last) == (0, max(size - 1, 0))
