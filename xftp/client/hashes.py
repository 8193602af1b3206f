"""Asking a server for the hashes of a file: HASH, with RANG for parts; else XSHA256 and the like.

draft-bryan-ftpext-hash-02, draft-bryan-ftp-range-08. The older commands are specified nowhere and
differ between servers, so they are used only if the user wants to verify whatever it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

SLOWEST_BYTES_PER_S = 20e6
"""A server that hashes more slowly than this is not waited for."""


class CannotVerify(XftpError):
    """The server does not tell the hash of a file."""


@dataclass(frozen=True, slots=True)
class Method:
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
    wish, features = dialogue.options.verify, dialogue.features or {}
    if wish == "never":
        return None
    if dialogue.type_code == "A":  # the line ends of both sides differ
        if wish == "always":
            raise VerifyError("a transfer in ASCII type cannot be verified")
        return None
    if "HASH" in features:
        names, _ = parse_hash_feature(features["HASH"])
        for name in algorithms():
            if name in names:
                return Method("HASH", name, "RANG" in features)
    if wish == "auto":
        return None
    for verb, name in X_COMMANDS.items():
        if verb in features:
            return Method(verb, name, False)
    raise VerifyError("the server cannot tell the hash of a file, so nothing can be verified")


class RemoteFile:
    """A file on the server, of which the hashes are asked for."""

    def __init__(self, dialogue: Dialogue, path: str, method: Method) -> None:
        self.method = method
        self._dialogue = dialogue
        self._path = path
        self._early: tuple[list[Command], list[Answer]] | None = None
        self._has_ranged = False

    def ask_early(self, size: int | None) -> None:
        """Ask for the hash of the whole file behind the transfer command that runs.

        Servers of our own kind answer when the transfer is done, so that it costs no round trip.
        size: of the file, if it is known. Raises ConnectError.
        """
        if self._dialogue.pace is Pace.ALL and self._early is None:
            commands = self._questions([self._whole(size)])
            self._early = commands, self._dialogue.control.send(*commands)

    async def digest(self, size: int) -> str:
        """Give the hash of the whole file; size: its bytes, for the time it may take.

        Raises CannotVerify, ConnectError.
        """
        early, self._early = self._early, None
        if early is None:
            return (await self.digests([self._whole(size)], size))[0]
        commands, answers = early
        return self._read(commands, [await self._wait(each, size) for each in answers])[0]

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
        return ByteRange(0, size) if size and is_one_shot else None

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
