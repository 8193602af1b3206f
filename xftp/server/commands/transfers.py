"""Files on the move: RETR, STOR, APPE, STOU, ABOR (RFC 959 4.1.3), plain or as records (B.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from xftp.errors import (
    DataConnectionError,
    FileError,
    ParameterError,
    RecordError,
    RestartError,
    TransferAborted,
)
from xftp.protocol.ascii import FromNetwork, ToNetwork
from xftp.protocol.hashes import ByteRange
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.server.slowness import quick_enough
from xftp.transport.channels import DataChannel
from xftp.transport.files import PartialFile, SourceFile
from xftp.transport.plain import PlainReceiver, PlainSender, StreamSender
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender
from xftp.transport.transfer import Transfer

from .reports import note_transfer

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
    if session.data.framed:
        record_count(source.size - offset)
        feeds = session.mult_options.feeds
        return RecordSender(channel, source, offset, limit=session.rate_limit, feeds=feeds)
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
        return await _replace_range(session, argument, session.byte_range)
    return await _receive(session, argument, extend=False)


async def append(session: Session, argument: str) -> Reply:
    _check_no_range(session)
    return await _receive(session, argument, extend=True)


async def store_unique(session: Session, argument: str) -> Reply:
    _check_no_range(session)
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
        target = await session.in_thread(
            lambda: session.files.open_target(path, offset, extend=extend), undo=_let_go
        )
        upload = _Upload(session, channel, target, announced, extend=extend)
        transfer = await upload.run(opening or f"Receiving {argument}.")
    finally:
        channel.close()
    return _done(session, "received", transfer)


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
        target.keep([(0, target.offset)] if target.offset else [], None)


def _check_announced(announced: int, offset: int) -> None:
    """Refuse, before anything moves, what records cannot carry."""
    if announced < offset:
        raise RestartError(f"Cannot restart at {offset}: ALLO announced {announced} bytes")
    record_count(announced - offset)


class _Upload:
    """One upload into a partial file, which becomes the target or is kept for a restart."""

    def __init__(
        self,
        session: Session,
        channel: DataChannel,
        target: PartialFile,
        announced: int | None,
        *,
        extend: bool,
    ) -> None:
        self._session = session
        self._target = target
        self._extend = extend
        self._end = target.offset
        self._converter = FromNetwork() if session.is_ascii else None
        self._left = self._to_come(announced)
        self._transfer: RecordReceiver | PlainReceiver
        if session.data.framed:
            self._transfer = RecordReceiver(channel, target, self._left, limit=session.rate_limit)
        else:
            self._transfer = PlainReceiver(
                channel,
                self._consume,
                self._left,
                patience=target.patience,
                limit=session.rate_limit,
            )

    def _to_come(self, announced: int | None) -> int | None:
        """Give the bytes on their way: ALLO tells the whole file, or with APPE what is added."""
        if announced is None or self._session.is_ascii:
            return None  # line ends change the count
        if self._extend:
            return announced
        left = announced - self._target.offset
        return left if left >= 0 else None  # it told something else than the size of the file

    async def run(self, opening: str) -> Transfer:
        """Receive. What arrived is in the target afterwards, or kept, never both."""
        try:
            self._session.begin(opening)
            await run_transfer(self._session, self._transfer)
            if not self._size_is_proof() and not await self._session.control.is_alive():
                raise TransferAborted("The client is gone, so the end of the data proves nothing.")
            await self._session.in_thread(self._append_rest)
        except BaseException:
            await self._keep_safely()
            raise
        size = self._end
        if isinstance(self._transfer, RecordReceiver):
            size = self._target.offset + (self._transfer.size or 0)
        sync = self._session.settings.sync_uploads
        self._session.running.forbid_abort()
        await self._session.in_thread(lambda: self._target.commit(size, sync=sync))
        return self._transfer

    def _size_is_proof(self) -> bool:
        """Tell whether exactly the announced bytes came."""
        return self._left is not None and self._transfer.file_bytes == self._left

    def _consume(self, data: memoryview, offset: int) -> None:
        self._append(data if self._converter is None else self._converter.convert(bytes(data)))

    def _append(self, data: memoryview | bytes) -> None:
        self._end += self._target.write([memoryview(data)], self._end)

    def _append_rest(self) -> None:
        if self._converter is not None:
            self._append(self._converter.finish())

    async def _keep_safely(self) -> None:
        """Keep what arrived; if that fails too, the first failure is the one to report."""
        try:
            await self._session.in_thread(self._keep)
        except FileError as error:
            logger.warning("the rest of a cut upload could not be kept: %s", error)

    def _keep(self) -> None:
        """Keep what arrived. A failed APPE keeps nothing: the file stays as long as it was."""
        if self._extend and self._target.replaces_file:
            self._target.discard()
        elif isinstance(self._transfer, RecordReceiver):
            size = None if self._left is None else self._target.offset + self._left
            self._target.keep(self._transfer.held_bytes(), size)
        else:
            self._target.keep([(0, self._end)] if self._end else [], None)


def _begin(session: Session) -> tuple[DataChannel, int]:
    """Take the data connections and the offset for a transfer, and see that they go together."""
    wanted = session.byte_range
    offset = session.restart_offset if wanted is None else wanted.start
    session.last_transfer = None
    channel = session.data.take(session.tuning, replaces=session.replaces)
    if session.is_ascii and session.data.framed:
        channel.close()
        raise ParameterError("Records are for TYPE I only.")
    if session.is_ascii and (offset or wanted is not None):
        channel.close()
        raise RestartError("Restart needs TYPE I.")
    return channel, offset


async def run_transfer(session: Session, transfer: Transfer) -> None:
    """Move the data, as patiently as the settings say. Raises XftpError."""
    transfer.open_timeout_s = session.settings.open_timeout_s
    transfer.stall_timeout_s = session.settings.stall_timeout_s
    if session.running.watched is not None:
        session.running.watched.transfer = transfer
    try:
        async with quick_enough(
            transfer.arrived_bytes, transfer.stall_timeout_s, session.rate_limit
        ):
            await transfer.run()
    except OSError as error:  # anything else was translated where it happened
        raise DataConnectionError(str(error)) from error


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
