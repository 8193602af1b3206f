"""What a transfer teaches about its path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.client.memory import KnownPath
from xftp.client.paths import (
    HEADROOM,
    HEADROOM_WHEN_FULL,
    RateMeter,
    learnt,
    supposed_rate_bps,
)

STEP_S = 0.1
RTT_S = 0.6
HEADERS = 1500 / 1448


def metered(rate: Callable[[float], float], seconds: float, least_s: float = 2.4) -> RateMeter:
    """Meter a transfer that moves rate(t) bytes per second at time t."""
    meter, total, now_s = RateMeter(least_s), 0.0, 0.0
    for _ in range(int(seconds / STEP_S) + 1):
        meter.note(now_s, int(total))
        total += rate(now_s) * STEP_S
        now_s += STEP_S
    return meter


def test_slow_start_and_the_end_do_not_count() -> None:
    meter = metered(lambda t: min(1e6, 1e4 * 2 ** (t / RTT_S)) if t < 18 else 0.0, 20)
    assert meter.best_bytes_per_s() == pytest.approx(1e6, rel=0.01)


def test_what_a_gap_held_back_does_not_make_it_fast() -> None:
    """Half a second of silence, and what was behind the gap is counted at once."""
    meter = metered(lambda t: 0.0 if t % 3 < 0.5 else 6e6 if t % 3 < 0.6 else 1e6, 12)
    assert meter.best_bytes_per_s() == pytest.approx(1e6, rel=0.25)


def test_a_short_transfer_tells_nothing() -> None:
    assert metered(lambda t: 1e6, 2.0).best_bytes_per_s() == 0
    assert RateMeter(1.0).best_bytes_per_s() == 0
    assert RateMeter(1.0).seconds == 0


def test_a_transfer_of_hours_takes_no_more_memory() -> None:
    meter = metered(lambda t: 1e6, 20_000)
    assert len(meter._samples) < 600
    assert meter.best_bytes_per_s() == pytest.approx(1e6, rel=0.01)


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 10**8)), max_size=80))
def test_the_rate_lies_between_none_and_the_fastest_step(steps: list[tuple[float, int]]) -> None:
    meter, now_s, total = RateMeter(0.5), 0.0, 0
    meter.note(now_s, total)
    for step_s, moved in steps:
        now_s, total = now_s + step_s, total + moved
        meter.note(now_s, total)
    fastest = max((moved / step_s for step_s, moved in steps), default=0.0)
    assert 0 <= meter.best_bytes_per_s() <= fastest * 1.001 + 1


# -- what is remembered ---------------------------------------------------------------------------


def teach(
    before: KnownPath | None,
    rate_bytes: float,
    seconds: float,
    *,
    rtt_s: float = RTT_S,
    asked_bps: float | None = None,
) -> KnownPath | None:
    meter = metered(lambda t: rate_bytes, seconds, least_s=4 * rtt_s)
    return learnt(before, meter, rtt_s, asked_bps, takes_windows=True)


def test_a_long_transfer_says_how_fast_the_path_is() -> None:
    known = teach(None, 6e6, 12)
    assert known is not None
    assert known.rate_bps == pytest.approx(6e6 * 8 * HEADERS, rel=0.01)
    assert known.rtt_s == RTT_S
    assert not known.was_full


def test_a_short_one_only_that_it_is_faster() -> None:
    assert teach(None, 6e6, 4) is None
    assert teach(KnownPath(80e6, RTT_S), 6e6, 4) is None
    known = teach(KnownPath(10e6, RTT_S), 6e6, 4)
    assert known is not None
    assert known.rate_bps > 40e6


def test_a_rate_that_was_reached_is_marked() -> None:
    known = teach(KnownPath(10e6, RTT_S), 1.5e6, 12, asked_bps=12.5e6)
    assert known is not None
    assert known.was_full


def test_another_round_trip_time_is_another_path() -> None:
    before = KnownPath(1e9, 0.05)
    known = teach(before, 6e6, 12)
    assert known is not None
    assert known.rate_bps == pytest.approx(6e6 * 8 * HEADERS, rel=0.01)  # not corrected by half
    assert supposed_rate_bps(before, RTT_S) is None


# -- what is asked --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "rtt_s", "factor"),
    [
        (None, RTT_S, None),
        (KnownPath(50e6, RTT_S), RTT_S, HEADROOM),
        (KnownPath(50e6, RTT_S, was_full=True), RTT_S, HEADROOM_WHEN_FULL),
        (KnownPath(50e6, RTT_S, takes_windows=False), RTT_S, None),
        (KnownPath(50e6, RTT_S), 1.1, HEADROOM),
        (KnownPath(50e6, RTT_S), 1.3, None),
        (KnownPath(50e6, RTT_S), 0.2, None),
        (KnownPath(50e6, RTT_S), None, None),
        (KnownPath(1e9, 0.001), 0.001, None),
    ],
)
def test_what_is_supposed(
    known: KnownPath | None, rtt_s: float | None, factor: float | None
) -> None:
    supposed = supposed_rate_bps(known, rtt_s)
    assert supposed == (None if factor is None else pytest.approx(50e6 * factor))


def test_a_path_ten_times_faster_is_found_out_in_a_few_transfers() -> None:
    """Each runs at what was asked, and lets the next ask for more."""
    known: KnownPath | None = KnownPath(5e6, RTT_S)
    for _ in range(6):
        asked_bps = supposed_rate_bps(known, RTT_S)
        assert asked_bps is not None
        rate_bytes = min(asked_bps, 50e6) / 8 / HEADERS
        known = teach(known, rate_bytes, 12, asked_bps=asked_bps)
    assert known is not None
    assert known.rate_bps > 45e6
