"""How many connections are fed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.transport.feeding import (
    LAST_PATIENCE,
    LEAST_PERIOD_S,
    PERIOD_RTTS,
    SEGMENT_BYTES,
    FeedPolicy,
    FeedSample,
)

STEP_S = 0.1


def course(
    policy: FeedPolicy,
    rate: Callable[[int], float],
    again: Callable[[int], float] = lambda fed: 0.0,
    *,
    opened: int = 8,
    seconds: float = 60.0,
    rtt_s: float = 0.01,
) -> list[int]:
    """Let a policy decide on a path; give the limit after each sample.

    rate: bytes per second that so many connections carry together; again: share of the segments
    that they send again.
    """
    now_s = delivered = sent_again = 0.0
    limits = []
    for _ in range(int(seconds / STEP_S)):
        sample = FeedSample(now_s, opened, int(delivered), int(sent_again), rtt_s)
        limits.append(policy.note(sample))
        fed = min(policy.limit, opened)
        now_s += STEP_S
        delivered += rate(fed) * STEP_S
        sent_again += rate(fed) * STEP_S * again(fed) / SEGMENT_BYTES
    return limits


def test_each_connection_that_carries_more_is_fed() -> None:
    """Windows that bound each connection: the sum grows with every one (Allman equation 2.2)."""
    assert course(FeedPolicy(1), lambda fed: fed * 1e6)[-1] == 8


def test_no_more_than_what_pays() -> None:
    """Four fill the link: a fifth is tried now and then, and dropped."""
    limits = course(FeedPolicy(4), lambda fed: min(fed, 4) * 1e6, seconds=200)
    assert set(limits) == {4, 5, 3} or set(limits) == {4, 5}
    half = limits[len(limits) // 2 :]
    assert half.count(4) > 0.9 * len(half)


def test_a_path_that_becomes_wider_is_found_out() -> None:
    policy = FeedPolicy(2)
    opens_at_s, samples_seen = 30.0, 0

    def rate(fed: int) -> float:
        nonlocal samples_seen
        samples_seen += 1
        is_wide = samples_seen * STEP_S / 2 > opens_at_s
        return (fed if is_wide else min(fed, 2)) * 1e6

    assert course(policy, rate, seconds=150)[-1] == 8


def test_where_more_is_sent_again_fewer_are_fed() -> None:
    """Together they overrun a queue that five would not (Allman 1997 figure 2.6)."""
    limits = course(
        FeedPolicy(8),
        lambda fed: 5e6 if fed <= 5 else 4e6,
        lambda fed: 0.0 if fed <= 5 else 0.01 * 4 ** (fed - 5),
        seconds=120,
    )
    assert min(limits[-300:]) >= 4
    assert max(limits[-300:]) <= 7
    assert limits[-1] < 8


def test_losses_of_the_link_itself_leave_the_number_as_it_is() -> None:
    """They come with any number: the share did not double."""
    policy = FeedPolicy(8)
    limits = course(policy, lambda fed: fed * 1e5, lambda fed: 0.05, seconds=60)
    assert limits[-1] >= 7


def test_a_long_path_is_given_time() -> None:
    policy = FeedPolicy(4)
    limits = course(policy, lambda fed: fed * 1e6, rtt_s=0.6, seconds=4 * 0.6)
    assert set(limits) == {4}


def test_more_are_never_fed_than_there_are() -> None:
    policy = FeedPolicy(8)
    assert policy.note(FeedSample(0.0, 3, 0, 0, 0.0)) == 3
    assert course(policy, lambda fed: fed * 1e6, opened=3)[-1] == 3


@pytest.mark.parametrize("begin", [0, -3])
def test_one_at_least(begin: int) -> None:
    assert FeedPolicy(begin).limit == 1


@st.composite
def samples(draw: st.DrawFn) -> Iterable[FeedSample]:
    now_s, delivered, again, taken = 0.0, 0, 0, []
    for _ in range(draw(st.integers(1, 60))):
        now_s += draw(st.floats(0, 5))
        delivered += draw(st.integers(0, 10**9))
        again += draw(st.integers(0, 10**5))
        opened, rtt_s = draw(st.integers(0, 64)), draw(st.floats(0, 2))
        taken.append(FeedSample(now_s, opened, delivered, again, rtt_s))
    return taken


@given(st.integers(1, 64), samples())
def test_whatever_is_seen_the_number_stays_within_bounds(
    begin: int, taken: Iterable[FeedSample]
) -> None:
    policy = FeedPolicy(begin)
    before, changed_s = policy.limit, None
    for sample in taken:
        limit = policy.note(sample)
        assert limit == policy.limit
        assert 1 <= limit <= max(begin, 64)
        if sample.opened >= 1:
            assert limit <= max(sample.opened, 1)
            if before <= sample.opened:
                assert abs(limit - before) <= 1
                if limit != before and changed_s is not None:
                    least_s = max(LEAST_PERIOD_S, PERIOD_RTTS * sample.rtt_s)
                    assert sample.now_s - changed_s >= least_s - 1e-9
        if limit != before:
            changed_s = sample.now_s
        before = limit


def test_patience_has_an_end() -> None:
    """However often a trial failed, another comes."""
    limits = course(FeedPolicy(4), lambda fed: 4e6, seconds=600)
    period_s = LEAST_PERIOD_S + STEP_S
    assert len(set(limits[-int(2 * (LAST_PATIENCE + 8) * period_s / STEP_S) :])) > 1
