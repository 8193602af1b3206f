"""Fetch one file into a local file that is whole or not there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from xftp.errors import (
    FileError,
    PeerError,
    ReplyError,
    VerifyError,
    XftpError,
    file_error,
)
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange
from xftp.protocol.records import record_count
from xftp.transport.kept import Kept, find_kept
from xftp.transport.partial import PartialFile
from xftp.transport.report import TransferReport

from .data import open_channel
from .dialogue import Dialogue
from .existing import ExistsError
from .facts import Facts, ask_facts, fact_commands, read_facts
from .mending import fetch_range
from .opened import Opened
from .places import Place, find_place
from .receiving import Download, Receiving
from .restarting import CANNOT_GO_ON, Start, knows_parts, restart, start_commands
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
        self._uses_kept = False
        """Whether what was kept is gone on with, and not the target."""

    async def run(self) -> TransferReport | None:
        start = None
        if self._resumes() and not self._is_text:
            self._facts = await ask_facts(self._dialogue, self._order.remote, with_time=True)
            start = self._find_start()
            if start.offset == self._facts.size and (
                self._uses_kept or self._place.size is not None
            ):
                return await self._finish_kept(start) if self._uses_kept else None
        try:
            return await self._fetch(start)
        except ReplyError as error:
            if error.code != CANNOT_GO_ON or start is None or start.file is None:
                raise
            self._dialogue.notice(
                f"{self._place.shown}: was changed on the server just now, starting over"
            )
            self._uses_kept = False
            return await self._fetch(None)

    async def _fetch(self, start: Start | None) -> TransferReport:
        """Fetch what `start` leaves; None: everything, of which nothing was asked yet."""
        order, dialogue = self._order, self._dialogue
        leading = fact_commands(dialogue, order.remote, with_time=True) if start is None else []
        start = start or Start()
        begins = start_commands(dialogue, start)
        opened = await open_channel(
            dialogue,
            single=self._is_text,
            framed=start.missing is not None,
            leading=[*leading, *begins],
            transfer=Command("RETR", order.remote) if begins or not start.goes_on else None,
        )
        try:
            if leading:
                self._facts = read_facts(leading, opened.replies)
            if start.missing is not None and not opened.framed:
                raise PeerError("the server lists PART, but takes no MPSV or MPRT")
            if opened.framed and self._facts.size is not None:
                record_count(self._facts.size - start.offset)  # refuse it before anything moves
            start = await restart(dialogue, start, begins, opened.replies[len(leading) :])
            return await self._receive(opened, await self._open(start))
        finally:
            await opened.release()

    def _resumes(self) -> bool:
        """Tell whether to go on behind what is there.

        What a cut download of ours left is gone on with unless the user wants it anew: on the
        links this is for, nothing is fetched twice.
        """
        if self._anew or self._may_resume:
            return not self._anew
        if self._order.existing not in ("fail", "renew"):
            return False
        kept = self._find_kept()
        return kept is not None and kept.source is not None

    def _find_kept(self) -> Kept | None:
        try:
            return find_kept(self._directory, self._name)
        except OSError as error:
            raise file_error(error, self._place.shown) from error

    def _find_start(self) -> Start:
        """Find where to go on: with what was kept of a cut transfer, or behind the target.

        Raises FileError.
        """
        size, there = self._facts.size, self._place.size
        kept = self._find_kept()
        if kept and kept.held and kept.source not in (None, self._facts.identity):
            self._dialogue.notice(
                f"{self._place.shown}: what was kept is of another version, starting over"
            )
            kept = None
        if kept is not None and (size is None or kept.contiguous <= size):
            self._uses_kept = True
            return self._start_from(kept)
        if self._order.existing != "resume" or there is None:
            return Start()
        if size is not None and there > size:
            raise FileError(
                f"{self._place.shown}: has {there} bytes, more than the {size} on the server"
            )
        return Start(there)

    def _start_from(self, kept: Kept) -> Start:
        """Go on with what was kept: with its holes, where the server can and it is known."""
        dialogue, facts = self._dialogue, self._facts
        file = facts.part
        is_known = kept.source is not None and kept.size == facts.size
        if file is None or not is_known or not knows_parts(dialogue):
            return Start(kept.contiguous)
        return Start.from_held(kept.held, file, in_order=dialogue.connections == 1)

    async def _open(self, start: Start) -> PartialFile:
        size, identity = self._facts.size, self._facts.identity

        def work() -> PartialFile:
            if start.missing is not None and size is not None and identity is not None:
                target = PartialFile.reopen(self._directory, self._name, size, identity)
                target.held = start.held(size)
                return target
            return PartialFile.open(
                self._directory, self._name, start.offset, prefer_kept=self._uses_kept
            )

        target = await in_thread(work, undo=lambda target: target.keep(target.held, size))
        self.has_begun = True
        if identity is not None:
            target.note_source(identity, size)
        return target

    async def _finish_kept(self, start: Start) -> TransferReport:
        """Make a target of what was kept: all of it had arrived."""
        size = start.offset
        target = await self._open(start)
        dialogue, remote = self._dialogue, self._order.remote
        try:
            verification = Verification.begin(
                dialogue, remote, target.fileno(), self._place.shown, lambda: size
            )
            await self._verify(verification, target, size)
        except BaseException as error:
            await self._leave(target, target.held, error)
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
            held = receiving.held() if receiving else target.held
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
        was_mended = False

        async def mend(part: ByteRange) -> None:
            nonlocal was_mended
            was_mended = True
            await fetch_range(dialogue, remote, target, part)

        try:
            await verification.settle(size, mend)
        finally:
            await verification.stop()
        if was_mended and self._facts.size is not None:
            # Another file may have taken its place, of which this would be the beginning.
            now = await ask_facts(dialogue, remote, with_time=False)
            if now.size != self._facts.size:
                raise DiffersError(f"{self._place.shown}: was changed on the server meanwhile")

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
        sync = self._dialogue.options.sync_downloads
        await in_thread(lambda: target.commit(size, modified=modified, sync=sync))
