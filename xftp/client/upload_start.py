"""Where an upload goes on: what the server has of the file already."""

from __future__ import annotations

from xftp.errors import ArgumentError, FileError, ReplyError
from xftp.protocol.commands import Command
from xftp.protocol.listings import format_time_val
from xftp.protocol.parts import PartFacts, exact_time_val
from xftp.protocol.replies import Reply
from xftp.transport.files import SourceFile

from .comparing import is_same_content
from .dialogue import Dialogue, is_unsupported
from .facts import parse_modified, parse_size
from .restarting import Start, read_held
from .text import printable


def version_of(source: SourceFile) -> PartFacts | None:
    """Tell which version of a file here is sent; None if its time cannot be told."""
    modified = exact_time_val(source.modified)
    return None if modified is None else PartFacts(source.size, modified)


def start_of_held(dialogue: Dialogue, source: SourceFile, reply: Reply) -> Start | None:
    """Decide by the reply to HELD; None: nothing is held of which the version is known."""
    held, version = read_held(reply), version_of(source)
    if held is None or held.ranges is None or version is None or held.modified is None:
        return None
    if not held.is_same_file(version):
        dialogue.notice(
            f"{source.name}: was changed since it was cut, what the server kept is given up"
        )
        return Start(file=version)
    ranges = tuple((each.start, each.end) for each in held.ranges)
    return Start.from_held(ranges, version, in_order=dialogue.connections == 1)


async def ask_held(dialogue: Dialogue, source: SourceFile, remote: str) -> Start | None:
    """Ask what the server holds of a cut upload; None: nothing that is known."""
    commands = [*dialogue.type_commands("I"), Command("HELD", remote)]
    return start_of_held(dialogue, source, (await dialogue.flight(*commands))[-1])


async def find_length(dialogue: Dialogue, source: SourceFile, remote: str) -> int | None:
    """Find how much of the file the server has; None: nothing, or it does not tell.

    Raises FileError if it has more.
    """
    await dialogue.ensure_type("I")
    there = None if dialogue.lacks("SIZE") else parse_size(await dialogue.ask("SIZE", remote))
    if there is not None and there > source.size:
        raise FileError(
            f"{source.name}: has {source.size} bytes, fewer than the {there} on the server"
        )
    return there


async def exists(dialogue: Dialogue, remote: str) -> bool:
    """Ask whether a remote file exists; no, if the server has no way of telling."""
    if not dialogue.lacks("SIZE"):
        await dialogue.ensure_type("I")  # many servers answer SIZE in image type only
        reply = await dialogue.ask("SIZE", remote)
        if not is_unsupported(reply) or not dialogue.refused("SIZE"):
            return parse_size(reply) is not None
    if not dialogue.lacks("MLST"):
        reply = await dialogue.ask("MLST", remote)
        if not dialogue.refused("MLST"):
            return reply.is_positive
    dialogue.trace("the server cannot tell whether a file exists")
    return False


async def is_complete(
    dialogue: Dialogue, source: SourceFile, remote: str, there: int, *, time_counts: bool
) -> bool:
    """Tell whether the remote file, of `there` bytes, is the whole one already.

    A server of our own kind gives a cut upload no time, and never the target's name: a file that
    has a time and is not this one must not be mixed with it. Raises FileError then.
    time_counts: whether another time means another file, unless the hash says that it is the same:
    whoever was cut at the last moment had not given it its time yet. It gets it then.
    """
    if not dialogue.announces_connections:
        return there == source.size
    modified = parse_modified(await dialogue.ask("MDTM", remote))
    if modified is None:
        return False
    if there == source.size and (not time_counts or int(modified) == int(source.modified)):
        return True
    if there == source.size and await is_same_content(dialogue, source, remote):
        await set_time(dialogue, remote, source.modified)
        return True
    raise FileError(
        f"{printable(remote)}: is complete on the server and another version,"
        " it can only be overwritten"
    )


async def set_time(dialogue: Dialogue, remote: str, modified: float) -> None:
    """Give the remote file its time, where the server can (draft-somers-ftp-mfxx section 3)."""
    if dialogue.features is None or dialogue.lacks("MFMT"):
        return
    try:
        await dialogue.demand("MFMT", f"{format_time_val(modified)} {remote}")
    except (ReplyError, ArgumentError) as error:
        dialogue.trace(f"the time was not set: {error}")
