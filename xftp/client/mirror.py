"""Make one tree like the other: here like on the server, or there like here."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby

from xftp.errors import FileError, XftpError, file_error

from .comparing import local_digest
from .hashes import CannotVerify
from .local_tree import make_directories, remove_local, scan_local
from .mirror_moves import Account, Moves, Observer, Order, Summary
from .mirroring import Plan, Removal, Rules, Tree, plan, to_compare, without_times
from .pool import SessionPool, Work
from .remote_tree import ask_times, make_remote_root, remote_join, scan_remote
from .session import Session

COMPARED_AT_ONCE = 64
"""Files of one flight of questions for hashes."""

CHANGED_AT_ONCE = 500
"""Names of one flight of commands that make or remove them."""


class Mirror:
    """One mirror, to be run once."""

    def __init__(self, order: Order, pool: SessionPool, observer: Observer) -> None:
        self._order, self._pool, self._observer = order, pool, observer
        self._account = Account(observer, dry_run=order.dry_run)
        self._fetches = order.fetches
        self._features: dict[str, str] = {}

    @property
    def summary(self) -> Summary:
        """What it came to so far."""
        return self._account.summary

    async def run(self) -> Summary:
        """Do it, going on after what fails.

        Raises XftpError if a tree cannot be read at all, or the server is lost.
        """
        source, target = await self._scan()
        async with self._pool.session() as session:
            self._features = await session.features()
        work = plan(source, target, self._rules, await self._differing(source, target))
        self._observer.planned(work, source)
        self.summary.unchanged = work.unchanged
        self.summary.left_out = len(source.others)
        for path, error in (*source.unreadable.items(), *target.unreadable.items()):
            self._account.failed("list", path, error)
        for path, reason in work.conflicts.items():
            self._account.failed(
                self._order.action, path, XftpError(f"{reason}; --delete would remove it")
            )
        if self._order.dry_run:
            self._tell(work)
        else:
            await self._carry_out(work, target)
        return self._account.finish()

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
            self._account.done("delete", removal.path)
        for path in work.directories:
            self._account.done("mkdir", path)
        for move in work.moves:
            self._account.done(self._order.action, move.path, move.facts.size)
        for removal in work.removals:
            self._account.done("delete", removal.path)

    async def _carry_out(self, work: Plan, target: Tree) -> None:
        async with self._pool.session() as session:
            await self._make_root(session, target)
            await self._remove(session, work.replacements)
            await self._make_directories(session, work.directories)
        moves = Moves(self._order, self._pool, self._account)
        await moves.run(work.moves, in_series="SERI" in self._features)
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
        """Make directories, parents first; what cannot be made has nothing below it."""
        if self._fetches:
            results = [await self._made_here(path) for path in paths]
        else:
            root = self._order.remote
            results = await _in_flights(
                session.make_directories, [remote_join(root, path) for path in paths]
            )
        lost: set[str] = set()
        for path, error in zip(paths, results, strict=True):
            if error is None:
                self._account.done("mkdir", path)
                continue
            if path.rpartition("/")[0] not in lost:  # the first tells enough
                self._account.failed("mkdir", path, error)
            lost.add(path)

    async def _made_here(self, path: str) -> XftpError | None:
        try:
            await asyncio.to_thread(make_directories, self._order.local, path)
        except FileError as error:
            return error
        return None

    async def _remove(self, session: Session, removals: list[Removal]) -> None:
        """Remove, in this order: what is in a directory comes before it."""
        if self._fetches:
            results = [await self._removed_here(removal) for removal in removals]
        else:
            results = await self._removed_there(session, removals)
        for removal, error in zip(removals, results, strict=True):
            if error is None:
                self._account.done("delete", removal.path)
            else:
                self._account.failed("delete", removal.path, error)

    async def _removed_here(self, removal: Removal) -> XftpError | None:
        try:
            await asyncio.to_thread(remove_local, self._order.local, removal)
        except FileError as error:
            return error
        return None

    async def _removed_there(
        self, session: Session, removals: list[Removal]
    ) -> list[XftpError | None]:
        results: list[XftpError | None] = []
        for is_directory, group in groupby(removals, lambda removal: removal.is_directory):
            paths = [remote_join(self._order.remote, removal.path) for removal in group]
            results += await _in_flights(
                partial(session.remove_all, directories=is_directory), paths
            )
        return results


async def _in_flights(
    work: Callable[[Sequence[str]], Awaitable[Sequence[XftpError | None]]], paths: Sequence[str]
) -> list[XftpError | None]:
    """Do the same with many paths of the server, some at a time."""
    results: list[XftpError | None] = []
    for at in range(0, len(paths), CHANGED_AT_ONCE):
        results += await work(paths[at : at + CHANGED_AT_ONCE])
    return results
