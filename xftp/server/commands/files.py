"""Files and directories: CWD, CDUP, PWD, MKD, RMD, DELE, RNFR, RNTO, SIZE, MDTM, MFMT, SITE.

RFC 959 section 4.1.3 and RFC 3659 sections 3 and 4; MFMT from draft-somers-ftp-mfxx.
"""

from __future__ import annotations

import re
from functools import partial

from xftp.errors import ArgumentError, FileError, ParameterError
from xftp.protocol.listings import SITE_LISTING, format_time_val, parse_time_val
from xftp.protocol.replies import Reply
from xftp.protocol.reports import FEATURE
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import Session, require

from .listings import site_list
from .reports import site_report


def _quoted(path: str) -> str:
    """Quote a path as RFC 959 appendix II does: a quote is doubled."""
    return '"' + path.replace('"', '""') + '"'


async def change_directory(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    await session.in_thread(lambda: session.files.check_directory(path))
    session.current = path
    return Reply(250, (f"The directory is now {path}.",))


async def change_to_parent(session: Session, argument: str) -> Reply:
    reply = await change_directory(session, "..")
    return Reply(200, reply.lines)


async def print_directory(session: Session, argument: str) -> Reply:
    return Reply(257, (f"{_quoted(session.current)} is the current directory.",))


async def make_directory(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    await session.in_thread(lambda: session.files.make_directory(path))
    return Reply(257, (f"{_quoted(path)} was made.",))


async def remove_directory(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    await session.in_thread(lambda: session.files.remove_directory(path))
    return Reply(250, (f"{argument} was removed.",))


async def delete(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    await session.in_thread(lambda: session.files.remove(path))
    return Reply(250, (f"{argument} was deleted.",))


async def rename_from(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    await session.in_thread(lambda: session.files.check_entry(path))
    session.rename_from = path
    return Reply(350, ("Give the new name with RNTO.",))


async def rename_to(session: Session, argument: str) -> Reply:
    old, session.rename_from = session.rename_from, None
    require(old is not None, "Give the old name with RNFR first.")
    assert old is not None
    new = session.path(argument)
    may_replace = session.may(Permission.DELETE)
    await session.in_thread(lambda: session.files.rename(old, new, may_replace=may_replace))
    return Reply(250, (f"{old} is now {new}.",))


async def size(session: Session, argument: str) -> Reply:
    if session.is_ascii:
        # The size after conversion would need the whole file to be read (RFC 3659 section 4).
        raise FileError("SIZE needs TYPE I.")
    path = session.path(argument)
    return Reply(213, (str(await session.in_thread(lambda: session.files.transfer_size(path))),))


async def modified(session: Session, argument: str) -> Reply:
    path = session.path(argument)
    status = await session.in_thread(lambda: session.files.status(path))
    return Reply(213, (format_time_val(status.st_mtime),))


async def set_modified(session: Session, argument: str) -> Reply:
    text, _, name = argument.partition(" ")
    if not name:
        raise ArgumentError("MFMT takes a time and a path.")
    time = parse_time_val(text)
    path = session.path(name)
    await session.in_thread(lambda: session.files.set_modified(path, time))
    return Reply(213, (f"Modify={format_time_val(time)}; {name}",))


async def site(session: Session, argument: str) -> Reply:
    word, _, rest = argument.partition(" ")
    if word.upper() == "HELP":
        return Reply(214, ("SITE knows: CHMOD <octal mode> <path>, MLSD <path>, REPORT, HELP.",))
    if word.upper() == "REPORT":
        return site_report(session)
    if word.upper() == SITE_LISTING[1]:
        return await site_list(session, rest)
    if word.upper() != "CHMOD":
        raise ParameterError(f"SITE {word} is not implemented.")
    if not session.may(Permission.WRITE):
        raise FileError("Permission denied: this account has no right to SITE CHMOD")
    mode, _, name = rest.partition(" ")
    if not re.fullmatch(r"0?[0-7]{3}", mode) or not name:
        raise ArgumentError("SITE CHMOD takes an octal mode and a path.")
    path = session.path(name)
    await session.in_thread(lambda: session.files.set_mode(path, int(mode, 8)))
    return Reply(200, (f"The mode of {name} is now {mode}.",))


_MKDIR = (Permission.MKDIR,)
_DELETE = (Permission.DELETE,)
_RENAME = (Permission.RENAME,)
_CHANGE = (Permission.WRITE, Permission.APPEND)

# Whoever stores needs the size of what is there as well as who fetches: to go on behind it.
_fact = partial(
    Row,
    keeps_restart=True,
    permissions=(Permission.LIST, Permission.READ, Permission.WRITE, Permission.APPEND),
)

ROWS = (
    Row("CWD", change_directory, "CWD <path>", Argument.REQUIRED),
    Row("CDUP", change_to_parent, "CDUP"),
    Row("PWD", print_directory, "PWD"),
    Row("MKD", make_directory, "MKD <path>", Argument.REQUIRED, permissions=_MKDIR),
    Row("RMD", remove_directory, "RMD <path>", Argument.REQUIRED, permissions=_DELETE),
    Row("XCWD", change_directory, "XCWD <path>", Argument.REQUIRED),
    Row("XCUP", change_to_parent, "XCUP"),
    Row("XPWD", print_directory, "XPWD"),
    Row("XMKD", make_directory, "XMKD <path>", Argument.REQUIRED, permissions=_MKDIR),
    Row("XRMD", remove_directory, "XRMD <path>", Argument.REQUIRED, permissions=_DELETE),
    Row("DELE", delete, "DELE <path>", Argument.REQUIRED, permissions=_DELETE),
    Row("RNFR", rename_from, "RNFR <path>", Argument.REQUIRED, permissions=_RENAME),
    Row("RNTO", rename_to, "RNTO <path>", Argument.REQUIRED, permissions=_RENAME),
    _fact("SIZE", size, "SIZE <path>", Argument.REQUIRED, feature="SIZE"),
    _fact("MDTM", modified, "MDTM <path>", Argument.REQUIRED, feature="MDTM"),
    Row(
        "MFMT",
        set_modified,
        "MFMT <time> <path>",
        Argument.REQUIRED,
        feature="MFMT",
        permissions=_CHANGE,
    ),
    Row(
        "SITE",
        site,
        "SITE CHMOD <mode> <path> | MLSD <path> | REPORT | HELP",
        Argument.REQUIRED,
        feature=f"{' '.join(FEATURE)};{SITE_LISTING[1]}",
    ),
)
