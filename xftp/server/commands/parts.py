"""Restart with holes: HELD tells what is there of a cut upload, PART what the next transfer moves.

docs/protocol.md. Offsets are bytes of the file, and record 0 is byte 0, so that nothing depends on
where an earlier transfer began.
"""

from __future__ import annotations

import contextlib

from xftp.errors import ArgumentError, FileError, ParameterError, RestartError
from xftp.protocol.listings import parse_time_val
from xftp.protocol.parts import (
    PartFacts,
    format_part,
    is_time,
    largest,
    missing_ranges,
    parse_part,
    records_of,
)
from xftp.protocol.replies import Reply
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.transport.files import SourceFile
from xftp.transport.kept import Kept
from xftp.transport.partial import PartialFile


async def choose_part(session: Session, argument: str) -> Reply:
    part = parse_part(argument)
    if part.ranges == ():
        raise ArgumentError("PART takes a range at least, or none at all")
    session.part, session.byte_range = part, None
    if part.ranges is None:
        return Reply(350, ("The file is known by these facts.",))
    session.restart_offset = 0
    size = sum(each.size for each in part.ranges)
    return Reply(350, (f"Restarting with {len(part.ranges)} ranges, {size} bytes.",))


async def held(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    kept = await session.in_thread(lambda: session.files.kept(path))
    if kept is None:
        raise FileError(f"{argument}: nothing is held of it")
    return Reply(213, (format_part(_facts(kept)),))


def _facts(kept: Kept) -> PartFacts:
    """Give what a client needs to go on; Size and Modify only if both are known."""
    ranges = tuple(largest(kept.held))
    with contextlib.suppress(ArgumentError):
        if kept.size is not None and kept.source is not None:
            parse_time_val(kept.source)  # anything else was not noted for PART
            return PartFacts(kept.size, kept.source, ranges)
    return PartFacts(ranges=ranges)


# -- for the transfer commands --------------------------------------------------------------------


def check_no_part(session: Session) -> None:
    """Refuse PART before what it does not go with. Raises ParameterError."""
    if session.part is not None:
        session.data.drop()
        raise ParameterError("PART goes with RETR and STOR.")


def part_to_send(part: PartFacts, source: SourceFile) -> list[tuple[int, int]] | None:
    """Give the records (start, end) that a RETR sends; None: all from the offset on.

    Raises RestartError if the file is not the one that PART means.
    """
    is_other = part.size is not None and part.size != source.size
    if is_other or (part.modified is not None and not is_time(part.modified, source.modified)):
        raise RestartError(f"{source.name} is not the file that PART means: it was changed")
    if part.ranges is None:
        return None
    if part.ranges[-1].end > source.size:
        raise RestartError(f"A range ends beyond the {source.size} bytes of {source.name}")
    return records_of(part.ranges)


def reopened(session: Session, path: str, part: PartFacts) -> PartialFile:
    """Open what a cut upload left, for the ranges of PART. Blocks.

    Raises RestartError if that and the ranges do not make the whole file.
    """
    if part.size is None or part.modified is None:
        raise ArgumentError("PART with ranges needs Size and Modify for STOR")
    target = session.files.reopen_target(path, part.size, part.modified)
    coming = [(each.start, each.end) for each in part.ranges or ()]
    if missing_ranges([*target.held, *coming], part.size):
        target.keep(target.held, part.size)
        raise RestartError(f"{path}: less is held of it than PART says")
    return target


def check_kept(session: Session, path: str, part: PartFacts) -> None:
    """See that what REST goes on with is of the file that PART means. Blocks.

    Raises RestartError if not.
    """
    kept = session.files.kept(path)
    if kept is None or (kept.size, kept.source) != (part.size, part.modified):
        raise RestartError(f"{path}: what is there is not of this version of the file")


ROWS = (
    Row(
        "PART",
        choose_part,
        "PART [Size=<bytes>;][Modify=<time>;][Ranges=<first>-<last>,...;]",
        Argument.REQUIRED,
        feature="PART RETR;STOR",
        keeps_restart=True,
    ),
    Row(
        "HELD",
        held,
        "HELD <path>",
        Argument.REQUIRED,
        feature="HELD",
        keeps_restart=True,
        permissions=(Permission.WRITE, Permission.APPEND),
    ),
)
