"""What every transfer has: connections that come and end, a watch for stalls, one outcome.

The event loop calls back when a socket is ready; nothing here waits for one connection while
another could go on (Allman 1997 section 2.3). File work runs in worker threads.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from xftp.errors import FileError, TransferAborted

from .channels import OPEN_TIMEOUT_S, DataChannel
from .connection import DataConnection
from .disk import Patience
from .ratelimit import RateLimit
from .report import TransferReport, connection_report

STALL_TIMEOUT_S = 60.0
"""Without a byte moved for this long a transfer fails."""

T = TypeVar("T")

LOOK_S = 0.1
"""How often connections are asked how they fare."""

_DRAIN_CHECK_S = 0.001
_DRAIN_CHECKS_PER_RTT = 16

Progress = Callable[[int, int], None]
"""Called with (connection number, bytes of the file moved just now)."""


class Transfer:
    """One file over the connections of one channel. Subclasses move the bytes.

    limit: on the rate of the whole transfer; progress: told of every piece moved.
    """

    framed = False

    def __init__(
        self,
        channel: DataChannel,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.open_timeout_s = OPEN_TIMEOUT_S
        self.stall_timeout_s = STALL_TIMEOUT_S
        self.file_bytes = 0
        self.seconds = 0.0
        """How long `run` took, if it was good."""
        self._channel = channel
        self._limit = limit
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[None] = self._loop.create_future()
        self._connections: list[DataConnection] = []
        self._moved_at = self._loop.time()
        self._started_at = time.monotonic()
        self._jobs: set[asyncio.Future[Any]] = set()
        self._reading: dict[DataConnection, Callable[[], None]] = {}
        self._reading_on: set[DataConnection] = set()
        self._reset: set[DataConnection] = set()
        self.confirmation_timeout_s: float | None = None
        """How long the peer's final reply may take once all has moved; None: it has none to give.
        """
        self.whole = asyncio.Event()
        """Set once everything is known to have arrived, which may be before the end of `run`."""
        self.linger: Callable[[DataConnection], object] | None = None
        """Takes connections over when a file on this side is the trouble (see `lingering`)."""
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def has_failed(self) -> bool:
        """Whether `run` is about to raise."""
        outcome = self._outcome
        return outcome.done() and (outcome.cancelled() or outcome.exception() is not None)

    async def run(self) -> None:
        """Move the file. Raises XftpError; then connections are reset, never closed politely."""
        try:
            await self._channel.wait_for_first(self.open_timeout_s)
            self._moved_at = self._loop.time()
            self._started_at = time.monotonic()  # uvloop's clock has milliseconds only
            self._watch_for_stall()
            self._watch_connections()
            self._channel.subscribe(self._take_in, self._settled, self._make_room)
            await self._outcome
            self.seconds = time.monotonic() - self._started_at
        except BaseException as error:
            self._stop()
            self._channel.close()
            try:  # a thread may be about to use a socket: its number must not be another's yet
                await self._finish_jobs()
            finally:
                for connection in self._connections:
                    if self.linger is not None and isinstance(error, FileError):
                        self.linger(connection)
                    else:
                        connection.reset()
            raise
        self._stop()
        self._end_connections()
        await self._finish_jobs()

    def confirm(self) -> None:
        """Take the peer's word that nothing is missing: its positive final reply."""

    @property
    def connection_count(self) -> int:
        """Data connections that came so far."""
        return len(self._channel.connections)

    def arrived_bytes(self) -> int | None:
        """Count what came here, and what was sent and is known to have arrived there.

        None before the first connection.
        """
        connections = self._channel.connections
        if not connections:
            return None
        return sum(
            each.bytes_received
            + each.bytes_sent
            - (each.unacknowledged() if each.fileno() >= 0 else 0)
            for each in connections
        )

    def report(self, offset: int = 0) -> TransferReport:
        """Tell what happened, after `run`."""
        return TransferReport(
            bytes=self.file_bytes,
            seconds=self.seconds,
            framed=self.framed,
            connections=tuple(connection_report(each) for each in self._channel.connections),
            offset=offset,
        )

    # -- for subclasses ------------------------------------------------------------------------

    def _start(self, connection: DataConnection) -> None:
        """Begin to use a connection."""
        raise NotImplementedError

    def _settled(self) -> None:
        """Note that no further connection will come."""

    def _make_room(self) -> bool:
        """Give up a connection that is dead, since one too many came; tell whether there was."""
        return False

    def _look(self) -> None:
        """See how the connections fare, every LOOK_S."""

    def _end_connections(self) -> None:
        """Part with the connections after a transfer that went well."""
        self._channel.close()
        for connection in self._connections:
            connection.close()

    def _done(self) -> None:
        """End the transfer well."""
        self.whole.set()
        if not self._outcome.done():
            self._outcome.set_result(None)

    def _fail(self, error: Exception) -> None:
        """End the transfer badly."""
        if not self._outcome.done():
            self._outcome.set_exception(error)

    def _broken(self, connection: DataConnection, error: OSError) -> None:
        """End the transfer because a connection broke."""
        reason = error.strerror or str(error)
        self._fail(TransferAborted(f"data connection {connection.number} broke: {reason}"))

    def _moved(self, connection: DataConnection, file_bytes: int) -> None:
        """Account for `file_bytes` bytes of the file that a connection moved."""
        self._moved_at = self._loop.time()
        self._account(connection, file_bytes)

    def _account(self, connection: DataConnection, file_bytes: int) -> None:
        """Count `file_bytes` bytes of the file, and tell of them."""
        self.file_bytes += file_bytes
        if self._progress is not None:
            self._progress(connection.number, file_bytes)

    def _in_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run blocking `work` in a thread, then `then(result)` in the loop, unless all is over."""
        job = self._loop.run_in_executor(None, work)
        self._jobs.add(job)

        def finished(job: asyncio.Future[Any]) -> None:
            self._jobs.discard(job)
            error = None if job.cancelled() else job.exception()
            if job.cancelled() or self._outcome.done():
                return
            if isinstance(error, Exception):
                self._fail(error)
            elif error is not None:
                raise error
            else:
                self._guard(then, job.result())

        job.add_done_callback(finished)

    def _work(
        self, patience: Patience | None, work: Callable[[], T], then: Callable[[T], None]
    ) -> T | None:
        """Do blocking `work` now if `patience` allows it, and give its result.

        Otherwise give None; it is done in a thread, and then `then(result)` in the loop.
        """
        started = self._loop.time()
        if patience is None or not patience.allows(started):
            self._in_thread(work, then)
            return None
        result = work()
        ended = self._loop.time()
        patience.took(ended - started, ended)
        return result

    def _guard(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run a step of the data path; what it raises is the transfer's end."""
        if self._outcome.done():
            return
        try:
            work(*arguments)
        except Exception as error:  # whatever it is, it is raised again by run()
            self._fail(error)

    def _later(self, delay_s: float, work: Callable[..., None], *arguments: Any) -> None:
        """Run a step of the data path after `delay_s` seconds."""
        handle: asyncio.TimerHandle

        def due() -> None:
            self._timers.discard(handle)
            self._guard(work, *arguments)

        handle = self._loop.call_later(delay_s, due)
        self._timers.add(handle)

    def _when_readable(
        self, connection: DataConnection, work: Callable[..., None], *arguments: Any
    ) -> None:
        def ready() -> None:
            self._guard(work, *arguments)
            if connection in self._reset and connection in self._reading:
                self._watch_anew(connection)
            self._read_on(connection)

        if connection in self._reading:  # uvloop's watch is of no more use if it met an error
            self._loop.remove_reader(connection.fileno())
        self._reading[connection] = ready
        self._loop.add_reader(connection.fileno(), ready)
        self._read_on(connection)

    def _read_on(self, connection: DataConnection) -> None:
        """Call back, once, for what was received already and the event loop cannot see."""
        if connection.holds_received and connection not in self._reading_on:
            self._reading_on.add(connection)
            self._later(0, self._received_before, connection)

    def _received_before(self, connection: DataConnection) -> None:
        self._reading_on.discard(connection)
        if connection in self._reading:
            self._reading[connection]()

    def _watch_anew(self, connection: DataConnection) -> None:
        """Let the loop call back once more for a connection that was reset.

        uvloop calls once when that happens and never again, whatever is left to receive before
        the error is seen.
        """
        self._loop.remove_reader(connection.fileno())
        self._loop.add_reader(connection.fileno(), self._reading[connection])

    def _stop_reading(self, connection: DataConnection) -> None:
        if self._reading.pop(connection, None) is not None:
            self._loop.remove_reader(connection.fileno())

    def _when_writable(
        self, connection: DataConnection, work: Callable[..., None], *arguments: Any
    ) -> None:
        self._loop.remove_writer(connection.fileno())  # for the same reason
        self._loop.add_writer(connection.fileno(), self._guard, work, *arguments)

    async def _wait_for(self, work: Callable[[], Any]) -> None:
        """Run blocking `work` in a thread, to its end even if the transfer is aborted."""
        job = self._loop.run_in_executor(None, work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        try:
            await asyncio.shield(job)
        except BaseException:
            await self._finish_jobs()
            raise

    @property
    def _stall_limit_s(self) -> float:
        """How long nothing may move."""
        return self.stall_timeout_s

    def _stall_error(self, limit_s: float) -> TransferAborted:
        """Say that nothing moved for too long."""
        return TransferAborted(f"no data moved for {limit_s:g} s")

    # -- inside --------------------------------------------------------------------------------

    def _take_in(self, connection: DataConnection) -> None:
        self._connections.append(connection)
        self._guard(self._start, connection)

    def _watch_connections(self) -> None:
        for connection in tuple(self._reading):
            if connection not in self._reset and connection.is_reset():
                self._reset.add(connection)
                self._watch_anew(connection)
        self._look()
        self._later(LOOK_S, self._watch_connections)

    def _watch_for_stall(self) -> None:
        idle_s, limit_s = self._loop.time() - self._moved_at, self._stall_limit_s
        if idle_s >= limit_s:
            self._fail(self._stall_error(limit_s))
        else:
            self._later(max(0.01, limit_s - idle_s), self._watch_for_stall)

    def _stop(self) -> None:
        for handle in self._timers:
            handle.cancel()
        self._timers.clear()
        for connection in self._connections:
            if connection.fileno() >= 0:
                self._stop_reading(connection)
                self._loop.remove_writer(connection.fileno())

    async def _finish_jobs(self) -> None:
        """Wait for the threads that still use the file and the buffers."""
        if not self._outcome.done():
            self._outcome.cancel()
        elif not self._outcome.cancelled():
            self._outcome.exception()  # it was raised already, or another error came first
        while self._jobs:
            await asyncio.wait(self._jobs)


class Sender(Transfer):
    """The end that all senders share.

    'Sent' means that the peer's kernel has acknowledged it, not that ours has taken it.
    """

    def _finish(self, connection: DataConnection) -> None:
        """Close our half of a connection that has nothing more to send, and see it arrive."""
        self._loop.remove_writer(connection.fileno())
        try:
            if not connection.finish_sending():
                self._when_writable(connection, self._finish, connection)
                return
            waiting = connection.unacknowledged()
        except OSError as error:
            self._broken(connection, error)
            return
        self._check_drained(connection, waiting, _DRAIN_CHECK_S)

    def _check_drained(self, connection: DataConnection, before: int, again_s: float) -> None:
        problem = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            self._broken(connection, OSError(problem, os.strerror(problem)))
            return
        waiting = connection.unacknowledged()
        if not waiting:
            self._drained(connection)
            return
        if waiting < before:
            self._moved(connection, 0)
        state = connection.state()
        slowest = max(_DRAIN_CHECK_S, (state.rtt_s if state else 0) / _DRAIN_CHECKS_PER_RTT)
        self._later(again_s, self._check_drained, connection, waiting, min(2 * again_s, slowest))

    def _drained(self, connection: DataConnection) -> None:
        """Note that a connection has delivered everything it was given."""
        raise NotImplementedError
