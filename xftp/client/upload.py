"""Store one local file on the server."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from xftp.errors import FileError, LocalFileError, PeerError, ReplyError, file_error
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.parts import records_of
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.transport.files import SourceFile
from xftp.transport.plain import PlainSender
from xftp.transport.report import TransferReport
from xftp.transport.sender import RecordSender

from .data import open_channel
from .dialogue import Dialogue, reply_error
from .existing import ExistsError
from .facts import parse_modified, parse_size
from .flights import Pace
from .mending import store_range
from .moving import move
from .opened import Opened
from .options import Existing
from .progress import Progress
from .restarting import CANNOT_GO_ON, Start, knows_parts, restart, start_commands
from .streams import Produce, descriptor_producer, open_special, rate_limit, upload_stream
from .text import printable
from .upload_start import (
    ask_held,
    exists,
    find_length,
    is_complete,
    set_time,
    start_of_held,
    version_of,
)
from .verify import DiffersError, Verification

_NO_SPACE = frozenset({452, 552})
"""Replies to ALLO that say that the file will not fit (RFC 959 section 4.2)."""


_NO_SUCH_FILE = 550
"""Reply to MDTM of a path that names nothing (RFC 3659 section 3.1)."""


class Upload(NamedTuple):
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
        self._has_begun = False
        """Whether what the server holds may be from an earlier attempt."""
        self._has_parts = False
        """Whether PART says what is sent."""

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
        asks = self._asks_first and dialogue.pace is Pace.ALL and not dialogue.lacks("SIZE")
        if not asks and not await self._may_write(dialogue):
            return None
        start = Start(file=version_of(source) if knows_parts(dialogue) else None)
        if self._goes_on and not asks:
            found = await self._find_start(dialogue, source, start)
            if found is None:
                return None
            start = found
        try:
            return await self._upload(dialogue, source, start, asks=asks)
        except ReplyError as error:
            if error.code != CANNOT_GO_ON or not self._has_parts:
                raise
            dialogue.notice(f"{source.name}: the server cannot go on with it, starting over")
            return await self._upload(dialogue, source, Start(file=start.file), asks=False)

    async def _find_start(
        self, dialogue: Dialogue, source: SourceFile, anew: Start
    ) -> Start | None:
        """Find where to go on; None: everything is there. Raises FileError.

        anew: where an upload begins that does not go on.
        """
        remote, start = self._order.remote, None
        if anew.file is not None:
            start = await ask_held(dialogue, source, remote)
        if (start is not None and start.goes_on) or not (
            self._order.existing == "resume" or self._was_absent
        ):
            return start or anew
        if start is not None and parse_modified(await dialogue.ask("MDTM", remote)) is None:
            return start  # what is there is another version, cut and without a name
        there = await find_length(dialogue, source, remote)
        may_be_complete = there is not None and not self._is_unproven
        time_counts = self._order.preserve_times and not self._was_absent
        if may_be_complete and await is_complete(
            dialogue, source, remote, there or 0, time_counts=time_counts
        ):
            return None
        # A server of our own kind may hold the whole file under a partial name only: sending
        # nothing behind its end makes it complete, and is compared as everything is.
        return start or (Start(there) if there else anew)

    async def _upload(
        self,
        dialogue: Dialogue,
        source: SourceFile,
        start: Start,
        *,
        asks: bool,
        is_second: bool = False,
    ) -> TransferReport | None:
        """Send the file from `start` on; None if it was skipped.

        asks: the same flight asks whether the target exists, and what the server holds of it;
        is_second: what arrived the first time was not the same.
        """
        order = self._order
        self._has_parts = start.goes_on and start.file is not None
        begins = [] if asks else start_commands(dialogue, start)
        store = Command("STOR", order.remote)
        leading = [*dialogue.type_commands(), Command("ALLO", str(source.size))]
        questions = self._questions(start) if asks else []
        waits = asks or (start.goes_on and not begins)
        opened = await open_channel(
            dialogue,
            direction="upload",
            framed=start.missing is not None,
            leading=[*leading, *questions, *begins],
            transfer=None if waits else store,
        )
        try:
            _check_leading(leading, opened.replies, source.size)
            answers = opened.replies[len(leading) :]
            if asks:
                is_there = parse_size(answers[0]) is not None
                if not await self._may_replace(dialogue, is_there=is_there):
                    return None
                if len(questions) > 1:
                    start = start_of_held(dialogue, source, answers[1]) or start
                if start.missing is not None and not opened.framed:
                    await opened.release()
                    return await self._upload(dialogue, source, start, asks=False)
                begins = start_commands(dialogue, start)
                answers, opened.transfer = await dialogue.flight_with(begins, store)
                self._has_parts = start.goes_on and start.file is not None
            if start.missing is not None and not opened.framed:
                raise PeerError("the server lists PART, but takes no MPSV or MPRT")
            if opened.framed:
                record_count(source.size - start.offset)  # refuse it before anything moves
            start = await restart(dialogue, start, begins, answers)
            report = await self._send(dialogue, opened, source, start)
        except DiffersError:
            if is_second:
                raise
            report = None
        finally:
            await opened.release()
        if report is None:
            dialogue.notice(f"{source.name}: differs from what the server has, sending it again")
            anew = Start(file=start.file)
            return await self._upload(dialogue, source, anew, asks=False, is_second=True)
        if order.preserve_times:
            await set_time(dialogue, order.remote, source.modified)
        return report

    def _questions(self, start: Start) -> list[Command]:
        remote = self._order.remote
        held = [Command("HELD", remote)] if start.file is not None else []
        return [Command("SIZE", remote), *held]

    async def _send(
        self, dialogue: Dialogue, opened: Opened, source: SourceFile, start: Start
    ) -> TransferReport:
        """Send, and see that the server has the same then. Raises VerifyError, and as `move`."""
        order = self._order
        self._has_begun = True
        there = start.held_bytes(source.size)
        verification: Verification | None = None

        def build(_: Reply) -> RecordSender | PlainSender:
            nonlocal verification
            if order.progress is not None:
                order.progress.started(source.size, there)
            limit = rate_limit(dialogue)
            moved = order.progress.moved if order.progress else None
            sender: RecordSender | PlainSender
            if opened.framed:
                sender = RecordSender(
                    opened.channel,
                    source,
                    start.offset,
                    limit=limit,
                    progress=moved,
                    feeds=opened.feeds,
                    only=None if start.missing is None else records_of(start.missing),
                )
            else:
                sender = PlainSender(
                    opened.channel, source, start.offset, limit=limit, progress=moved
                )
            verification = Verification.begin(
                dialogue,
                order.remote,
                source.fileno(),
                source.name,
                lambda: there + sender.file_bytes,
                moves_parts=dialogue.announces_connections,  # RANG with STOR is our own
                may_grow=False,
                version=source.version,
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
            is_compared = False
            if verification is not None:
                is_compared = await verification.settle(source.size, mend)
                self._is_unproven = False
            if source.was_changed():
                self._tell_change(dialogue, source, is_compared=is_compared)
        finally:
            if verification is not None:
                await verification.stop()
        return sender.report(there)

    def _tell_change(self, dialogue: Dialogue, source: SourceFile, *, is_compared: bool) -> None:
        """Say that the file was written while it was sent. Raises LocalFileError if it matters."""
        if not is_compared:
            raise LocalFileError(
                f"{source.name}: was changed while it was sent, and was not compared; maybe a"
                f" wrong file is still on the server as {printable(self._order.remote)}"
            )
        dialogue.notice(
            f"{source.name}: was changed while it was sent; the server has the first"
            f" {source.size} bytes of what it is now"
        )

    @property
    def _asks_first(self) -> bool:
        """Whether it matters if the target exists; once it was absent, what is there is ours."""
        return self._order.existing in ("fail", "skip") and not self._was_absent

    @property
    def _goes_on(self) -> bool:
        """Whether what the server has may be gone on with."""
        wanted = self._order.existing in ("resume", "renew")
        return wanted or self._was_absent or self._has_begun

    async def _may_write(self, dialogue: Dialogue) -> bool:
        """Look whether the target exists, if that matters; False if it is to be left.

        Raises ExistsError.
        """
        if not self._asks_first:
            return True
        is_there = await exists(dialogue, self._order.remote)
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
