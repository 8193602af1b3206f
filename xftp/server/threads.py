"""Threads for file work, shared out fairly: each address in its turn.

Listing a large directory takes a good part of a second. Whoever asks for listings in all of his
sessions waits for himself, and not everybody else with him.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .guessing import address_block

T = TypeVar("T")

THREADS = 8
"""Enough to keep a disk busy; more would only wait for each other."""

THREADS_PER_ADDRESS = 4

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class FairThreads:
    """Runs work in threads, round robin over addresses."""

    def __init__(self, count: int = THREADS, per_address: int = THREADS_PER_ADDRESS) -> None:
        self._count = count
        self._per_address = per_address
        self._queues: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._executor: ThreadPoolExecutor | None = None

    def run(self, host: str, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` when it is the turn of `host`; the future has what it gives or raises."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(address_block(host), deque()).append((work, result))
        self._begin()
        return result

    def close(self) -> None:
        """Begin nothing more; what runs comes to its end."""
        for queue in self._queues.values():
            for _, result in queue:
                result.cancel()
        self._queues.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None

    def _begin(self) -> None:
        """Begin as much as there are threads for."""
        while self._running.total() < self._count:
            address = self._next()
            if address is None:
                return
            self._start(address, *self._take(address))

    def _next(self) -> str | None:
        """Give the address whose turn it is, if any may begin something."""
        return next((a for a in self._queues if self._running[a] < self._per_address), None)

    def _take(self, address: str) -> _Job:
        queue = self._queues[address]
        job = queue.popleft()
        if queue:
            self._queues.move_to_end(address)  # the others come first next time
        else:
            del self._queues[address]
        return job

    def _start(self, address: str, work: Callable[[], Any], result: asyncio.Future[Any]) -> None:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._count, thread_name_prefix="files")
        self._running[address] += 1
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)

        def ended(running: asyncio.Future[Any]) -> None:
            self._running[address] -= 1
            if not self._running[address]:
                del self._running[address]
            _hand_over(running, result)
            self._begin()

        running.add_done_callback(ended)


def _hand_over(running: asyncio.Future[Any], result: asyncio.Future[Any]) -> None:
    if running.cancelled():
        result.cancel()
        return
    error = running.exception()
    if result.done():
        return
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(running.result())
