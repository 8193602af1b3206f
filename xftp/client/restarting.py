"""Where the next transfer starts: REST at one byte, or PART with the ranges that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xftp.errors import PeerError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.parts import PartFacts, fewest, format_part, missing_ranges, parse_part
from xftp.protocol.replies import Reply
from xftp.transport.journal import Ranges

from .dialogue import Dialogue, is_unsupported, reply_error
from .flights import Pace

CANNOT_GO_ON = 554
"""Reply of our own kind to a transfer that cannot go on: one of both files was changed."""

_FILE_STATUS = 213


class Start(NamedTuple):
    """Where a transfer goes on."""

    offset: int = 0
    """The byte at which it begins; what is before it is there."""

    file: PartFacts | None = None
    """Which version of the file it is, for servers that have PART."""

    missing: tuple[ByteRange, ...] | None = None
    """The ranges that are missing, if not all behind `offset`."""

    @property
    def goes_on(self) -> bool:
        """Whether something is there already."""
        return self.offset > 0 or self.missing is not None

    def held(self, size: int) -> Ranges:
        """Give what is there of a file of `size` bytes, in (start, end)."""
        if self.missing is None:
            return ((0, self.offset),) if self.offset else ()
        coming = [(each.start, each.end) for each in self.missing]
        return tuple((each.start, each.end) for each in missing_ranges(coming, size))

    def held_bytes(self, size: int) -> int:
        """Count the bytes that are there of a file of `size` bytes."""
        return sum(end - start for start, end in self.held(size))

    @classmethod
    def from_held(cls, held: Ranges, file: PartFacts, *, in_order: bool) -> Start:
        """Go on with `held`, in (start, end), of the version `file`, whose size is told.

        in_order: over one plain connection, if nothing but the end is missing.
        """
        missing = fewest(missing_ranges(held, file.size or 0))
        if not missing:
            return cls(file.size or 0, file)
        reaches_end = len(missing) == 1 and missing[0].end == file.size
        if reaches_end and (in_order or not missing[0].start):
            return cls(missing[0].start, file)
        return cls(0, file, tuple(missing))


def knows_parts(dialogue: Dialogue) -> bool:
    """Tell whether the server has PART and HELD."""
    return not dialogue.lacks("PART") and not dialogue.lacks("HELD") and bool(dialogue.features)


def start_commands(dialogue: Dialogue, start: Start) -> list[Command]:
    """Give the PART and the REST that may go ahead of the data connections.

    There are none if they have to go behind: only servers of our own kind keep them until the
    transfer, whatever comes in between.
    """
    if dialogue.pace is not Pace.ALL:
        return []
    commands = []
    if start.file is not None:
        facts = PartFacts(start.file.size, start.file.modified, start.missing)
        commands.append(Command("PART", format_part(facts)))
    if start.offset:
        commands.append(Command("REST", str(start.offset)))
    return commands


async def restart(
    dialogue: Dialogue, start: Start, commands: Sequence[Command], replies: Sequence[Reply]
) -> Start:
    """Ask that the next transfer starts so, unless that was done; give how it will start.

    commands, replies: those of `start_commands`. Raises ReplyError for ranges that are refused.
    """
    answered = {command.verb: reply for command, reply in zip(commands, replies, strict=True)}
    part = answered.get("PART")
    if part is not None and not part.is_intermediate:
        if start.missing is not None or not is_unsupported(part):
            raise reply_error(part, "PART")
        start = start._replace(file=None)  # it was remembered otherwise
    if await restart_at(dialogue, start.offset, answered.get("REST")) == start.offset:
        return start
    return Start(file=start.file)


async def restart_at(dialogue: Dialogue, offset: int, reply: Reply | None = None) -> int:
    """Ask that the next transfer starts at byte `offset`; give where it will start.

    reply: that to REST, if it was sent already.
    """
    if not offset:
        return 0
    reply = reply or await dialogue.ask("REST", str(offset))
    if reply.is_intermediate:
        return offset
    dialogue.notice(f"the server does not restart at {offset}, starting over")
    return 0


def read_held(reply: Reply) -> PartFacts | None:
    """Read the reply to HELD; None: nothing is held. Raises PeerError."""
    if reply.code != _FILE_STATUS:
        return None
    try:
        facts = parse_part(reply.text.strip())
    except XftpError as error:
        raise PeerError(f"the reply to HELD cannot be read: {error}") from error
    return facts if facts.ranges else None
