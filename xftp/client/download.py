"""Fetch one file into a local file that is whole or not there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from xftp.errors import FileError, VerifyError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.records import record_count
from xftp.transport.files import PartialFile, kept_length, kept_source
from xftp.transport.report import TransferReport

from .data import Opened, open_channel
from .dialogue import Dialogue
from .existing import ExistsError
from .facts import Facts, ask_facts, fact_commands, read_facts
from .mending import fetch_range
from .places import Place, find_place
from .receiving import Download, Receiving, from_start
from .restarting import restart, restart_commands
from .streams import (
    descriptor_consumer,
    download_stream,
    open_special,
)
from .threads import in_thread
from .verify import DiffersError, Verification


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
        target = await in_thread(
            lambda: PartialFile.open(self._directory, self._name, start, prefer_kept=use_kept),
            undo=lambda target: target.keep(from_start(start), None),
        )
        self.has_begun = True
        identity = self._facts.identity
        if identity is not None:
            await in_thread(lambda: target.note_source(identity))
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
            await self._leave(target, from_start(size), error)
            raise
        await self._commit(target, size)
        return TransferReport(bytes=0, seconds=0.0, framed=False, offset=size)

    async def _receive(self, opened: Opened, target: PartialFile) -> TransferReport:
        receiving: Receiving | None = None
        try:
            receiving = Receiving(self._dialogue, self._order, opened, target, self._facts.size)
            report = await receiving.run()
            await self._verify(receiving.verification, target, receiving.end)
        except BaseException as error:
            if receiving is not None and receiving.verification is not None:
                await receiving.verification.stop()
            held = receiving.held() if receiving else from_start(target.offset)
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
                await in_thread(target.discard)
            else:
                await in_thread(lambda: target.keep(held, self._facts.size))
        except XftpError as error:  # the first error matters more
            self._dialogue.notice(f"what arrived could not be kept: {error}")

    async def _commit(self, target: PartialFile, size: int) -> None:
        modified = self._facts.modified if self._order.preserve_times else None
        await in_thread(lambda: target.commit(size, modified=modified))
