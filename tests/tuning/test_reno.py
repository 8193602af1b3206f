"""Table A.1 of Allman 1997, event by event, and Marchese's ways to grow."""

from __future__ import annotations

import pytest

from tuning.errors import TuningError
from tuning.reno import (
    Event,
    Growth,
    k_per_ack,
    linear_to,
    one_per_ack,
    simulate,
    window_after_acks,
)

TABLE_A1 = """
 1 1        -        1    10  1-1
 2 2,3      2        2    10  2-3
 3 4,5      3        3    10  3-5
 4 6,7      4        4    10  4-7
 5 8,9      5        5    10  5-9
 6 10,11    6        6    10  6-11
 7 12,13    7        7    10  7-13
 8 14,15    8        8    10  8-15
 9 16,17    9        9    10  9-17
10 18,19    10       10   10  10-19
11 20       11       10   10  11-20
12 -        11(12)   10   10  11-20
13 -        11(13)   10   10  11-20
14 11       11(14)   8    5   11-20
15 -        11(15)   9    5   11-20
16 -        11(16)   10   5   11-20
17 -        11(17)   10   5   11-20
18 -        11(18)   10   5   11-20
19 -        11(19)   10   5   11-20
20 -        11(20)   10   5   11-20
21 21-25    21(11)   5    5   21-25
22 26       22       5.2  5   22-26
23 27       23       5.4  5   23-27
24 28       24       5.6  5   24-28
25 29       25       5.8  5   25-29
26 30,31    26       6    5   26-31
27 -        27       6.17 5   27-31
28 -        28       6.33 5   28-31
29 -        29       6.49 5   29-31
30 -        29(30)   6.64 5   29-31
31 -        29(31)   6.79 5   29-31
32 29       -        1    3.4 29-31
33 -        32(29)   2    3.4 -
"""
"""The table as printed: event, sent, acknowledgment (its trigger where it is not the segment before
it), cwnd, ssthresh, unacknowledged."""

ROWS = [line.split() for line in TABLE_A1.strip().splitlines()]


def as_printed(value: float, printed: str) -> str:
    """Round a number to as many decimals as the table prints."""
    return f"{value:.{len(printed.partition('.')[2])}f}"


def segments(sent: tuple[int, ...]) -> str:
    if not sent:
        return "-"
    return ",".join(map(str, sent)) if len(sent) < 3 else f"{sent[0]}-{sent[-1]}"


def acknowledgment(event: Event) -> str:
    if event.ack is None:
        return "-"
    ordinary = event.trigger == event.ack - 1
    return f"{event.ack}" if ordinary else f"{event.ack}({event.trigger})"


def test_table_a1() -> None:
    events = list(simulate(31, advertised_segments=10, lost=(11, 29)))
    assert len(events) == 33
    for event, row in zip(events, ROWS, strict=True):
        number, sent, ack, cwnd, ssthresh, unacknowledged = row
        outstanding = "{}-{}".format(*event.unacknowledged) if event.unacknowledged else "-"
        assert [
            segments(event.sent),
            acknowledgment(event),
            as_printed(event.cwnd_segments, cwnd),
            as_printed(event.ssthresh_segments, ssthresh),
            outstanding,
        ] == [sent, ack, cwnd, ssthresh, unacknowledged], f"event {number}"


def test_without_loss_every_segment_goes_once() -> None:
    events = list(simulate(500, advertised_segments=64))
    assert [s for event in events for s in event.sent] == list(range(1, 501))
    assert max(event.cwnd_segments for event in events) == 64


def test_a_larger_initial_window() -> None:
    first = next(simulate(100, advertised_segments=64, initial_window_segments=4))
    assert first.sent == (1, 2, 3, 4)


@pytest.mark.parametrize("lost", [{1}, {31}, {5, 6, 7, 8}, set(range(1, 32)), {30, 31}], ids=str)
def test_every_loss_is_repaired(lost: set[int]) -> None:
    events = list(simulate(31, advertised_segments=10, lost=lost))
    assert events[-1].ack == 32
    sent = [s for event in events for s in event.sent]
    assert all(sent.count(s) > 1 for s in lost)
    assert all(0 < event.cwnd_segments <= 10 for event in events)
    assert all(event.ssthresh_segments >= 2 for event in events)


@pytest.mark.parametrize(
    "arguments", [(0, 10, (), 1), (10, 0, (), 1), (10, 10, (), 0), (10**9, 10, (), 1)]
)
def test_refused(arguments: tuple[int, int, tuple[int, ...], int]) -> None:
    with pytest.raises(TuningError):
        simulate(*arguments)


@pytest.mark.parametrize(
    ("growth", "windows"),
    [
        (one_per_ack, [1, 2, 3, 4, 5, 6, 7]),
        (k_per_ack(4), [1, 5, 9, 13, 17, 21, 25]),
        (linear_to(10), [1, 2, 4, 7, 11, 12, 13]),  # eq. 4 up to thr, then one per ACK
        (linear_to(1000), [1, 2, 4, 7, 11, 16, 22]),
    ],
)
def test_marchese_growth(growth: Growth, windows: list[float]) -> None:
    assert [window_after_acks(n, growth) for n in range(7)] == windows
