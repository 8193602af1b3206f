"""Which runs may go side by side."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mininet_topos.running.schedule import Capacity, makespan_s


@dataclass(frozen=True)
class Job:
    name: str
    cores: float = 0.5
    seconds: float = 10.0
    alone: bool = False


TWO_CORES: Capacity[Job] = Capacity(1.6)


def test_the_longest_that_fits_goes_first() -> None:
    short, long, wide = Job("short"), Job("long", seconds=20), Job("wide", cores=1.5, seconds=30)
    assert TWO_CORES.startable([short, wide, long], []) is wide
    assert TWO_CORES.startable([short, long], [wide]) is None
    assert TWO_CORES.startable([short, wide, long], [Job("r")]) is long


def test_one_that_is_too_large_for_the_machine_runs_by_itself() -> None:
    huge = Job("huge", cores=5)
    assert TWO_CORES.startable([huge], []) is huge
    assert TWO_CORES.startable([huge], [Job("r", cores=0.1)]) is None


def test_alone_means_last_and_alone() -> None:
    again, other = Job("again", alone=True), Job("other")
    assert TWO_CORES.startable([again, other], []) is other
    assert TWO_CORES.startable([again], [other]) is None
    assert TWO_CORES.startable([again], []) is again
    assert TWO_CORES.startable([other], [again]) is None


def test_at_most_so_many_at_once() -> None:
    one: Capacity[Job] = Capacity(16, most_at_once=1)
    assert one.startable([Job("a")], [Job("b")]) is None
    assert one.startable([Job("a")], []) == Job("a")


def test_nothing_waits() -> None:
    assert TWO_CORES.startable([], []) is None


@pytest.mark.parametrize(
    ("jobs", "expected_s"),
    [
        ([], 0),
        ([Job(str(n)) for n in range(3)], 10),
        ([Job(str(n)) for n in range(4)], 20),
        ([Job("a", seconds=20), Job("b"), Job("c"), Job("d")], 20),
        ([Job("a"), Job("again", alone=True)], 20),
    ],
)
def test_makespan(jobs: list[Job], expected_s: float) -> None:
    assert makespan_s(jobs, TWO_CORES) == expected_s
