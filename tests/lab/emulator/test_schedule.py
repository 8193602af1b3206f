"""Outages and delay steps as functions of time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.emulator.schedule import Schedule
from mininet_topos.links import DelayStep, Event, Outage


def schedule(*events: Event, started_s: float = 100.0) -> Schedule:
    return Schedule(events, delay_s=0.25, started_s=started_s)


def test_without_events_nothing_ever_happens() -> None:
    quiet = schedule()
    assert quiet.delay_s(1e9) == 0.25
    assert not quiet.loses(0, 1e9)
    assert quiet.held_until_s(107.0) == 107.0
    assert quiet.end_s(107.0, 2.0) == 109.0


def test_delay_steps_count_from_the_start_in_any_order() -> None:
    steps = schedule(DelayStep(at_s=20, delay_s=0.03), DelayStep(at_s=10, delay_s=0.05))
    assert [steps.delay_s(at_s) for at_s in (100, 109.999, 110, 119.999, 120, 1e6)] == [
        0.25,
        0.25,
        0.05,
        0.05,
        0.03,
        0.03,
    ]


@pytest.mark.parametrize(
    ("begin_s", "end_s", "lost"),
    [
        (109.0, 110.0, False),  # ends as the outage begins
        (109.0, 110.001, True),
        (110.0, 110.0, True),  # takes no time
        (110.2, 110.3, True),
        (110.499, 111.0, True),
        (110.5, 111.0, False),  # begins as the outage ends
        (110.5, 110.5, False),
        (109.0, 112.0, True),  # longer than the outage
        (125.1, 125.2, True),  # the next one
        (124.0, 124.9, False),
    ],
)
def test_a_transmission_that_meets_an_outage_is_lost(
    begin_s: float, end_s: float, lost: bool
) -> None:
    away = schedule(Outage(at_s=10, lasts_s=0.5, every_s=15))
    assert away.loses(begin_s, end_s) is lost
    assert away.held_until_s(begin_s) == begin_s


def test_an_outage_that_holds_pauses_the_transmitter() -> None:
    holding = schedule(Outage(at_s=10, lasts_s=0.5, every_s=15, holds=True))
    assert not holding.loses(110.0, 110.2)
    assert holding.held_until_s(109.9) == 109.9
    assert holding.held_until_s(110.0) == 110.5
    assert holding.end_s(109.9, 0.1) == pytest.approx(110.0)
    assert holding.end_s(109.9, 0.3) == pytest.approx(110.7)
    assert holding.end_s(109.9, 15.3) == pytest.approx(126.2)  # through the next one too


def test_outages_that_leave_no_gap_hold_for_good() -> None:
    halves = [Outage(at_s=at_s, lasts_s=0.5, every_s=1, holds=True) for at_s in (0, 0.5)]
    assert schedule(*halves).held_until_s(150.0) == math.inf


@settings(deadline=None)
@given(
    outages=st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 5), st.none() | st.integers(6, 30)),
        min_size=1,
        max_size=2,
    ),
    begin=st.integers(0, 60),
    lasts=st.integers(1, 40),
)
def test_a_transmission_ends_once_the_link_was_there_for_long_enough(
    outages: list[tuple[int, int, int | None]], begin: int, lasts: int
) -> None:
    """Compared with counting whole seconds."""

    def is_away(second: int) -> bool:
        return any(
            second >= at and (second - at if every is None else (second - at) % every) < length
            for at, length, every in outages
        )

    second, left = begin, lasts
    while left and second < 10_000:
        left -= not is_away(second)
        second += 1
    if left:
        return  # away for good: the test above
    holding = schedule(
        *(
            Outage(at_s=at, lasts_s=length, every_s=every, holds=True)
            for at, length, every in outages
        ),
        started_s=0.0,
    )
    assert holding.end_s(begin, lasts) == pytest.approx(second)
