"""Store one local file on the server."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xftp.errors import ArgumentError, FileError, ReplyError, file_error
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.listings import format_time_val
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.transport.files import SourceFile
from xftp.transport.plain import PlainSender
from xftp.transport.report import TransferReport
from xftp.transport.sender import RecordSender

from .data import Opened, open_channel
from .dialogue import Dialogue, is_unsupported, reply_error
from .existing import ExistsError
from .facts import parse_modified, parse_size
from .flights import Pace
from .mending import store_range
from .moving import move
from .options import Existing
from .progress import Progress
from .restarting import restart, restart_commands
from .streams import Produce, descriptor_producer, open_special, rate_limit, upload_stream
from .text import printable
from .verify import DiffersError, Verification

_NO_SPACE = frozenset({452, 552})
"""Replies to ALLO that say that the file will not fit (RFC 959 section 4.2)."""


_NO_SUCH_FILE = 550
"""Reply to MDTM of a path that names nothing (RFC 3659 section 3.1)."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What is to be stored, and how."""

    local: str | os.PathLike[str]
    """The file; a pipe or a device is read as a stream."""

    remote: str
    """The path on the server."""

    existing: Existing = "fail"
    """What to do with a target that exists."""

    progress: Progress | None = None
    """Told of what moves."""

    preserve_times: bool = True
    """Whether the remote file gets the local modification time, where the server can."""


def remote_path(local: str | os.PathLike[str], remote: str | None) -> str:
    """Complete a remote path that names a directory by the base name of `local`."""
    if remote and not remote.endswith("/"):
        return remote
    return (remote or "") + Path(local).name


class Uploading:
    """An upload, which may take several attempts; the later ones go on from the earlier."""

    def __init__(self, order: Upload) -> None:
        self._order = order
        self._was_absent = False
        self._is_unproven = False
        """Whether an earlier attempt may have left all of it, and nobody has compared it."""

    async def attempt(self, dialogue: Dialogue) -> TransferReport | None:
        """Store the file; None if it was skipped, or if there was nothing left to do."""
        path = Path(self._order.local)
        try:
            status = await asyncio.to_thread(path.stat)
        except OSError as error:
            raise file_error(error, str(path)) from error
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{path}: is a directory")
        if not stat.S_ISREG(status.st_mode):
            return await self._attempt_special(dialogue, path)
        source = SourceFile.open(str(path))
        try:
            if dialogue.type_code == "A":
                text = descriptor_producer(source.fileno(), source.name)
                return await self.attempt_from(dialogue, text)
            return await self._attempt_file(dialogue, source)
        finally:
            source.close()

    async def attempt_from(self, dialogue: Dialogue, produce: Produce) -> TransferReport | None:
        """Store what `produce` gives; None if it was skipped."""
        order = self._order
        if order.existing == "resume":
            raise FileError(f"{order.remote}: a stream cannot be resumed")
        if not await self._may_write(dialogue):
            return None
        return await upload_stream(dialogue, produce, order.remote, order.progress)

    async def _attempt_special(self, dialogue: Dialogue, path: Path) -> TransferReport | None:
        descriptor = open_special(path, str(path), for_writing=False)
        try:
            return await self.attempt_from(dialogue, descriptor_producer(descriptor, str(path)))
        finally:
            os.close(descriptor)

    async def _attempt_file(self, dialogue: Dialogue, source: SourceFile) -> TransferReport | None:
        goes_on = self._order.existing == "resume" or self._was_absent
        asks = self._asks_first and dialogue.pace is Pace.ALL and not dialogue.lacks("SIZE")
        if not asks and not await self._may_write(dialogue):
            return None
        there = None
        if goes_on:
            there = await _find_start(dialogue, source, self._order.remote)
            may_be_complete = there is not None and not self._is_unproven
            if may_be_complete and await self._is_complete(dialogue, source, there or 0):
                return None
            # A server of our own kind may hold the whole file under a partial name only: sending
            # nothing behind its end makes it complete, and is compared as everything is.
        return await self._upload(dialogue, source, there or 0, asks=asks)

    async def _upload(
        self,
        dialogue: Dialogue,
        source: SourceFile,
        start: int,
        *,
        asks: bool,
        is_second: bool = False,
    ) -> TransferReport | None:
        """Send the file from `start` on; None if it was skipped.

        asks: SIZE tells in the same flight whether the target exists; is_second: what arrived the
        first time was not the same.
        """
        order = self._order
        store = Command("STOR", order.remote)
        leading = [*dialogue.type_commands(), Command("ALLO", str(source.size))]
        question = [Command("SIZE", order.remote)] if asks else []
        rest = restart_commands(dialogue, start)
        waits = asks or (start and not rest)
        opened = await open_channel(
            dialogue,
            direction="upload",
            leading=[*leading, *question, *rest],
            transfer=None if waits else store,
        )
        try:
            _check_leading(leading, opened.replies, source.size)
            is_there = asks and parse_size(opened.replies[len(leading)]) is not None
            if asks and not await self._may_replace(dialogue, is_there=is_there):
                return None
            if opened.framed:
                record_count(source.size - start)  # refuse it before anything moves
            start = await restart(dialogue, start, opened.replies[-1] if rest else None)
            report = await self._send(dialogue, opened, source, start)
        except DiffersError:
            if is_second:
                raise
            report = None
        finally:
            await opened.release()
        if report is None:
            dialogue.notice(f"{source.name}: differs from what the server has, sending it again")
            return await self._upload(dialogue, source, 0, asks=False, is_second=True)
        if order.preserve_times:
            await _set_time(dialogue, order.remote, source.modified)
        return report

    async def _send(
        self, dialogue: Dialogue, opened: Opened, source: SourceFile, start: int
    ) -> TransferReport:
        """Send, and see that the server has the same then. Raises VerifyError, and as `move`."""
        order = self._order
        verification: Verification | None = None

        def build(_: Reply) -> RecordSender | PlainSender:
            nonlocal verification
            if order.progress is not None:
                order.progress.started(source.size, start)
            limit = rate_limit(dialogue)
            moved = order.progress.moved if order.progress else None
            sender: RecordSender | PlainSender
            if opened.framed:
                sender = RecordSender(
                    opened.channel, source, start, limit=limit, progress=moved, feeds=opened.feeds
                )
            else:
                sender = PlainSender(opened.channel, source, start, limit=limit, progress=moved)
            verification = Verification.begin(
                dialogue,
                order.remote,
                source.fileno(),
                source.name,
                lambda: start + sender.file_bytes,
                moves_parts=dialogue.announces_connections,  # RANG with STOR is our own
                left=f"the wrong file is still on the server as {printable(order.remote)}",
            )
            self._is_unproven = verification is not None
            return sender

        def ask_early() -> None:
            if verification is not None:
                verification.ask_early(source.size)

        async def mend(part: ByteRange) -> None:
            await store_range(dialogue, order.remote, source, part)

        store = Command("STOR", order.remote)
        begun = opened.take_transfer()
        try:
            sender = await move(dialogue, store, opened.channel, build, begun, ask_early)
            if verification is not None:
                await verification.settle(source.size, mend)
                self._is_unproven = False
        finally:
            if verification is not None:
                await verification.stop()
        return sender.report(start)

    async def _is_complete(self, dialogue: Dialogue, source: SourceFile, there: int) -> bool:
        """Tell whether the remote file is the whole one already.

        A server of our own kind gives a cut upload no time, and never the target's name: a file
        that has a time and is not this one must not be mixed with it. Raises FileError then.
        """
        if not dialogue.announces_connections:
            return there == source.size
        modified = parse_modified(await dialogue.ask("MDTM", self._order.remote))
        if modified is None:
            return False
        same_time = not self._order.preserve_times or int(modified) == int(source.modified)
        if there == source.size and (same_time or self._was_absent):
            return True
        raise FileError(
            f"{printable(self._order.remote)}: is complete on the server and another version,"
            " it can only be overwritten"
        )

    @property
    def _asks_first(self) -> bool:
        """Whether it matters if the target exists; once it was absent, what is there is ours."""
        return self._order.existing in ("fail", "skip") and not self._was_absent

    async def _may_write(self, dialogue: Dialogue) -> bool:
        """Look whether the target exists, if that matters; False if it is to be left.

        Raises ExistsError.
        """
        if not self._asks_first:
            return True
        is_there = await _exists(dialogue, self._order.remote)
        return await self._may_replace(dialogue, is_there=is_there)

    async def _may_replace(self, dialogue: Dialogue, *, is_there: bool) -> bool:
        """Decide by whether the server told a size of the target. Raises ExistsError.

        What our own kind tells may be that of a cut upload, which has no time: that is no target.
        """
        if is_there and dialogue.announces_connections:
            is_there = (await dialogue.ask("MDTM", self._order.remote)).code != _NO_SUCH_FILE
        if not is_there:
            self._was_absent = True
            return True
        if self._order.existing == "skip":
            return False
        raise ExistsError(f"{printable(self._order.remote)}: exists on the server")


def _check_leading(leading: list[Command], replies: Sequence[Reply], size: int) -> None:
    for command, reply in zip(leading, replies, strict=False):
        if command.verb == "TYPE" and not reply.is_positive:
            raise reply_error(reply, "TYPE")
        if command.verb == "ALLO" and reply.code in _NO_SPACE:
            raise reply_error(reply, f"ALLO {size}")


# -- what is there ------------------------------------------------------------------------------


async def _exists(dialogue: Dialogue, remote: str) -> bool:
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


async def _find_start(dialogue: Dialogue, source: SourceFile, remote: str) -> int | None:
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


async def _set_time(dialogue: Dialogue, remote: str, modified: float) -> None:
    """Give the remote file its time, where the server can (draft-somers-ftp-mfxx section 3)."""
    if dialogue.features is None or dialogue.lacks("MFMT"):
        return
    try:
        await dialogue.demand("MFMT", f"{format_time_val(modified)} {remote}")
    except (ReplyError, ArgumentError) as error:
        dialogue.trace(f"the time was not set: {error}")
