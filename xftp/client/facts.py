"""What the server tells of a file before it moves: SIZE and MDTM (RFC 3659 sections 3 and 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from xftp.errors import ArgumentError
from xftp.protocol.commands import Command
from xftp.protocol.listings import format_time_val, parse_time_val
from xftp.protocol.parts import PartFacts
from xftp.protocol.replies import Reply

from .dialogue import Dialogue, reply_error

_FILE_STATUS = 213
"""RFC 3659 sections 3.1 and 4.1."""

_SIZE = re.compile(r"[0-9]{1,20}")
_OPENING_SIZE = re.compile(r"\(([0-9]{1,20}) bytes\)")
"""Servers without SIZE tell it in the 150 reply; no RFC says so, but most do."""


class Facts(NamedTuple):
    """What is known of a remote file."""

    size: int | None
    """Bytes; None if the server did not tell."""

    modified: float | None
    """Unix time in seconds; None if the server did not tell, or was not asked."""

    @property
    def identity(self) -> str | None:
        """Size and time in words, which change when the file does; None if nothing is known."""
        return None if self.size is None else f"{self.size} bytes of {self.modified}"

    @property
    def part(self) -> PartFacts | None:
        """The same for PART; None if not all is known."""
        if self.size is None or self.modified is None:
            return None
        return PartFacts(self.size, format_time_val(self.modified))


def fact_commands(dialogue: Dialogue, path: str, *, with_time: bool) -> list[Command]:
    """Give the commands that ask for the facts of `path`, as far as the server has them."""
    commands = dialogue.type_commands()
    # In ASCII type SIZE would count line ends as they are sent, if it is answered at all.
    if dialogue.type_code == "I" and not dialogue.lacks("SIZE"):
        commands.append(Command("SIZE", path))
    if with_time and not dialogue.lacks("MDTM"):
        commands.append(Command("MDTM", path))
    return commands


def read_facts(commands: Sequence[Command], replies: Sequence[Reply]) -> Facts:
    """Read the replies to `fact_commands`. Raises ReplyError if TYPE was refused."""
    size: int | None = None
    modified: float | None = None
    for command, reply in zip(commands, replies, strict=True):
        if command.verb == "TYPE" and not reply.is_positive:
            raise reply_error(reply, "TYPE")
        if command.verb == "SIZE":
            size = parse_size(reply)
        if command.verb == "MDTM":
            modified = parse_modified(reply)
    return Facts(size, modified)


async def ask_facts(dialogue: Dialogue, path: str, *, with_time: bool) -> Facts:
    """Ask for the facts of `path`. Raises ReplyError if TYPE was refused."""
    commands = fact_commands(dialogue, path, with_time=with_time)
    return read_facts(commands, await dialogue.flight(*commands))


def parse_size(reply: Reply) -> int | None:
    """Read the reply to SIZE; None if it tells no size."""
    text = reply.text.strip()
    return int(text) if reply.code == _FILE_STATUS and _SIZE.fullmatch(text) else None


def parse_modified(reply: Reply) -> float | None:
    """Read the reply to MDTM; None if it tells no time."""
    if reply.code != _FILE_STATUS:
        return None
    try:
        return parse_time_val(reply.text.strip())
    except ArgumentError:
        return None


def opening_size(reply: Reply) -> int | None:
    """Read the size from a 150 reply; None if it is not there."""
    found = _OPENING_SIZE.search(reply.text)
    return int(found[1]) if found else None
