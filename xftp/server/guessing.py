"""Passwords are compared one at a time, each address in its turn, and no address too often.

A comparison costs tens of milliseconds on purpose. Whoever guesses as fast as the line takes it
must not keep others waiting: every address has a queue of its own, the queues take turns, and an
address that has had its share of a second waits for the next.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from xftp.errors import ConnectError

GUESSES_PER_S = 20
"""Comparisons for one address in any second."""

WAITING_PER_ADDRESS = 64
"""Comparisons that one address may have in its queue; more are refused."""

WAITING_IN_ALL = 4096
"""The same of all addresses together."""

_IPV6_PREFIX_BITS = 64
"""Whoever has one address of such a network has them all (RFC 4291 section 2.5.4)."""


class TooManyGuesses(ConnectError):
    """More passwords are to be compared than it makes sense to wait for: 421."""


def address_block(host: str) -> str:
    """Give what counts as one address: an IPv4 address, or a network of IPv6 ones."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX_BITS), strict=False))


@dataclass(slots=True, eq=False)
class _Job:
    """One comparison that waits for its turn."""

    work: Callable[[], bool]
    result: asyncio.Future[bool]


class _Queue:
    """What one address waits for, and when it was served."""

    def __init__(self, per_second: int) -> None:
        self.jobs: deque[_Job] = deque()
        self._begun_at: deque[float] = deque(maxlen=per_second)

    def ready_at(self) -> float:
        """Tell from when on the next comparison may begin."""
        is_full = len(self._begun_at) == self._begun_at.maxlen
        return self._begun_at[0] + 1.0 if is_full else 0.0

    def note(self, now: float) -> None:
        """Note that a comparison begins."""
        self._begun_at.append(now)

    def is_forgotten(self, now: float) -> bool:
        """Tell whether nothing waits, and nothing was served that still counts."""
        return not self.jobs and (not self._begun_at or self._begun_at[-1] + 1.0 <= now)


class FairQueue:
    """Runs comparisons in threads: round robin over addresses, each at its limited rate.

    An address has one thread at a time.
    """

    def __init__(
        self,
        per_second: int = GUESSES_PER_S,
        waiting_per_address: int = WAITING_PER_ADDRESS,
        waiting_in_all: int = WAITING_IN_ALL,
        threads: int = 1,
    ) -> None:
        self._most_threads = threads
        self._per_second = per_second
        self._waiting_per_address = waiting_per_address
        self._waiting_in_all = waiting_in_all
        self._queues: OrderedDict[str, _Queue] = OrderedDict()
        self._waiting = 0
        self._threads: ThreadPoolExecutor | None = None
        self._running: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, host: str, work: Callable[[], bool]) -> bool:
        """Run `work` in a thread when it is the turn of `host`; give its result.

        Raises TooManyGuesses at once if the queue of this address, or all together, are full.
        """
        address = address_block(host)
        queue = self._queues.setdefault(address, _Queue(self._per_second))
        if len(queue.jobs) >= self._waiting_per_address or self._waiting >= self._waiting_in_all:
            raise TooManyGuesses("Too many logins at once, try again later")
        job = _Job(work, asyncio.get_running_loop().create_future())
        queue.jobs.append(job)
        self._waiting += 1
        self._next()
        try:
            return await job.result
        finally:
            if job in queue.jobs:  # who waited has left
                queue.jobs.remove(job)
                self._waiting -= 1

    def close(self) -> None:
        """Do nothing more; a comparison that runs comes to its end."""
        if self._timer is not None:
            self._timer.cancel()
        for queue in self._queues.values():
            for job in queue.jobs:
                job.result.cancel()
        self._queues.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _next(self) -> None:
        """Begin the next comparisons for which there are threads."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._forget(now)
        waiting = [
            (queue.ready_at(), address)
            for address, queue in self._queues.items()
            if queue.jobs and address not in self._running
        ]
        for at, address in waiting:
            if at <= now and len(self._running) < self._most_threads:
                self._begin(address, now)
        later = [at for at, _ in waiting if at > now]
        if later and len(self._running) < self._most_threads:
            self._timer = loop.call_at(min(later), self._next)

    def _begin(self, address: str, now: float) -> None:
        queue = self._queues[address]
        self._queues.move_to_end(address)  # the others come first next time
        queue.note(now)
        job = queue.jobs.popleft()
        self._waiting -= 1
        self._running.add(address)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most_threads, "passwords")
        running = asyncio.get_running_loop().run_in_executor(self._threads, job.work)

        def ended(running: asyncio.Future[bool]) -> None:
            self._running.discard(address)
            if running.cancelled():
                job.result.cancel()
                return
            error = running.exception()
            if not job.result.done():
                if error is not None:
                    job.result.set_exception(error)
                else:
                    job.result.set_result(running.result())
            self._next()

        running.add_done_callback(ended)

    def _forget(self, now: float) -> None:
        """Forget addresses of which nothing counts any more."""
        for address in [each for each, queue in self._queues.items() if queue.is_forgotten(now)]:
            del self._queues[address]
