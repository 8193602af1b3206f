"""Files on the move: RETR, STOR, APPE, STOU, ABOR (RFC 959 4.1.3), plain or as records (B.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from xftp.errors import (
    FileError,
    ParameterError,
    RecordError,
    RestartError,
)
from xftp.protocol.ascii import ToNetwork
from xftp.protocol.hashes import ByteRange
from xftp.protocol.parts import PartFacts
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.transport.channels import DataChannel
from xftp.transport.files import SourceFile
from xftp.transport.partial import PartialFile
from xftp.transport.plain import PlainReceiver, PlainSender, StreamSender
from xftp.transport.sender import RecordSender
from xftp.transport.transfer import Transfer

from .moving import run_transfer
from .parts import check_kept, check_no_part, part_to_send, reopened
from .reports import note_transfer
from .uploads import Upload

logger = logging.getLogger(__name__)

_ASCII_BLOCK_BYTES = 256 * 1024
_UNIQUE_TRIES = 10_000


async def retrieve(session: Session, argument: str) -> Reply:
    channel, offset = _begin(session)
    path = session.path(argument)
    try:
        source = await session.in_thread(
            lambda: session.files.open_source(path), undo=SourceFile.close
        )
        try:
            _narrow(source, session.byte_range)
            if offset > source.size:
                raise RestartError(
                    f"Cannot restart at {offset}: {argument} has {source.size} bytes"
                )
            transfer = _sender(session, channel, source, offset)
            to_come = source.size - offset if session.byte_range is not None else source.size
            if isinstance(transfer, RecordSender) and session.part is not None:
                to_come = transfer.to_send
            size = "" if session.is_ascii else f" ({to_come} bytes)"
            session.begin(f"Sending {argument}{size}.")
            await run_transfer(session, transfer)
        finally:
            source.close()
    finally:
        channel.close()
    return _done(session, "sent", transfer)


def _narrow(source: SourceFile, wanted: ByteRange | None) -> None:
    """Let a file end where the range ends that RANG asked for. Raises RestartError."""
    if wanted is None:
        return
    if wanted.start >= source.size:
        raise RestartError(
            f"The range begins at {wanted.start}, {source.name} has {source.size} bytes"
        )
    source.size = min(source.size, wanted.end)


def _sender(session: Session, channel: DataChannel, source: SourceFile, offset: int) -> Transfer:
    only = part_to_send(session.part, source) if session.part is not None else None
    if session.data.framed:
        record_count(source.size - offset)
        feeds, limit = session.mult_options.feeds, session.rate_limit
        return RecordSender(channel, source, offset, limit=limit, feeds=feeds, only=only)
    if only is not None:
        raise ParameterError("PART with ranges needs MPSV or MPRT.")
    if session.is_ascii:
        return StreamSender(channel, _ascii_reader(source), limit=session.rate_limit)
    return PlainSender(channel, source, offset, limit=session.rate_limit)


def _ascii_reader(source: SourceFile) -> Callable[[], bytes]:
    """Give a function that reads the file on and on, with network line ends."""
    converter = ToNetwork()
    at = 0

    def produce() -> bytes:
        nonlocal at
        converted = b""
        while not converted and at < source.size:
            block = memoryview(bytearray(min(_ASCII_BLOCK_BYTES, source.size - at)))
            source.read([block], at, len(block))
            at += len(block)
            converted = converter.convert(bytes(block))
        return converted or converter.finish()

    return produce


async def store(session: Session, argument: str) -> Reply:
    if session.byte_range is not None:
        check_no_part(session)
        return await _replace_range(session, argument, session.byte_range)
    return await _receive(session, argument, extend=False)


async def append(session: Session, argument: str) -> Reply:
    _check_no_range(session)
    check_no_part(session)
    return await _receive(session, argument, extend=True)


async def store_unique(session: Session, argument: str) -> Reply:
    _check_no_range(session)
    check_no_part(session)
    wanted = argument or "upload"

    def choose() -> str:
        for number in range(_UNIQUE_TRIES):
            name = f"{wanted}.{number}" if number else wanted
            if not session.files.exists(session.path(name)):
                return name
        raise FileError(f"{wanted}: no unique name is left")

    name = await session.in_thread(choose)
    if session.running.watched is not None:
        session.running.watched.path = session.path(name)
    # RFC 1123 section 4.1.2.9: the name is told in this form.
    return await _receive(session, name, extend=False, opening=f"FILE: {name}")


async def _receive(
    session: Session, argument: str, *, extend: bool, opening: str | None = None
) -> Reply:
    channel, offset = _begin(session)
    path = session.path(argument)
    announced = session.announced_size
    try:
        if announced is not None and session.data.framed:
            _check_announced(announced, 0 if extend else offset)
        if session.part is not None:
            announced = _check_part(session, session.part, announced)
        target = await session.in_thread(
            lambda: _open_target(session, path, offset, extend=extend), undo=_let_go
        )
        upload = Upload(session, channel, target, announced, extend=extend)
        transfer = await upload.run(opening or f"Receiving {argument}.")
    finally:
        channel.close()
    return _done(session, "received", transfer)


def _check_part(session: Session, part: PartFacts, announced: int | None) -> int | None:
    """See that PART goes with what else is known; give the announced size. Raises XftpError."""
    if part.ranges is not None and not session.data.framed:
        raise ParameterError("PART with ranges needs MPSV or MPRT.")
    if session.is_ascii and (part.ranges is not None or session.restart_offset):
        raise RestartError("Restart needs TYPE I.")
    if announced is not None and part.size is not None and announced != part.size:
        raise RestartError(f"ALLO announced {announced} bytes, PART {part.size}")
    return part.size if announced is None else announced


def _open_target(session: Session, path: str, offset: int, *, extend: bool) -> PartialFile:
    """Open the file that an upload goes into. Blocks. Raises FileError."""
    part = session.part
    announced = None if session.is_ascii else session.announced_size
    session.files.check_room(path, announced, extend=extend)
    if part is not None and part.ranges is not None:
        return reopened(session, path, part)
    if part is not None and offset:
        check_kept(session, path, part)
    target = session.files.open_target(
        path, offset, extend=extend, prefer_kept=part is not None and offset > 0
    )
    if part is not None and part.modified is not None and not session.is_ascii:
        target.note_source(part.modified, part.size)
    return target


def _check_no_range(session: Session) -> None:
    if session.byte_range is not None:
        session.data.drop()
        raise ParameterError("RANG goes with RETR, STOR and HASH.")


async def _replace_range(session: Session, argument: str, wanted: ByteRange) -> Reply:
    """Receive new bytes for a range inside a file, which stays as it was until all are there."""
    channel, _ = _begin(session)
    path = session.path(argument)
    try:
        if session.data.framed:
            raise ParameterError("A range is stored over one plain connection.")
        size = await session.in_thread(lambda: session.files.transfer_size(path))
        if wanted.end > size:
            raise RestartError(f"The range ends at {wanted.end}, {argument} has {size} bytes")
        target = await session.in_thread(
            lambda: session.files.open_target(path, size), undo=_let_go
        )
        try:
            transfer = await _receive_range(session, channel, target, wanted)
        except BaseException:
            await session.in_thread(lambda: _let_go(target))
            raise
        sync = session.settings.sync_uploads
        session.running.forbid_abort()
        await session.in_thread(lambda: target.commit(size, sync=sync))
    finally:
        channel.close()
    return _done(session, "received", transfer)


async def _receive_range(
    session: Session, channel: DataChannel, target: PartialFile, wanted: ByteRange
) -> Transfer:
    def consume(data: memoryview, offset: int) -> None:
        if offset + len(data) > wanted.size:
            raise RecordError(f"more than the {wanted.size} bytes of the range came")
        target.write([data], wanted.start + offset)

    transfer = PlainReceiver(
        channel, consume, wanted.size, patience=target.patience, limit=session.rate_limit
    )
    session.begin(f"Receiving {wanted.size} bytes from {wanted.start} on.")
    await run_transfer(session, transfer)
    return transfer


def _let_go(target: PartialFile) -> None:
    """Close a target that nothing was written to."""
    if target.replaces_file:
        target.discard()
    else:
        target.keep(target.held, None)


def _check_announced(announced: int, offset: int) -> None:
    """Refuse, before anything moves, what records cannot carry."""
    if announced < offset:
        raise RestartError(f"Cannot restart at {offset}: ALLO announced {announced} bytes")
    record_count(announced - offset)


def _begin(session: Session) -> tuple[DataChannel, int]:
    """Take the data connections and the offset for a transfer, and see that they go together."""
    wanted = session.byte_range
    offset = session.restart_offset if wanted is None else wanted.start
    session.last_transfer = None
    channel = session.take_data()
    if session.is_ascii and session.data.framed:
        channel.close()
        raise ParameterError("Records are for TYPE I only.")
    if session.is_ascii and (offset or wanted is not None):
        channel.close()
        raise RestartError("Restart needs TYPE I.")
    return channel, offset


def _done(session: Session, what: str, transfer: Transfer) -> Reply:
    session.transfers += 1
    report = transfer.report()
    note_transfer(session, what, report)
    peer = session.control.peer_host
    for each in report.connections:
        had = " ".join(f"{name}={value}" for name, value in each.socket.items())
        logger.debug("%s: connection %d: %d bytes %s", peer, each.number, each.bytes, had)
    return Reply(226, (f"Transfer complete: {report.bytes} bytes.",))


async def abort(session: Session, argument: str) -> Reply:
    """Answer an ABOR that found nothing running; one that did is dealt with by the session."""
    session.data.drop()
    return Reply(225, ("Nothing to abort.",))


_row = partial(Row, may_be_aborted=True)

ROWS = (
    _row("RETR", retrieve, "RETR <path>", Argument.REQUIRED, permissions=(Permission.READ,)),
    _row("STOR", store, "STOR <path>", Argument.REQUIRED, permissions=(Permission.WRITE,)),
    _row("APPE", append, "APPE <path>", Argument.REQUIRED, permissions=(Permission.APPEND,)),
    _row("STOU", store_unique, "STOU [<path>]", Argument.OPTIONAL, permissions=(Permission.WRITE,)),
    Row("ABOR", abort, "ABOR", needs_login=False),
)
