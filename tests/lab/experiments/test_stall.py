"""The longest time without progress."""

from __future__ import annotations

import pytest

from mininet_topos.experiments.measures import longest_stall
from mininet_topos.experiments.outcome import FlowOutcome, Outcome


def outcome(history: list[list[float]]) -> Outcome:
    flow = FlowOutcome(
        kind="Xftp",
        command="",
        started_s=0.0,
        seconds=1.0,
        data_s=1.0,
        bytes=1,
        history=history,
    )
    return Outcome(series="a", x=0, flows={"file": flow})


def rows(*acked: float) -> list[list[float]]:
    return [[n / 10, each, 1, 0, 1] for n, each in enumerate(acked)]


def test_waiting_before_the_first_and_after_the_last_byte_is_no_stall() -> None:
    stalled = outcome(rows(0, 0, 0, 0, 5, 6, 6, 6, 9, 10, 10, 10, 10, 10))
    assert longest_stall()(stalled) == pytest.approx(0.3)


@pytest.mark.parametrize("acked", [(), (0,), (0, 0, 5, 5)])
def test_without_two_steps_there_is_none(acked: tuple[float, ...]) -> None:
    assert longest_stall()(outcome(rows(*acked))) is None
