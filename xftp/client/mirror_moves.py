"""The files of a mirror on their way: many small ones as one, the others by themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xftp.errors import NoSpaceError, XftpError

from .mirroring import Move, Plan, Reason, Tree
from .options import Direction
from .patterns import Selection
from .pool import SessionPool, Work
from .remote_tree import remote_join
from .series import LARGEST_FILE_BYTES, MOST_BYTES, MOST_FILES, Pair
from .session import Session
from .space import is_no_space

RESUMED_FROM_BYTES = 1 << 20
"""A new file of this size is looked for on the server, as a cut upload may have left a part."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be mirrored, and how."""

    local: Path
    """The root here."""

    remote: str
    """The root on the server; "": the login directory."""

    direction: Direction
    """Which way files go."""

    delete: bool = False
    """Remove what the source does not have."""

    checksum: bool = False
    """Compare the contents of files of the same size, not their times."""

    preserve_times: bool = True
    """Give copies the times of the originals."""

    selection: Selection = field(default_factory=Selection)
    """Which files count, on both sides."""

    dry_run: bool = False
    """Tell what would be done, and do nothing."""

    transfers: int = 4
    """Files that move at the same time where each has to have a session of its own."""

    @property
    def fetches(self) -> bool:
        """Whether files come here."""
        return self.direction == "download"

    @property
    def action(self) -> str:
        """What is done with a file, for those who are told."""
        return "fetch" if self.fetches else "send"


class Observer(Protocol):
    """Is told what a mirror does; called in the event loop."""

    def planned(self, work: Plan, source: Tree) -> None:
        """Note what is going to be done."""

    def moved(self, size: int) -> None:
        """Note that `size` bytes of files have moved."""

    def done(self, action: str, path: str, size: int | None = None) -> None:
        """Note what was done: "fetch", "send", "mkdir" or "delete"; size: of a file, bytes."""

    def failed(self, action: str, path: str, error: Exception) -> None:
        """Note what could not be done; action "list" too."""


@dataclass(slots=True)
class Summary:
    """What a mirror came to."""

    moved: int = 0
    """Files fetched or sent."""
    bytes: int = 0
    """Their sizes."""
    unchanged: int = 0
    directories: int = 0
    """Made."""
    removed: int = 0
    left_out: int = 0
    """Links, devices and pipes of the source."""
    failed: int = 0
    not_tried: int = 0
    """Files that were not moved because there was no space left for them."""
    seconds: float = 0.0
    dry_run: bool = False


class Account:
    """Counts what is done, and tells of it."""

    def __init__(self, observer: Observer, *, dry_run: bool) -> None:
        self.summary = Summary(dry_run=dry_run)
        self.observer = observer
        self._began_s = time.monotonic()

    def done(self, action: str, path: str, size: int | None = None) -> None:
        """Note what was done."""
        summary = self.summary
        if action == "mkdir":
            summary.directories += 1
        elif action == "delete":
            summary.removed += 1
        else:
            summary.moved += 1
            summary.bytes += size or 0
        self.observer.done(action, path, size)

    def failed(self, action: str, path: str, error: Exception) -> None:
        """Note what could not be done."""
        self.summary.failed += 1
        self.observer.failed(action, path, error)

    def finish(self) -> Summary:
        """Give what it came to."""
        self.summary.seconds = time.monotonic() - self._began_s
        return self.summary


class Moves:
    """Moves the files of one mirror. Where no space is left, it stops at the first that says so."""

    def __init__(self, order: Order, pool: SessionPool, account: Account) -> None:
        self._order, self._pool, self._account = order, pool, account
        self._is_full = False

    async def run(self, moves: list[Move], *, in_series: bool) -> None:
        """Move them. in_series: whether the server takes many as one."""
        left = {move.path: move for move in moves}
        if in_series:
            await self._in_series(left)
        if not self._is_full:
            await self._singly(left)
        if self._is_full:
            self._stopped(len(left))

    async def _in_series(self, left: dict[str, Move]) -> None:
        """Move what a series is good for, and take it out of `left`."""

        async def run(session: Session, part: list[Move]) -> None:
            waiting = [move for move in part if move.path in left]

            def completed(index: int) -> None:
                self._moved(left.pop(waiting[index].path))

            result = await session.move_series(
                self._order.direction,
                [Pair(*self._places(move)) for move in waiting],
                preserve_times=self._order.preserve_times,
                progress=_Counted(self._account.observer),
                completed=completed,
            )
            for error in result.failures.values() if result is not None else ():
                if is_no_space(error):
                    raise error

        def failed(_: list[Move], error: XftpError) -> None:
            if not self._is_end(error, ""):
                self._pool.notice(f"{error}; the files go one by one")
            else:
                work.stop()

        work: Work[list[Move]] = Work(self._pool, run, failed, most=1)
        work.add(series_of(list(left.values())))
        await work.run()

    async def _singly(self, left: dict[str, Move]) -> None:
        """Move files, each by itself, several at the same time, and take them out of `left`."""

        async def run(session: Session, move: Move) -> None:
            await self._move_one(session, move)
            self._moved(left.pop(move.path))

        def failed(move: Move, error: XftpError) -> None:
            if self._is_end(error, move.path):
                work.stop()
            else:
                del left[move.path]
                self._account.failed(self._order.action, move.path, error)

        work: Work[Move] = Work(self._pool, run, failed, most=self._order.transfers)
        work.add(list(left.values()))
        await work.run()

    async def _move_one(self, session: Session, move: Move) -> None:
        order = self._order
        here, there = self._places(move)
        progress = _Counted(self._account.observer)
        if order.fetches:
            await session.get(
                there,
                here,
                existing="renew",
                progress=progress,
                preserve_times=order.preserve_times,
            )
            return
        is_new = move.reason is Reason.NEW and (move.facts.size or 0) >= RESUMED_FROM_BYTES
        await session.put(
            here,
            there,
            existing="resume" if is_new else "renew",
            progress=progress,
            preserve_times=order.preserve_times,
        )

    def _places(self, move: Move) -> tuple[Path, str]:
        """Give where a file is here, and on the server."""
        return self._order.local / move.path, remote_join(self._order.remote, move.path)

    def _moved(self, move: Move) -> None:
        self._account.done(self._order.action, move.path, move.facts.size)

    def _is_end(self, error: XftpError, path: str) -> bool:
        """Tell whether nothing else need be tried: no space is left. The first is told of."""
        if not is_no_space(error):
            return False
        if not self._is_full:
            self._is_full = True
            self._account.failed(self._order.action, path, error)
        return True

    def _stopped(self, count: int) -> None:
        """Say that the rest was not tried, and what helps."""
        place = f"in {self._order.local.resolve()}" if self._order.fetches else "on the server"
        files = "1 file" if count == 1 else f"{count} files"
        self._account.summary.not_tried = count
        self._account.observer.failed(
            self._order.action,
            "",
            NoSpaceError(f"stopped with {files} to go: make room {place} and run again"),
        )


def series_of(moves: list[Move]) -> list[list[Move]]:
    """Divide files into series; those that are large, or of unknown size, are in none."""
    series: list[list[Move]] = []
    room_files = room_bytes = 0
    for move in moves:
        size = move.facts.size
        if size is None or size > LARGEST_FILE_BYTES:
            continue
        if not series or not room_files or size > room_bytes:
            series.append([])
            room_files, room_bytes = MOST_FILES, MOST_BYTES
        series[-1].append(move)
        room_files, room_bytes = room_files - 1, room_bytes - size
    return [each for each in series if len(each) > 1]


class _Counted:
    """Progress of one file, as a part of all."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def started(self, total_bytes: int | None, offset: int) -> None:
        """What was there already counts as moved only once the file is done."""

    def moved(self, connection: int, size: int) -> None:
        """Count."""
        self._observer.moved(size)
