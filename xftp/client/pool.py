"""Several sessions with one server, and work that is shared out among them.

The first session is needed; the others are welcome. Where the server refuses one (421, or a limit
of its own), the work goes on with those that there are, and no further one is tried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from xftp.errors import XftpError

from .session import Session

Job = TypeVar("Job")

TRIES = 3
"""How often one job is tried, as sessions end under it."""


class SessionPool:
    """Up to `most` sessions, opened as they are needed and kept for later work."""

    def __init__(
        self,
        open_one: Callable[[], Awaitable[Session]],
        most: int,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make a pool; open_one: makes a session that is logged in, or raises XftpError."""
        self.most = most
        """Sessions that are worth trying: fewer once the server has refused one."""
        self.notice = notice
        self._open_one = open_one
        self._idle: list[Session] = []
        self._open = 0

    async def take(self, *, is_extra: bool = False) -> Session | None:
        """Give a session; None if it is an extra one and the server has refused that.

        Raises what opening the first one raises.
        """
        while self._idle:
            session = self._idle.pop()
            if not session.is_closed:
                return session
            self._open -= 1
        if is_extra and self._open >= self.most:
            return None
        self._open += 1
        try:
            return await self._open_one()
        except XftpError as error:
            self._open -= 1
            if not is_extra or not self._open:
                raise
            if self.most > self._open:
                self.most = self._open
                self.notice(f"{error}; going on with {self._open} session(s)")
            return None
        except BaseException:
            self._open -= 1
            raise

    async def give_back(self, session: Session) -> None:
        """Take a session back; one that is closed is forgotten."""
        if session.is_closed:
            self._open -= 1
            await session.wait_closed()
        else:
            self._idle.append(session)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Have a session for a while."""
        session = await self.take()
        assert session is not None, "only an extra session can be refused silently"
        try:
            yield session
        except asyncio.CancelledError:
            session.close()
            raise
        finally:
            await self.give_back(session)

    async def close(self, *, politely: bool = True) -> None:
        """Close every session that is not in use."""
        idle, self._idle = self._idle, []
        self._open -= len(idle)
        if politely:
            await asyncio.gather(*(session.quit() for session in idle))
        else:
            await asyncio.gather(*(session.wait_closed() for session in idle))


class Work(Generic[Job]):
    """Jobs for the sessions of a pool; a job may add others."""

    def __init__(
        self,
        pool: SessionPool,
        do: Callable[[Session, Job], Awaitable[None]],
        failed: Callable[[Job, XftpError], None],
        *,
        most: int | None = None,
    ) -> None:
        """Prepare work; do: one job; failed: told of each job that could not be done;
        most: sessions to use at most."""
        self._pool, self._do, self._failed = pool, do, failed
        self._most = most
        self._waiting: deque[tuple[Job, int]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._busy = 0
        self._news = asyncio.Event()
        self._problem: BaseException | None = None
        self._is_stopped = False

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs."""
        self._waiting.extend((job, 0) for job in jobs)
        self._news.set()

    def stop(self) -> None:
        """Begin no further job; those that are being done go on to their end."""
        self._is_stopped = True
        self._waiting.clear()

    async def run(self) -> None:
        """Do all jobs. Raises what opening the only session raises."""
        try:
            while self._waiting or self._busy or self._workers:
                self._hire()
                if self._problem is not None:
                    raise self._problem
                self._news.clear()
                await self._news.wait()
            if self._problem is not None:
                raise self._problem
        finally:
            for worker in self._workers:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)

    def _hire(self) -> None:
        """Have as many workers as there is work for."""
        most = self._pool.most if self._most is None else min(self._most, self._pool.most)
        wanted = min(most, len(self._waiting) + self._busy)
        while len(self._workers) < max(wanted, 1 if self._waiting else 0):
            worker = asyncio.create_task(self._work(is_extra=bool(self._workers)))
            self._workers.add(worker)
            worker.add_done_callback(self._left)

    def _left(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._problem = self._problem or error
        self._news.set()

    async def _work(self, *, is_extra: bool) -> None:
        """Do jobs with one session as long as there are any."""
        session = await self._pool.take(is_extra=is_extra)
        if session is None:
            return
        try:
            while self._waiting and not session.is_closed:
                job, tries = self._waiting.popleft()
                self._busy += 1
                try:
                    await self._do(session, job)
                except XftpError as error:
                    self._judge(job, tries + 1, error, session)
                finally:
                    self._busy -= 1
                    self._news.set()
        except asyncio.CancelledError:
            session.close()
            raise
        finally:
            await self._pool.give_back(session)

    def _judge(self, job: Job, tries: int, error: XftpError, session: Session) -> None:
        """Try a job again if its session ended under it, else call it failed."""
        if session.is_closed and tries < TRIES and not self._is_stopped:
            self._waiting.append((job, tries))
        else:
            self._failed(job, error)
