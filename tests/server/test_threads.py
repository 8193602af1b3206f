"""File work is shared out fairly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from xftp.server.threads import FairThreads

from .support import until


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What the work waits for; opened at the end whatever happens."""
    gate = threading.Event()
    yield gate
    gate.set()


async def test_results_and_errors() -> None:
    threads = FairThreads()
    assert await threads.run("a", lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await threads.run("a", lambda: 1 // 0)
    assert await threads.run("a", lambda: 6) == 6
    threads.close()


async def test_one_address_leaves_threads_to_others(gate: threading.Event) -> None:
    threads = FairThreads(count=4, per_address=2)
    stuck = [threads.run("a", gate.wait) for _ in range(50)]
    assert await threads.run("b", lambda: "through") == "through"
    assert not any(each.done() for each in stuck)
    gate.set()
    assert all(await asyncio.gather(*stuck))
    threads.close()


async def test_addresses_take_turns(gate: threading.Event) -> None:
    threads = FairThreads(count=1, per_address=1)
    order: list[str] = []
    first = threads.run("x", gate.wait)
    jobs = [threads.run("a", lambda: order.append("a")) for _ in range(3)]
    jobs += [threads.run("b", lambda: order.append("b")) for _ in range(3)]
    gate.set()
    await asyncio.gather(first, *jobs)
    assert order == ["a", "b"] * 3
    threads.close()


async def test_who_left_does_not_disturb() -> None:
    threads = FairThreads(count=1)
    began, go_on = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go_on.wait()

    job = threads.run("a", work)
    await until(began.is_set)
    job.cancel()
    go_on.set()
    assert await threads.run("a", lambda: "next") == "next"
    threads.close()


async def test_closed_while_work_waits(gate: threading.Event) -> None:
    threads = FairThreads(count=1)
    running = threads.run("a", gate.wait)
    waiting = threads.run("a", lambda: None)
    threads.close()
    assert waiting.cancelled()
    gate.set()
    assert await running
