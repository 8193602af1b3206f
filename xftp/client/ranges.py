"""One file over several sessions with an ordinary server: each fetches a range of it with REST.

For servers without MULT, as lftp and aria2 do it. A server that refuses a further session (421, or
a limit of its own) gets fewer; what a lost session did not bring, another one does. Afterwards the
whole is checked: the size and the time that the server tells must be what they were, and its hash
right if it tells one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from xftp.errors import (
    ConnectError,
    DataConnectionError,
    ReplyError,
    TransferAborted,
    XftpError,
)
from xftp.protocol.commands import Command
from xftp.protocol.recordset import RecordSet
from xftp.transport.kept import kept_length
from xftp.transport.partial import PartialFile
from xftp.transport.plain import PlainReceiver
from xftp.transport.report import ConnectionReport, TransferReport, connection_report

from .data import open_channel
from .dialogue import Dialogue
from .facts import Facts, ask_facts
from .mending import fetch_range
from .moving import move
from .places import Place, find_place
from .receiving import Download
from .restarting import restart_at
from .streams import rate_limit
from .verify import Verification

SMALLEST_BYTES = 1 << 20
"""A range of its own is worth a login from this size on."""

TRIES = 5
"""Ranges that may be cut before the download fails."""

OpenMore = Callable[[], Awaitable[Dialogue]]
"""Opens another session with the same server and user. Raises XftpError."""


class _Enough(XftpError):
    """The range is there; the server would go on to the end of the file."""


class _NoRestart(XftpError):
    """The server does not begin where it is asked to."""


@dataclass(slots=True)
class _Ranges:
    """What is to be fetched, and what is there."""

    waiting: deque[tuple[int, int]]
    held: RecordSet = field(default_factory=RecordSet)  # of bytes
    reports: list[ConnectionReport] = field(default_factory=list)
    cuts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Threads write, and note what is held."""


def divided(size: int, count: int) -> list[tuple[int, int]]:
    """Divide a file into `count` ranges at most, (start, end), none smaller than is worth it."""
    count = max(1, min(count, size // SMALLEST_BYTES))
    bounds = [size * number // count for number in range(count + 1)]
    return list(pairwise(bounds))


async def fetch_in_ranges(
    dialogue: Dialogue, order: Download, count: int, open_more: OpenMore
) -> TransferReport | None:
    """Fetch a file over up to `count` sessions; None if it has to be fetched as usual.

    That is so for what is small, is there already, was begun before, or of unknown size, and where
    the server does not restart.
    """
    place = await asyncio.to_thread(find_place, order.local, order.remote)
    if place.is_special or (
        place.size is not None and order.existing not in ("overwrite", "renew")
    ):
        return None
    if order.existing == "resume" or await asyncio.to_thread(_is_begun, place):
        return None
    facts = await ask_facts(dialogue, order.remote, with_time=True)
    if facts.size is None or facts.size < 2 * SMALLEST_BYTES:
        return None
    fetching = _Fetching(dialogue, order, place, facts, facts.size)
    try:
        return await fetching.run(count, open_more)
    except _NoRestart as error:
        dialogue.trace(f"{error}: the file comes over one connection")
        return None


def _is_begun(place: Place) -> bool:
    with place.directory() as directory:
        return kept_length(directory, place.path.name) is not None


class _Fetching:
    def __init__(
        self, dialogue: Dialogue, order: Download, place: Place, facts: Facts, size: int
    ) -> None:
        self._dialogue, self._order, self._place = dialogue, order, place
        self._facts, self._size = facts, size
        self._ranges = _Ranges(deque())
        self._limit = rate_limit(dialogue)
        self._others: list[Dialogue] = []

    async def run(self, count: int, open_more: OpenMore) -> TransferReport:
        with self._place.directory() as directory:
            name = self._place.path.name
            target = await asyncio.to_thread(PartialFile.open, directory, name)
        try:
            await asyncio.to_thread(self._begin, target)
            began_s = asyncio.get_running_loop().time()
            await self._fetch_all(target, divided(self._size, count), open_more)
            seconds = asyncio.get_running_loop().time() - began_s
            await self._check(target)
        except BaseException:
            await asyncio.to_thread(self._keep, target)
            raise
        modified = self._facts.modified if self._order.preserve_times else None
        sync = self._dialogue.options.sync_downloads
        await asyncio.to_thread(target.commit, self._size, modified=modified, sync=sync)
        reports = tuple(
            replace(each, number=number) for number, each in enumerate(self._ranges.reports)
        )
        return TransferReport(self._size, seconds, False, reports)

    def _begin(self, target: PartialFile) -> None:
        if self._facts.identity is not None:
            target.note_source(self._facts.identity, self._size)
        target.begin_journal()

    def _keep(self, target: PartialFile) -> None:
        target.keep(list(self._ranges.held.ranges()), self._size)

    async def _fetch_all(
        self, target: PartialFile, ranges: list[tuple[int, int]], open_more: OpenMore
    ) -> None:
        """Fetch every range, each session the next one when it is done with one."""
        self._ranges.waiting.extend(ranges)
        if self._order.progress is not None:
            self._order.progress.started(self._size, 0)
        workers = [asyncio.create_task(self._work(self._dialogue, target, 0))]
        workers += [
            asyncio.create_task(self._work_elsewhere(open_more, target, number))
            for number in range(1, len(ranges))
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await asyncio.gather(*(each.control.wait_closed() for each in self._others))
        if self._ranges.waiting:  # others were cut after the first had found nothing to do
            await self._work(self._dialogue, target, 0)

    async def _work_elsewhere(self, open_more: OpenMore, target: PartialFile, number: int) -> None:
        """Do the same in a session of its own, if the server gives one."""
        try:
            dialogue = await open_more()
        except XftpError as error:
            self._dialogue.trace(f"{error}: one session fewer")
            return
        self._others.append(dialogue)
        try:
            await self._work(dialogue, target, number)
        except (ConnectError, DataConnectionError, ReplyError, TransferAborted) as error:
            self._dialogue.trace(f"{error}: one session fewer")

    async def _work(self, dialogue: Dialogue, target: PartialFile, number: int) -> None:
        ranges = self._ranges
        while ranges.waiting:
            start, end = ranges.waiting.popleft()
            at = _At(start)
            try:
                await self._fetch(dialogue, target, at, end, number)
            except BaseException as error:
                if at.position < end:
                    ranges.waiting.appendleft((at.position, end))
                ranges.cuts += 1
                is_cut = isinstance(error, ConnectError | TransferAborted)
                if not is_cut or ranges.cuts > TRIES:
                    raise
                if dialogue.control.is_closed:
                    if dialogue is self._dialogue:
                        raise
                    return

    async def _fetch(
        self, dialogue: Dialogue, target: PartialFile, at: _At, end: int, number: int
    ) -> None:
        """Fetch one range; `at` tells how far it came. Raises TransferAborted, _NoRestart."""
        await dialogue.ensure_type("I")
        opened = await open_channel(dialogue, single=True)

        def consume(piece: memoryview, _: int) -> None:
            wanted = piece[: end - at.position]
            if wanted:
                target.write([wanted], at.position)
                with self._ranges.lock:
                    self._ranges.held.add(at.position, at.position + len(wanted))
                at.position += len(wanted)
            if at.position >= end and end < self._size:
                raise _Enough

        def moved(_: int, size: int) -> None:
            if self._order.progress is not None:
                self._order.progress.moved(number, size)

        def build(_: object) -> PlainReceiver:
            return PlainReceiver(opened.channel, consume, limit=self._limit, progress=moved)

        try:
            if await restart_at(dialogue, at.position) != at.position:
                raise _NoRestart("the server does not restart in the middle of a file")
            await move(dialogue, Command("RETR", self._order.remote), opened.channel, build)
        except _Enough:
            pass
        finally:
            opened.channel.close()
            self._ranges.reports += map(connection_report, opened.channel.connections)
        if at.position < end:
            raise TransferAborted(f"the server sent {at.position} bytes of {self._size}")

    async def _check(self, target: PartialFile) -> None:
        """See that it is the file that it was in the beginning, and whole. Raises XftpError."""
        dialogue, order, size = self._dialogue, self._order, self._size
        facts = await ask_facts(dialogue, order.remote, with_time=True)
        if facts != self._facts:
            raise TransferAborted(f"{self._place.shown}: was changed on the server meanwhile")
        verification = Verification.begin(
            dialogue, order.remote, target.fileno(), self._place.shown, lambda: size
        )
        if verification is None:
            return
        try:
            await verification.settle(
                size, lambda part: fetch_range(dialogue, order.remote, target, part)
            )
        finally:
            await verification.stop()


@dataclass(slots=True)
class _At:
    """How far a range came."""

    position: int
