"""Listings: LIST, NLST, MLSD over data connections, MLST and STAT <path> over the control one.

RFC 959 section 4.1.3, RFC 1123 section 4.1.2.7, RFC 3659 section 7. The form of LIST is that of
`ls -l`, which every client knows.
"""

from __future__ import annotations

import contextlib
import fnmatch
import io
import logging
import os
import posixpath
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial

from xftp.errors import ArgumentError, FileError, FileNameError, ParameterError
from xftp.protocol.listings import (
    format_list_line,
    format_mlsx_line,
    format_time_val,
    safe_name,
)
from xftp.protocol.replies import Reply
from xftp.server.filesystem import Item
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import MLST_FACTS, Session
from xftp.transport.plain import StreamSender

from .moving import run_transfer

logger = logging.getLogger(__name__)

Formatter = Callable[[Item], str]


async def long_list(session: Session, argument: str) -> Reply:
    path = _without_options(argument)
    return await _send(session, _selected, path, _list_formatter())


async def name_list(session: Session, argument: str) -> Reply:
    path = _without_options(argument)
    prefix = await session.in_thread(lambda: _prefix(session, path))
    return await _send(session, _selected, path, lambda item: posixpath.join(prefix, item.name))


def _prefix(session: Session, path: str) -> str:
    """Give what makes a listed name one that RETR understands (RFC 1123 section 4.1.2.7)."""
    is_named = bool(path.strip("./")) and _is_directory(session, path)
    return path if is_named else posixpath.dirname(path)


def _is_directory(session: Session, path: str) -> bool:
    with contextlib.suppress(FileError):
        return stat.S_ISDIR(session.files.status(session.path(path)).st_mode)
    return False


async def machine_list(session: Session, argument: str) -> Reply:
    return await _send(session, _directory_only, argument, _mlsx_formatter(session))


async def _send(
    session: Session,
    select: Callable[[Session, str], list[Item]],
    path: str,
    formatter: Formatter,
) -> Reply:
    """Send a listing, unframed, over the first data connection."""
    channel = session.take_data()
    try:
        text = await session.in_thread(lambda: _render(select(session, path), formatter))
        session.begin("Here comes the listing.")
        sender = StreamSender(channel, lambda: text.read(1 << 18), limit=session.rate_limit)
        await run_transfer(session, sender)
    finally:
        channel.close()
    return Reply(226, ("Listing sent.",))


def _render(items: list[Item], formatter: Formatter) -> io.BytesIO:
    text = "".join(f"{line}\r\n" for line in _lines(items, formatter))
    return io.BytesIO(text.encode("utf-8", "surrogateescape"))


def _lines(items: list[Item], formatter: Formatter) -> Iterator[str]:
    """Format every item that can be told: a name with a line end in it cannot."""
    for item in items:
        if not safe_name(item.name):
            continue
        try:
            yield formatter(item)
        except ArgumentError as error:  # a time stamp that no calendar has
            logger.warning("left out of a listing: %s: %s", item.name, error)


def _without_options(argument: str) -> str:
    """Leave out what clients give to `ls` by habit: `LIST -la path`."""
    words = argument.split(" ")
    while words and words[0].startswith("-"):
        words.pop(0)
    return " ".join(words)


def _selected(session: Session, argument: str) -> list[Item]:
    """Give what LIST names: a directory's entries, one file, or what a pattern matches."""
    path = session.path(argument)
    try:
        status = session.files.status(path)
    except FileError:
        pattern = posixpath.basename(path)
        if not any(sign in pattern for sign in "*?["):
            raise
        if len(pattern) > _LONGEST_PATTERN:
            raise FileNameError(
                f"A pattern has at most {_LONGEST_PATTERN} characters, as a name has"
            ) from None
        entries = _entries(session, posixpath.dirname(path))
        return [item for item in entries if fnmatch.fnmatchcase(item.name, pattern)]
    if stat.S_ISDIR(status.st_mode):
        return _entries(session, path)
    return [Item(posixpath.basename(path), status)]


def _directory_only(session: Session, argument: str) -> list[Item]:
    path = session.path(argument)
    if not stat.S_ISDIR(session.files.status(path).st_mode):
        raise ArgumentError(f"{path} is not a directory.")  # RFC 3659 section 7.2.1
    return _entries(session, path)


def _entries(session: Session, path: str) -> list[Item]:
    return session.files.entries(path, session.settings.limits.listing_entries)


_LONGEST_PATTERN = 255
"""NAME_MAX of Linux (limits.h). Whatever is longer matches little and costs much."""


def _list_formatter() -> Formatter:
    now = time.time()

    def line(item: Item) -> str:
        status = item.status
        return format_list_line(
            item.name,
            status.st_mode,
            status.st_nlink,
            str(status.st_uid),
            str(status.st_gid),
            status.st_size,
            status.st_mtime,
            now,
        )

    return line


def _mlsx_formatter(session: Session) -> Formatter:
    chosen = session.mlst_facts
    user = session.user
    permissions = user.account.permissions if user is not None else frozenset()

    def line(item: Item) -> str:
        facts = _facts(item.status, permissions)
        return format_mlsx_line({name: facts[name] for name in chosen if name in facts}, item.name)

    return line


_DIRECTORY_SIGNS = {
    "l": Permission.LIST,
    "c": Permission.WRITE,
    "m": Permission.MKDIR,
    "f": Permission.RENAME,
    "d": Permission.DELETE,
    "p": Permission.DELETE,
}
"""What the letters of the fact `perm` stand for, of a directory (RFC 3659 section 7.5.5)."""

_FILE_SIGNS = {
    "r": Permission.READ,
    "a": Permission.APPEND,
    "w": Permission.WRITE,
    "d": Permission.DELETE,
    "f": Permission.RENAME,
}
"""The same of a file."""


def _facts(status: os.stat_result, granted: frozenset[Permission]) -> dict[str, str]:
    """Give the facts of RFC 3659 section 7.5; the permissions are those of this session."""
    is_directory = stat.S_ISDIR(status.st_mode)
    permissions = ""
    if is_directory:
        kind = "dir"
        permissions = "e" + _signs(_DIRECTORY_SIGNS, granted)
    elif stat.S_ISREG(status.st_mode):
        kind = "file"
        permissions = _signs(_FILE_SIGNS, granted)
    else:
        kind = "OS.unix=special"
    facts = {
        "type": kind,
        "modify": format_time_val(status.st_mtime),
        "perm": permissions,
        "unique": f"{status.st_dev:x}g{status.st_ino:x}",
        "unix.mode": f"{stat.S_IMODE(status.st_mode):04o}",
    }
    if not is_directory:
        facts["size"] = str(status.st_size)
    return facts


def _signs(signs: dict[str, Permission], granted: frozenset[Permission]) -> str:
    return "".join(sign for sign, permission in signs.items() if permission in granted)


async def machine_status(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    formatter = _mlsx_formatter(session)

    def describe() -> str:
        return formatter(Item(path, session.files.entry_status(path)))

    line = await session.in_thread(describe)
    return Reply(250, (f"Facts of {path}:", line, "End."))


async def status(session: Session, argument: str) -> Reply:
    if not argument:
        return Reply(211, session.status_lines())
    if not session.may(Permission.LIST):
        raise FileError("Permission denied: this account has no right to list")
    path = _without_options(argument)
    formatter = _list_formatter()

    def describe() -> tuple[int, list[str]]:
        lines = list(_lines(_selected(session, path), formatter))
        return 212 if _is_directory(session, path) else 213, lines

    code, lines = await session.in_thread(describe)
    if len(lines) > _MOST_STATUS_LINES:
        raise ArgumentError(f"More than {_MOST_STATUS_LINES} entries: use LIST.")
    return Reply(code, (f"Status of {path}:", *lines, "End of status."))


async def site_list(session: Session, path: str) -> Reply:
    """Answer SITE MLSD: what MLSD would, on the control connection, if it is short.

    Raises FileError, ParameterError for one that is too long.
    """
    if not session.may(Permission.LIST):
        raise FileError("Permission denied: this account has no right to SITE MLSD")
    formatter = _mlsx_formatter(session)

    def listed() -> list[str]:
        return list(_lines(_directory_only(session, path), formatter))

    lines = await session.in_thread(listed)
    if len(lines) > _MOST_SITE_LINES or sum(map(len, lines)) > _MOST_SITE_CHARACTERS:
        raise ParameterError("That is a long listing: use MLSD.")
    return Reply(250, ("Listing:", *lines, "End."))


_MOST_SITE_LINES = 400
_MOST_SITE_CHARACTERS = 16_000
"""A client reads 1000 lines and 64 KiB of one reply at most; a character has up to 4 bytes."""

_MOST_STATUS_LINES = 200
"""STAT <path> answers over the control connection, which other commands wait for."""


def mlst_feature() -> str:
    """Give the FEAT line of MLST; a star marks what is told unless OPTS MLST says otherwise."""
    return "MLST " + "".join(f"{fact}*;" for fact in MLST_FACTS)


_LIST = (Permission.LIST,)
_row = partial(Row, permissions=_LIST, may_be_aborted=True)

ROWS = (
    _row("LIST", long_list, "LIST [<path>]", Argument.OPTIONAL),
    _row("NLST", name_list, "NLST [<path>]", Argument.OPTIONAL),
    _row("MLSD", machine_list, "MLSD [<path>]", Argument.OPTIONAL),
    Row(
        "MLST",
        machine_status,
        "MLST [<path>]",
        Argument.OPTIONAL,
        feature=mlst_feature(),
        permissions=_LIST,
    ),
    Row("STAT", status, "STAT [<path>]", Argument.OPTIONAL),
)
