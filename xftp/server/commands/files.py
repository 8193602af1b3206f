"""Files and directories: CWD, CDUP, PWD, MKD, RMD, DELE, RNFR, RNTO, SIZE, MDTM, MFMT, SITE.

RFC 959 section 4.1.3 and RFC 3659 sections 3 and 4; MFMT from draft-somers-ftp-mfxx.
"""

from __future__ import annotations

import re

from xftp.errors import ArgumentError, FileError, ParameterError
from xftp.protocol.listings import format_time_val, parse_time_val
from xftp.protocol.replies import Reply
from xftp.server.registry import Argument, Row
from xftp.server.session import Session, require


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
    session.check_writable()
    path = session.path(argument)
    await session.in_thread(lambda: session.files.make_directory(path))
    return Reply(257, (f"{_quoted(path)} was made.",))


async def remove_directory(session: Session, argument: str) -> Reply:
    session.check_writable()
    path = session.path(argument)
    await session.in_thread(lambda: session.files.remove_directory(path))
    return Reply(250, (f"{argument} was removed.",))


async def delete(session: Session, argument: str) -> Reply:
    session.check_writable()
    path = session.path(argument)
    await session.in_thread(lambda: session.files.remove(path))
    return Reply(250, (f"{argument} was deleted.",))


async def rename_from(session: Session, argument: str) -> Reply:
    session.check_writable()
    path = session.path(argument)
    await session.in_thread(lambda: session.files.check_entry(path))
    session.rename_from = path
    return Reply(350, ("Give the new name with RNTO.",))


async def rename_to(session: Session, argument: str) -> Reply:
    old, session.rename_from = session.rename_from, None
    require(old is not None, "Give the old name with RNFR first.")
    assert old is not None
    session.check_writable()
    new = session.path(argument)
    await session.in_thread(lambda: session.files.rename(old, new))
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
    session.check_writable()
    path = session.path(name)
    await session.in_thread(lambda: session.files.set_modified(path, time))
    return Reply(213, (f"Modify={format_time_val(time)}; {name}",))


async def site(session: Session, argument: str) -> Reply:
    word, _, rest = argument.partition(" ")
    if word.upper() == "HELP":
        return Reply(214, ("SITE knows: CHMOD <octal mode> <path>, HELP.",))
    if word.upper() != "CHMOD":
        raise ParameterError(f"SITE {word} is not implemented.")
    mode, _, name = rest.partition(" ")
    if not re.fullmatch(r"0?[0-7]{3}", mode) or not name:
        raise ArgumentError("SITE CHMOD takes an octal mode and a path.")
    session.check_writable()
    path = session.path(name)
    await session.in_thread(lambda: session.files.set_mode(path, int(mode, 8)))
    return Reply(200, (f"The mode of {name} is now {mode}.",))


ROWS = (
    Row("CWD", change_directory, "CWD <path>", Argument.REQUIRED),
    Row("CDUP", change_to_parent, "CDUP"),
    Row("PWD", print_directory, "PWD"),
    Row("MKD", make_directory, "MKD <path>", Argument.REQUIRED),
    Row("RMD", remove_directory, "RMD <path>", Argument.REQUIRED),
    Row("XCWD", change_directory, "XCWD <path>", Argument.REQUIRED),
    Row("XCUP", change_to_parent, "XCUP"),
    Row("XPWD", print_directory, "XPWD"),
    Row("XMKD", make_directory, "XMKD <path>", Argument.REQUIRED),
    Row("XRMD", remove_directory, "XRMD <path>", Argument.REQUIRED),
    Row("DELE", delete, "DELE <path>", Argument.REQUIRED),
    Row("RNFR", rename_from, "RNFR <path>", Argument.REQUIRED),
    Row("RNTO", rename_to, "RNTO <path>", Argument.REQUIRED),
    Row("SIZE", size, "SIZE <path>", Argument.REQUIRED, feature="SIZE", keeps_restart=True),
    Row("MDTM", modified, "MDTM <path>", Argument.REQUIRED, feature="MDTM", keeps_restart=True),
    Row("MFMT", set_modified, "MFMT <time> <path>", Argument.REQUIRED, feature="MFMT"),
    Row("SITE", site, "SITE CHMOD <mode> <path> | HELP", Argument.REQUIRED),
)
