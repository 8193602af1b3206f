"""Hashes of files: HASH, HASB, RANG, and XCRC, XMD5, XSHA… for clients of before HASH.

draft-bryan-ftpext-hash-02, draft-bryan-ftp-range-08. The bytes are those of the file as it is
stored, whatever the TYPE.
"""

from __future__ import annotations

from xftp.errors import ParameterError
from xftp.protocol.hashes import (
    X_COMMANDS,
    ByteRange,
    format_hash_feature,
    format_hash_reply,
    parse_rang,
    parse_x_argument,
)
from xftp.protocol.replies import Reply
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Handler, Row
from xftp.server.session import HASH_DEFAULT, Session
from xftp.transport.files import SourceFile
from xftp.transport.hashing import algorithms


async def hash_file(session: Session, argument: str) -> Reply:
    wanted = session.byte_range
    hashed, digest = await _digest(session, argument, session.hash_algorithm, wanted)
    return Reply(213, (format_hash_reply(session.hash_algorithm, hashed, digest, argument),))


async def _digest(
    session: Session, path: str, algorithm: str, wanted: ByteRange | None
) -> tuple[ByteRange, str]:
    session.begin_silently()
    whole = session.path(path)
    source = await session.in_thread(
        lambda: session.files.open_source(whole), undo=SourceFile.close
    )
    try:
        return await session.hashes.digest(source, algorithm, wanted)
    finally:
        source.close()


def _x_command(algorithm: str) -> Handler:
    async def hash_of_old(session: Session, argument: str) -> Reply:
        path, start, end = parse_x_argument(argument)
        wanted = None
        if (start, end) != (0, None):
            wanted = ByteRange(start, _LARGEST if end is None else end)
        _, digest = await _digest(session, path, algorithm, wanted)
        return Reply(250, (digest.upper(),))

    return hash_of_old


_LARGEST = 2**63 - 1


async def set_range(session: Session, argument: str) -> Reply:
    session.byte_range = parse_rang(argument)
    session.restart_offset = 0
    session.forget_part_ranges()
    if session.byte_range is None:
        return Reply(350, ("The whole file.",))
    first, last = session.byte_range.start, session.byte_range.end - 1
    return Reply(350, (f"Restarting at {first}. Ending at {last}.",))


def choose_hash(session: Session, wanted: str) -> Reply:
    """Answer OPTS HASH: choose, or only tell what is chosen. Raises ParameterError."""
    if wanted:
        if wanted.upper() not in algorithms():
            raise ParameterError(f"There is no {wanted}, it stays at {session.hash_algorithm}")
        session.hash_algorithm = wanted.upper()
    return Reply(200, (session.hash_algorithm,))


ROWS = (
    Row(
        "HASH",
        hash_file,
        "HASH <path>",
        Argument.REQUIRED,
        feature=format_hash_feature(algorithms(), HASH_DEFAULT),
        may_be_aborted=True,
        permissions=(Permission.READ,),
    ),
    Row(
        "HASB",
        hash_file,
        "HASB <path>",
        Argument.REQUIRED,
        feature="HASB",
        may_be_aborted=True,
        permissions=(Permission.READ,),
    ),
    Row(
        "RANG",
        set_range,
        "RANG <first byte> <last byte>",
        Argument.REQUIRED,
        feature="RANG STREAM",
        keeps_restart=True,
    ),
    *(
        Row(
            verb,
            _x_command(algorithm),
            f'{verb} <path> | "<path>" [<first byte> [<end>]]',
            Argument.REQUIRED,
            feature=verb,
            may_be_aborted=True,
            permissions=(Permission.READ,),
        )
        for verb, algorithm in X_COMMANDS.items()
    ),
)
