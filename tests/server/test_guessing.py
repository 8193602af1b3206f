"""The queue of password comparisons: fair between addresses, slow for each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from xftp.server import guessing
from xftp.server.guessing import GUESSES_PER_S, FairQueue, TooManyGuesses, address_block

from .support import until


@pytest.fixture
async def queue() -> Iterator[FairQueue]:  # type: ignore[misc]
    made = FairQueue()
    yield made
    made.close()


class Gate:
    """Comparisons that wait until they may end, and the order in which they began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open = threading.Event()

    def work(self, name: str) -> Callable[[], bool]:
        def compare() -> bool:
            self.begun.append(name)
            assert self.open.wait(20)
            return True

        return compare


async def test_results(queue: FairQueue) -> None:
    assert await queue.run("192.0.2.1", lambda: True) is True
    assert await queue.run("192.0.2.1", lambda: False) is False
    with pytest.raises(ZeroDivisionError):
        await queue.run("192.0.2.1", lambda: bool(1 / 0))
    assert await queue.run("192.0.2.1", lambda: True) is True


async def test_addresses_take_turns(queue: FairQueue) -> None:
    gate = Gate()
    flood = [asyncio.create_task(queue.run("192.0.2.1", gate.work("flood"))) for _ in range(15)]
    await until(lambda: len(gate.begun) == 1)
    others = [
        asyncio.create_task(queue.run(f"192.0.2.{host}", gate.work(f"other {host}")))
        for host in (2, 3)
    ]
    await asyncio.sleep(0)
    gate.open.set()
    await asyncio.gather(*others, *flood)
    assert gate.begun[:4] == ["flood", "flood", "other 2", "other 3"]
    assert gate.begun[4:] == ["flood"] * 13


async def test_an_address_that_waits_for_its_next_second_keeps_nobody_out(
    queue: FairQueue,
) -> None:
    flood = [asyncio.create_task(queue.run("192.0.2.1", lambda: True)) for _ in range(40)]
    await until(lambda: sum(task.done() for task in flood) >= GUESSES_PER_S)
    assert sum(task.done() for task in flood) == GUESSES_PER_S
    assert await queue.run("192.0.2.2", lambda: True)
    assert sum(task.done() for task in flood) == GUESSES_PER_S
    await asyncio.gather(*flood)


async def test_no_second_has_more_guesses_than_allowed(
    queue: FairQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []
    compared: list[float] = []
    noting = guessing._Queue.note

    def note(counted: guessing._Queue, now: float) -> None:
        begun.append(now)
        noting(counted, now)

    def compare() -> bool:
        compared.append(time.monotonic())
        return False

    monkeypatch.setattr(guessing._Queue, "note", note)
    await asyncio.gather(*(queue.run("192.0.2.1", compare) for _ in range(2 * GUESSES_PER_S + 1)))
    gaps = [late - early for early, late in zip(begun, begun[GUESSES_PER_S:], strict=False)]
    assert len(gaps) == GUESSES_PER_S + 1
    assert min(gaps) > 0.999
    # A thread may begin later than it was counted, never earlier.
    assert all(late > early - 0.001 for early, late in zip(begun, compared, strict=True))
    assert begun[GUESSES_PER_S - 1] - begun[0] < 1.0  # but a few at once need not wait


async def test_too_many_waiting_are_refused_at_once() -> None:
    gate = Gate()
    queue = FairQueue(waiting_per_address=3, waiting_in_all=5)
    tasks = [asyncio.create_task(queue.run("192.0.2.1", gate.work("1"))) for _ in range(4)]
    await until(lambda: len(gate.begun) == 1)
    with pytest.raises(TooManyGuesses):
        await queue.run("192.0.2.1", gate.work("1"))
    tasks += [asyncio.create_task(queue.run("192.0.2.2", gate.work("2"))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyGuesses):
        await queue.run("192.0.2.3", gate.work("3"))
    gate.open.set()
    assert all(await asyncio.gather(*tasks))
    assert await queue.run("192.0.2.3", lambda: True)
    queue.close()


async def test_who_leaves_gives_up_the_place() -> None:
    gate = Gate()
    queue = FairQueue(waiting_per_address=1)
    first = asyncio.create_task(queue.run("192.0.2.1", gate.work("first")))
    await until(lambda: len(gate.begun) == 1)
    second = asyncio.create_task(queue.run("192.0.2.1", gate.work("second")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(queue.run("192.0.2.1", gate.work("third")))
    await asyncio.sleep(0)
    gate.open.set()
    assert await asyncio.gather(first, third) == [True, True]
    assert gate.begun == ["first", "third"]
    queue.close()


async def test_close_lets_nobody_wait() -> None:
    gate = Gate()
    queue = FairQueue()
    tasks = [asyncio.create_task(queue.run("192.0.2.1", gate.work("x"))) for _ in range(3)]
    await until(lambda: len(gate.begun) == 1)
    queue.close()
    done, _ = await asyncio.wait(tasks[1:], timeout=5)
    assert len(done) == 2
    gate.open.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert gate.begun == ["x"]


@pytest.mark.parametrize(
    ("host", "block"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(host: str, block: str) -> None:
    assert address_block(host) == block
