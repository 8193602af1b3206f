"""Make one tree like the other: here like on the server, or there like here."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xftp.errors import FileError, XftpError, file_error

from .comparing import local_digest
from .hashes import CannotVerify
from .local_tree import make_directories, remove_local, scan_local
from .mirroring import Move, Plan, Reason, Removal, Rules, Tree, plan, to_compare, without_times
from .options import Direction
from .patterns import Selection
from .pool import SessionPool, Work
from .remote_tree import ask_times, make_remote_root, remote_join, scan_remote
from .series import LARGEST_FILE_BYTES, MOST_BYTES, MOST_FILES, Pair
from .session import Session

RESUMED_FROM_BYTES = 1 << 20
"""A new file of this size is looked for on the server, as a cut upload may have left a part."""

COMPARED_AT_ONCE = 64
"""Files of one flight of questions for hashes."""


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
    seconds: float = 0.0
    dry_run: bool = False


class Mirror:
    """One mirror, to be run once."""

    def __init__(self, order: Order, pool: SessionPool, observer: Observer) -> None:
        self.summary = Summary(dry_run=order.dry_run)
        self._order, self._pool, self._observer = order, pool, observer
        self._fetches = order.direction == "download"
        self._action = "fetch" if self._fetches else "send"
        self._features: dict[str, str] = {}

    async def run(self) -> Summary:
        """Do it, going on after what fails.

        Raises XftpError if a tree cannot be read at all, or the server is lost.
        """
        began_s = time.monotonic()
        source, target = await self._scan()
        async with self._pool.session() as session:
            self._features = await session.features()
        work = plan(source, target, self._rules, await self._differing(source, target))
        self._observer.planned(work, source)
        self.summary.unchanged = work.unchanged
        self.summary.left_out = len(source.others)
        for path, error in (*source.unreadable.items(), *target.unreadable.items()):
            self._failed("list", path, error)
        for path, reason in work.conflicts.items():
            self._failed(self._action, path, XftpError(f"{reason}; --delete would remove it"))
        if self._order.dry_run:
            self._tell(work)
        else:
            await self._carry_out(work, target)
        self.summary.seconds = time.monotonic() - began_s
        return self.summary

    # -- finding out -----------------------------------------------------------------------------

    @property
    def _rules(self) -> Rules:
        order = self._order
        keeps = order.preserve_times and (self._fetches or "MFMT" in self._features)
        return Rules(delete=order.delete, keeps_times=keeps, checksum=order.checksum)

    async def _scan(self) -> tuple[Tree, Tree]:
        """Give the trees of source and target."""
        order = self._order
        here, there = await asyncio.gather(
            asyncio.to_thread(scan_local, order.local, order.selection),
            scan_remote(self._pool, order.remote, order.selection, must_exist=self._fetches),
            return_exceptions=True,
        )
        for result in (here, there):
            if isinstance(result, BaseException):
                raise result
        assert isinstance(here, Tree)
        assert isinstance(there, Tree)
        source, target = (there, here) if self._fetches else (here, there)
        if not source.exists:
            raise FileError(f"{order.local}: {os.strerror(errno.ENOENT)}")
        if not self._order.checksum:
            await ask_times(self._pool, order.remote, there, without_times(source, target))
        return source, target

    async def _differing(self, source: Tree, target: Tree) -> set[str] | None:
        """Give the files whose contents are not the same, if that is to decide."""
        if not self._order.checksum:
            return None
        differing: set[str] = set()

        async def compare(session: Session, paths: list[str]) -> None:
            root = self._order.remote
            named = [(remote_join(root, path), source.files[path].size or 0) for path in paths]
            method, digests = await session.digests(named)
            for path, theirs in zip(paths, digests, strict=True):
                ours, _ = await local_digest(self._order.local / path, method.algorithm)
                if isinstance(theirs, CannotVerify) or theirs != ours:
                    differing.add(path)

        problems: list[XftpError] = []
        work: Work[list[str]] = Work(self._pool, compare, lambda _, error: problems.append(error))
        paths = to_compare(source, target)
        step = COMPARED_AT_ONCE
        work.add(paths[at : at + step] for at in range(0, len(paths), step))
        await work.run()
        if problems:
            raise problems[0]
        return differing

    # -- doing it --------------------------------------------------------------------------------

    def _tell(self, work: Plan) -> None:
        """Tell what would be done."""
        for removal in work.replacements:
            self._done("delete", removal.path)
        for path in work.directories:
            self._done("mkdir", path)
        for move in work.moves:
            self._done(self._action, move.path, move.facts.size)
        for removal in work.removals:
            self._done("delete", removal.path)

    async def _carry_out(self, work: Plan, target: Tree) -> None:
        async with self._pool.session() as session:
            await self._make_root(session, target)
            await self._remove(session, work.replacements)
            await self._make_directories(session, work.directories)
        await self._move(work.moves)
        if self.summary.failed and work.removals:
            self._observer.failed(
                "delete", "", XftpError("nothing was deleted, as not all could be done")
            )
            return
        async with self._pool.session() as session:
            await self._remove(session, work.removals)

    async def _make_root(self, session: Session, target: Tree) -> None:
        if self._fetches:
            try:
                await asyncio.to_thread(self._order.local.mkdir, parents=True, exist_ok=True)
            except OSError as error:
                raise file_error(error, str(self._order.local)) from error
        elif self._order.remote and not target.files and not target.directories:
            await make_remote_root(session, self._order.remote)

    async def _make_directories(self, session: Session, paths: list[str]) -> None:
        lost: set[str] = set()
        for path in paths:
            if path.rpartition("/")[0] in lost:
                lost.add(path)
                continue
            try:
                if self._fetches:
                    await asyncio.to_thread(make_directories, self._order.local, path)
                else:
                    await session.make_directory(remote_join(self._order.remote, path))
            except XftpError as error:
                lost.add(path)
                self._failed("mkdir", path, error)
            else:
                self._done("mkdir", path)

    async def _remove(self, session: Session, removals: list[Removal]) -> None:
        for removal in removals:
            try:
                if self._fetches:
                    await asyncio.to_thread(remove_local, self._order.local, removal)
                else:
                    await _remove_remote(session, self._order.remote, removal)
            except XftpError as error:
                self._failed("delete", removal.path, error)
            else:
                self._done("delete", removal.path)

    async def _move(self, moves: list[Move]) -> None:
        """Move files: many small ones as one, the others by themselves."""
        if "SERI" in self._features:
            moves = await self._move_in_series(moves)
        await self._move_singly(moves)

    async def _move_in_series(self, moves: list[Move]) -> list[Move]:
        """Move what a series is good for; give what is left."""
        left = {move.path: move for move in moves}

        async def run(session: Session, part: list[Move]) -> None:
            waiting = [move for move in part if move.path in left]

            def completed(index: int) -> None:
                self._moved(left.pop(waiting[index].path))

            pairs = [
                Pair(self._order.local / path, remote_join(self._order.remote, path))
                for path in (move.path for move in waiting)
            ]
            await session.move_series(
                self._order.direction,
                pairs,
                preserve_times=self._order.preserve_times,
                progress=_Counted(self._observer),
                completed=completed,
            )

        work: Work[list[Move]] = Work(
            self._pool,
            run,
            lambda _, error: self._pool.notice(f"{error}; the files go one by one"),
            most=1,
        )
        work.add(in_series(moves))
        await work.run()
        return list(left.values())

    async def _move_singly(self, moves: list[Move]) -> None:
        """Move files, each by itself, several at the same time."""
        work: Work[Move] = Work(
            self._pool,
            self._move_one,
            lambda move, error: self._failed(self._action, move.path, error),
            most=self._order.transfers,
        )
        work.add(moves)
        await work.run()

    async def _move_one(self, session: Session, move: Move) -> None:
        order, path = self._order, move.path
        here, there = str(order.local / path), remote_join(order.remote, path)
        progress = _Counted(self._observer)
        if self._fetches:
            await session.get(
                there,
                here,
                existing="renew",
                progress=progress,
                preserve_times=order.preserve_times,
            )
        else:
            is_new = move.reason is Reason.NEW and (move.facts.size or 0) >= RESUMED_FROM_BYTES
            await session.put(
                here,
                there,
                existing="resume" if is_new else "overwrite",
                progress=progress,
                preserve_times=order.preserve_times,
            )
        self._moved(move)

    # -- telling ---------------------------------------------------------------------------------

    def _moved(self, move: Move) -> None:
        self._done(self._action, move.path, move.facts.size)

    def _done(self, action: str, path: str, size: int | None = None) -> None:
        summary = self.summary
        if action == "mkdir":
            summary.directories += 1
        elif action == "delete":
            summary.removed += 1
        else:
            summary.moved += 1
            summary.bytes += size or 0
        self._observer.done(action, path, size)

    def _failed(self, action: str, path: str, error: Exception) -> None:
        self.summary.failed += 1
        self._observer.failed(action, path, error)


def in_series(moves: list[Move]) -> list[list[Move]]:
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


async def _remove_remote(session: Session, root: str, removal: Removal) -> None:
    """Remove from the server; what is gone is gone. Raises ReplyError."""
    path = remote_join(root, removal.path)
    if removal.is_directory:
        await session.remove_directory(path)
    else:
        await session.remove(path)
