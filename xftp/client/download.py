"""Fetch one file into a local file that is whole or not there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xftp.errors import FileError, VerifyError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.records import record_count
from xftp.protocol.replies import Reply
from xftp.transport.files import PartialFile, kept_length, kept_source
from xftp.transport.plain import PlainReceiver
from xftp.transport.receiver import RecordReceiver
from xftp.transport.report import TransferReport

from .data import Opened, open_channel
from .dialogue import Dialogue
from .existing import ExistsError
from .facts import Facts, ask_facts, fact_commands, read_facts
from .flights import Pace
from .mending import fetch_range
from .moving import move
from .options import Existing
from .places import Place, find_place
from .progress import Progress
from .streams import (
    Consume,
    bounded,
    descriptor_consumer,
    download_stream,
    expected_size,
    open_special,
    rate_limit,
    text_consumer,
)
from .verify import DiffersError, Verification

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Download:
    """What is to be fetched, and how."""

    remote: str
    """The path on the server."""

    local: str | os.PathLike[str] | None
    """The file or the directory; None: the working directory."""

    existing: Existing = "fail"
    """What to do with a target that exists."""

    progress: Progress | None = None
    """Told of what moves."""

    preserve_times: bool = True
    """Whether the file gets the remote modification time."""


class Downloading:
    """A download, which may take several attempts; the later ones go on from the earlier."""

    def __init__(self, order: Download) -> None:
        self._order = order
        self._has_begun = False
        self._anew = False

    async def attempt(self, dialogue: Dialogue) -> TransferReport | None:
        """Fetch the file; None if it was skipped, or if there was nothing left to do.

        What arrived of a cut transfer is kept under a partial name.
        """
        order = self._order
        place = await asyncio.to_thread(find_place, order.local, order.remote)
        if place.is_special:
            return await _download_special(dialogue, order, place)
        if place.size is not None:
            if order.existing == "skip":
                return None
            if order.existing == "fail":
                raise ExistsError(f"{place.shown}: exists")
        try:
            return await self._attempt_into(dialogue, place)
        except DiffersError as error:
            dialogue.notice(f"{place.shown}: differs from the original, fetching it again")
            self._has_begun, self._anew = False, True
            try:
                return await self._attempt_into(dialogue, place)
            except DiffersError:
                raise error from None

    async def _attempt_into(self, dialogue: Dialogue, place: Place) -> TransferReport | None:
        with place.directory() as directory:
            into = _Into(
                dialogue,
                self._order,
                place,
                directory,
                may_use_kept=self._has_begun,
                anew=self._anew,
            )
            try:
                return await into.run()
            finally:
                self._has_begun = self._has_begun or into.has_begun


async def _download_special(dialogue: Dialogue, order: Download, place: Place) -> TransferReport:
    descriptor = open_special(place.path, place.shown, for_writing=True)
    try:
        consume = descriptor_consumer(descriptor, place.shown)
        return await download_stream(dialogue, order.remote, consume, order.progress)
    finally:
        os.close(descriptor)


class _Into:
    """A download into a directory that is open."""

    def __init__(
        self,
        dialogue: Dialogue,
        order: Download,
        place: Place,
        directory: int,
        *,
        may_use_kept: bool,
        anew: bool,
    ) -> None:
        self.has_begun = False
        """Whether the partial file is this download's own."""
        self._may_resume = may_use_kept or order.existing == "resume"
        self._anew = anew and not may_use_kept
        self._dialogue = dialogue
        self._order = order
        self._place = place
        self._name = place.path.name
        self._directory = directory
        self._is_text = dialogue.type_code == "A"
        self._facts = Facts(None, None)

    async def run(self) -> TransferReport | None:
        order, dialogue = self._order, self._dialogue
        start, use_kept = 0, False
        leading: list[Command] = []
        if self._resumes() and not self._is_text:
            self._facts = await ask_facts(dialogue, order.remote, with_time=True)
            start, use_kept = self._find_start()
            if start == self._facts.size and (use_kept or self._place.size is not None):
                return await self._finish_kept(start) if use_kept else None
        else:
            leading = fact_commands(dialogue, order.remote, with_time=True)
        rest = restart_commands(dialogue, start)
        transfer = None if start and not rest else Command("RETR", order.remote)
        opened = await open_channel(
            dialogue, single=self._is_text, leading=[*leading, *rest], transfer=transfer
        )
        try:
            if leading:
                self._facts = read_facts(leading, opened.replies)
            if opened.framed and self._facts.size is not None:
                record_count(self._facts.size - start)  # refuse it before anything moves
            start = await restart(dialogue, start, opened.replies[-1] if rest else None)
            target = await self._open(start, use_kept)
            return await self._receive(opened, target)
        finally:
            await opened.release()

    def _resumes(self) -> bool:
        """Tell whether to go on behind what is there.

        What a cut download of ours left is gone on with unless the user wants it anew: on the
        links this is for, nothing is fetched twice.
        """
        if self._anew or self._may_resume:
            return not self._anew
        kept = kept_source(self._directory, self._name) is not None
        return kept and self._order.existing in ("fail", "renew")

    def _find_start(self) -> tuple[int, bool]:
        """Find where to go on: behind what was kept of a cut transfer, or behind the target."""
        size, there = self._facts.size, self._place.size
        kept = kept_length(self._directory, self._name)
        source = kept_source(self._directory, self._name)
        if kept and source is not None and source != self._facts.identity:
            self._dialogue.notice(
                f"{self._place.shown}: what was kept is of another version, starting over"
            )
            kept = None
        if kept is not None and (size is None or kept <= size):
            return kept, True
        if self._order.existing != "resume" or there is None:
            return 0, False
        if size is not None and there > size:
            raise FileError(
                f"{self._place.shown}: has {there} bytes, more than the {size} on the server"
            )
        return there, False

    async def _open(self, start: int, use_kept: bool) -> PartialFile:
        target = await _in_thread(
            lambda: PartialFile.open(self._directory, self._name, start, prefer_kept=use_kept),
            undo=lambda target: target.keep(_from_start(start), None),
        )
        self.has_begun = True
        identity = self._facts.identity
        if identity is not None:
            await _in_thread(lambda: target.note_source(identity))
        return target

    async def _finish_kept(self, size: int) -> TransferReport:
        """Make a target of what was kept: all of it had arrived."""
        target = await self._open(size, True)
        dialogue, remote = self._dialogue, self._order.remote
        try:
            verification = Verification.begin(
                dialogue, remote, target.fileno(), self._place.shown, lambda: size
            )
            await self._verify(verification, target, size)
        except BaseException as error:
            await self._leave(target, _from_start(size), error)
            raise
        await self._commit(target, size)
        return TransferReport(bytes=0, seconds=0.0, framed=False, offset=size)

    async def _receive(self, opened: Opened, target: PartialFile) -> TransferReport:
        receiving: _Receiving | None = None
        try:
            receiving = _Receiving(self._dialogue, self._order, opened, target, self._facts.size)
            report = await receiving.run()
            await self._verify(receiving.verification, target, receiving.end)
        except BaseException as error:
            if receiving is not None and receiving.verification is not None:
                await receiving.verification.stop()
            held = receiving.held() if receiving else _from_start(target.offset)
            await self._leave(target, held, error)
            raise
        await self._commit(target, receiving.end)
        return report

    async def _verify(
        self, verification: Verification | None, target: PartialFile, size: int
    ) -> None:
        """Compare what arrived with the file on the server, and mend it. Raises VerifyError."""
        if verification is None:
            return
        dialogue, remote = self._dialogue, self._order.remote
        try:
            await verification.settle(
                size, lambda part: fetch_range(dialogue, remote, target, part)
            )
        finally:
            await verification.stop()

    async def _leave(
        self, target: PartialFile, held: Sequence[tuple[int, int]], cause: BaseException
    ) -> None:
        """Keep what arrived for another try, unless it is known to be wrong."""
        try:
            if isinstance(cause, VerifyError):
                await _in_thread(target.discard)
            else:
                await _in_thread(lambda: target.keep(held, self._facts.size))
        except XftpError as error:  # the first error matters more
            self._dialogue.notice(f"what arrived could not be kept: {error}")

    async def _commit(self, target: PartialFile, size: int) -> None:
        modified = self._facts.modified if self._order.preserve_times else None
        await _in_thread(lambda: target.commit(size, modified=modified))


class _Receiving:
    """The data of one download."""

    def __init__(
        self,
        dialogue: Dialogue,
        order: Download,
        opened: Opened,
        target: PartialFile,
        size: int | None,
    ) -> None:
        self.end = target.offset
        """Where the content that arrived in order ends."""
        self._known = size
        self.verification: Verification | None = None
        """The comparison with the file on the server, once the transfer has begun."""
        self._dialogue = dialogue
        self._order = order
        self._opened = opened
        self._target = target
        self._size = size
        self._records: RecordReceiver | None = None

    async def run(self) -> TransferReport:
        """Receive everything. Errors as those of `move`."""
        command = Command("RETR", self._order.remote)
        channel = self._opened.channel
        if self._opened.framed:
            answer = self._opened.take_transfer()
            records = await move(
                self._dialogue, command, channel, self._build_records, answer, self._ask_early
            )
            self.end += records.size or 0
            return records.report(self._target.offset)
        consume: Consume = self._write
        finish: Callable[[], None] | None = None
        if self._dialogue.type_code == "A":
            consume, finish = text_consumer(self._write)
        plain = await move(
            self._dialogue,
            command,
            channel,
            lambda opening: self._build(opening, consume),
            at_end=self._ask_early,
        )
        if finish is not None:
            await _in_thread(finish)
        return plain.report(self._target.offset)

    def held(self) -> Sequence[tuple[int, int]]:
        """Give the byte ranges of the target that are held."""
        if self._records is not None:
            return self._records.held_bytes()
        return _from_start(self.end)

    def _frontier(self) -> int:
        """Tell up to where the target is complete."""
        held = self.held()
        return held[0][1] if held and held[0][0] == 0 else 0

    def _ask_early(self) -> None:
        if self.verification is not None:
            self.verification.ask_early(self._known)

    def _write(self, piece: memoryview) -> None:
        self.end += self._target.write([piece], self.end)

    def _build_records(self, opening: Reply) -> RecordReceiver:
        self._records = RecordReceiver(
            self._opened.channel,
            self._target,
            self._begin(opening),
            limit=rate_limit(self._dialogue),
            progress=self._order.progress.moved if self._order.progress else None,
        )
        return self._records

    def _build(self, opening: Reply, consume: Consume) -> PlainReceiver:
        size = self._begin(opening)
        return PlainReceiver(
            self._opened.channel,
            bounded(consume, size),
            size,
            patience=self._target.patience,
            limit=rate_limit(self._dialogue),
            progress=self._order.progress.moved if self._order.progress else None,
        )

    def _begin(self, opening: Reply) -> int | None:
        """Note the 150 reply; give the bytes that are to come, if that is known."""
        offset = self._target.offset
        # After REST some servers tell the size of the file here, others that of the rest.
        known = expected_size(self._dialogue, self._size, opening) if not offset else self._size
        self._known = known
        if self._order.progress is not None:
            self._order.progress.started(known, offset)
        self.verification = Verification.begin(
            self._dialogue,
            self._order.remote,
            self._target.fileno(),
            self._target.name,
            self._frontier,
        )
        return None if known is None else known - offset


def _from_start(end: int) -> list[tuple[int, int]]:
    """Give the range of the first `end` bytes, if there are any."""
    return [(0, end)] if end else []


def restart_commands(dialogue: Dialogue, start: int) -> list[Command]:
    """Give the REST that may go ahead of the data connections; none if it has to go behind.

    Only servers of our own kind keep it until the transfer, whatever comes in between.
    """
    return [Command("REST", str(start))] if start and dialogue.pace is Pace.ALL else []


async def restart(dialogue: Dialogue, start: int, reply: Reply | None = None) -> int:
    """Ask that the next transfer starts at byte `start`; give where it will start.

    reply: that to `restart_commands`, if there were any.
    """
    if not start:
        return 0
    reply = reply or await dialogue.ask("REST", str(start))
    if reply.is_intermediate:
        return start
    dialogue.notice(f"the server does not restart at {start}, starting over")
    return 0


async def _in_thread(
    work: Callable[[], _Result], undo: Callable[[_Result], object] | None = None
) -> _Result:
    """Run blocking `work` in a thread to its end, even if the task is cancelled meanwhile.

    undo: what to do with the result then, so that nothing stays open.
    """
    job = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await asyncio.wait({job})
        if undo is not None and job.exception() is None:
            undo(job.result())
        raise
