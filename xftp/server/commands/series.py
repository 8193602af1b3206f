"""Several files as one: SERI names them, MRTR and MSTR move them (docs/protocol.md, Series)."""

from __future__ import annotations

from functools import partial

from xftp.errors import (
    FileError,
    LocalFileError,
    ParameterError,
    SequenceError,
    StorageError,
    TooLargeError,
    TransferAborted,
    XftpError,
)
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.protocol.series import (
    FEATURE,
    LARGEST_BYTES,
    MOST_FAILURES,
    SeriesFile,
    Way,
    format_facts,
    format_failure,
    parse_argument,
)
from xftp.server.permissions import Permission
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.server.watch import Direction
from xftp.transport.channels import DataChannel
from xftp.transport.files import SourceFile
from xftp.transport.hashing import algorithms, digest_of
from xftp.transport.receiver import RecordReceiver
from xftp.transport.report import TransferReport
from xftp.transport.sender import RecordSender
from xftp.transport.series import SeriesSource, SeriesTarget

from .moving import run_transfer
from .reports import note_transfer

_NEEDED = {"RETR": Permission.READ, "STOR": Permission.WRITE}


async def name_file(session: Session, argument: str) -> Reply:
    way, wanted = parse_argument(argument)
    if not session.may(_NEEDED[way]):
        raise FileError(f"Permission denied: this account has no right to {way}")
    path = session.path(wanted.path)
    session.series.check(way, path)
    if wanted.algorithm is not None and wanted.algorithm not in algorithms():
        raise ParameterError(f"There is no {wanted.algorithm}")
    file = wanted._replace(path=path)
    if way == "RETR":
        file = await _look_at(session, file)
    if (file.size or 0) > LARGEST_BYTES:
        raise TooLargeError(f"{wanted.path}: a file of a series has {LARGEST_BYTES} bytes at most")
    session.series.add(way, file)
    return Reply(250, (format_facts(file),))


async def _look_at(session: Session, file: SeriesFile) -> SeriesFile:
    """Find out size, time and hash of a file. Raises FileError."""
    source, digest = await session.in_thread(
        lambda: _open_hashed(session, file), undo=lambda opened: opened[0].close()
    )
    try:
        if file.algorithm is not None and digest is None and source.size <= LARGEST_BYTES:
            _, digest = await session.hashes.digest(source, file.algorithm, None)
        return SeriesFile(file.path, source.size, source.modified, file.algorithm, digest)
    finally:
        source.close()


def _open_hashed(session: Session, file: SeriesFile) -> tuple[SourceFile, str | None]:
    """Open a file, and hash it on the way if it is small: a thread of its own costs more."""
    source = session.files.open_source(file.path)
    try:
        if file.algorithm is None or source.size > _HASHED_AT_ONCE_BYTES:
            return source, None
        return source, digest_of(source.fileno(), file.path, file.algorithm, 0, source.size)
    except BaseException:
        source.close()
        raise


_HASHED_AT_ONCE_BYTES = 1 << 20


def _begin(session: Session, way: Way) -> tuple[DataChannel, list[SeriesFile]]:
    """Take the data connections and the files. Raises SequenceError, ParameterError."""
    channel = session.take_data()
    try:
        files = session.series.take(way)
        if not session.data.framed:
            raise SequenceError("A series needs MPSV or MPRT.")
        if session.is_ascii:
            raise ParameterError("Records are for TYPE I only.")
        record_count(sum(file.size or 0 for file in files))
    except BaseException:
        channel.close()
        raise
    session.last_transfer = None
    return channel, files


async def retrieve_series(session: Session, argument: str) -> Reply:
    channel, files = _begin(session, "RETR")
    source = SeriesSource(files, lambda file: session.files.open_source(file.path))
    feeds = session.mult_options.feeds
    transfer = RecordSender(channel, source, limit=session.rate_limit, feeds=feeds)
    try:
        session.begin(f"Sending {len(files)} files ({source.size} bytes).")
        await run_transfer(session, transfer)
    except BaseException as error:  # cancelled: by ABOR, or because the client is gone
        failure = error if isinstance(error, XftpError) else TransferAborted("aborted")
        failures = dict.fromkeys(range(len(files)), failure)
        _tell_watch(session, "download", files, failures, in_vain=transfer.file_bytes)
        raise
    finally:
        channel.close()
    _tell_watch(session, "download", files, {}, transfer.report())
    return _done(session, "sent", transfer.report(), {})


async def store_series(session: Session, argument: str) -> Reply:
    channel, files = _begin(session, "STOR")
    target = SeriesTarget(
        files,
        lambda file: session.files.open_target(file.path),
        sync=session.settings.sync_uploads,
    )
    size = target.layout.total
    transfer = RecordReceiver(channel, target, size, limit=session.rate_limit)
    try:
        await session.in_thread(lambda: _check_room(session, files))
        session.begin(f"Receiving {len(files)} files ({size} bytes).")
        await run_transfer(session, transfer)
    finally:
        channel.close()
        await session.in_thread(target.finish)
        report = transfer.report() if not transfer.has_failed else None
        _tell_watch(session, "upload", files, target.failures, report)
    return _done(session, "received", transfer.report(), target.failures)


def _check_room(session: Session, files: list[SeriesFile]) -> None:
    """Raise StorageError if the account may have no other file. Blocks."""
    for file in files:
        try:
            session.files.check_room(file.path)
        except StorageError:
            raise
        except FileError:  # of this one it is told when its turn comes
            continue
        return


def _tell_watch(
    session: Session,
    direction: Direction,
    files: list[SeriesFile],
    failures: dict[int, XftpError],
    report: TransferReport | None = None,
    *,
    in_vain: int = 0,
) -> None:
    """Note each file as the transfer that it would have been by itself.

    in_vain: bytes that moved of those that failed, which are taken to have moved in order.
    """
    for index, file in enumerate(files):
        failure, moved = failures.get(index), file.size or 0
        if failure is not None:
            moved = min(moved, in_vain)
            in_vain -= moved
        each = session.watched(direction, file.path)
        each.transfer = _Moved(moved, report)
        session.shared.watch.begin(each)
        session.shared.watch.end(each, None if failure is None else str(failure))


class _Moved:
    """One file of a series that is over, for those who watch."""

    def __init__(self, file_bytes: int, report: TransferReport | None) -> None:
        self.file_bytes = file_bytes
        self.connection_count = len(report.connections) if report is not None else 0


def _done(
    session: Session, what: str, report: TransferReport, failures: dict[int, XftpError]
) -> Reply:
    session.transfers += 1
    note_transfer(session, what, report)
    if len(failures) > MOST_FAILURES:
        raise LocalFileError(f"{len(failures)} of the files could not be stored, too many to tell")
    told = tuple(format_failure(index, error) for index, error in sorted(failures.items()))
    if not told:
        return Reply(226, (f"Series complete: {report.bytes} bytes.",))
    return Reply(226, (f"Series moved, but for {len(told)} files:", *told, "End."))


_row = partial(Row, may_be_aborted=True)

ROWS = (
    Row(
        "SERI",
        name_file,
        "SERI RETR | STOR <facts> <path>",
        Argument.REQUIRED,
        feature=f"{FEATURE} RETR;STOR",
        keeps_restart=True,
    ),
    _row("MRTR", retrieve_series, "MRTR", permissions=(Permission.READ,)),
    _row("MSTR", store_series, "MSTR", permissions=(Permission.WRITE,)),
)
