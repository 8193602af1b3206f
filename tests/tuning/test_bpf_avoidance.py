"""Congestion avoidance of every program, and what a loss does to its window."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from bench.emulated_path import Link, long_link
from tuning.congestion import ParameterMap, Parameters
from tuning.tcp_info import RecoveryState, TcpInfo

from .bpf_support import needs_bpf
from .laws import check_law
from .transfers import Observed, transfer

pytestmark = needs_bpf

START = 10
"""Initial window and threshold: congestion avoidance from the first ACK on."""

ROUND_TRIPS = 20

STANDARD = (
    "xftp_abc",
    "xftp_adalr",
    "xftp_crate",
    "xftp_hybla",
    "xftp_incbyk",
    "xftp_kack",
    "xftp_linthr",
    "xftp_reno97",
)


Growth = Callable[[TcpInfo], float]
"""Segments per round trip, given what is known."""


def constant(segments: float) -> Growth:
    return lambda info: segments


def constant_rate(c: int) -> Growth:
    return lambda info: c * info.rtt_s**2


def hybla(info: TcpInfo) -> float:
    assert info.min_rtt_s is not None
    return (info.min_rtt_s / 0.05) ** 2


def adalr(info: TcpInfo) -> float:
    return math.sqrt(60 * info.rtt_s) / 2


def grown(
    link: Link, name: str, told: dict[str, float], parameter_map: ParameterMap, rtt_s: float
) -> Observed:
    parameters = Parameters(
        initial_window_segments=START,
        ssthresh_segments=START,
        **told,  # type: ignore[arg-type]
    )
    end_s = (ROUND_TRIPS + 0.5) * rtt_s
    return transfer(link, name, parameters, parameter_map, until=lambda at, info: at > end_s)


def check_growth(seen: Observed, per_rtt: Growth) -> None:
    """An ACK adds per_rtt / cwnd, so that a round trip adds per_rtt, if each segment gets an ACK.

    An idle machine hands some segments to the receiver in pairs, which get one ACK.
    """
    check_law(
        seen,
        lambda window, number, info: window + min(per_rtt(info) / int(window), 1),
        tolerance=0.05,
    )
    end_s, last = seen.samples[-1]
    round_trips = int(end_s / seen.mean_rtt_s)
    acks_per_segment = seen.acks(last) / seen.delivered(last)
    per_round_trip = sum(per_rtt(info) for _, info in seen.samples) / len(seen.samples)
    expected = per_round_trip * acks_per_segment
    got = (last.snd_cwnd_segments - START) / round_trips
    assert got == pytest.approx(expected, rel=0.2), "segments per round trip"


@pytest.mark.parametrize(
    ("name", "told", "per_rtt"),
    [
        ("xftp_reno97", {}, constant(1)),
        ("xftp_abc", {}, constant(1)),
        ("xftp_kack", {"k": 4}, constant(1)),
        ("xftp_linthr", {}, constant(1)),
        ("xftp_incbyk", {}, constant(4)),
        ("xftp_incbyk", {"k": 2}, constant(2)),
        ("xftp_incbyk", {"k": 8}, constant(8)),
        ("xftp_crate", {}, constant_rate(100)),
        ("xftp_crate", {"c": 400}, constant_rate(400)),
        ("xftp_hybla", {"reference_rtt_s": 0.05}, hybla),
        # rho is 6: half of its root, 1.22, is more than the one segment at least.
        ("xftp_adalr", {}, adalr),
    ],
)
def test_growth_per_round_trip(
    link: Link,
    parameter_map: ParameterMap,
    name: str,
    told: dict[str, float],
    per_rtt: Growth,
) -> None:
    seen = grown(link, name, told, parameter_map, rtt_s=0.1)
    assert seen.first.snd_ssthresh_segments == START
    check_growth(seen, per_rtt)


def test_an_ack_never_adds_more_than_a_segment(link: Link, parameter_map: ParameterMap) -> None:
    """Henderson's bound: with K above the window, Increase-by-K is slow start."""
    told = Parameters(initial_window_segments=START, ssthresh_segments=START, k=1000)
    seen = transfer(link, "xftp_incbyk", told, parameter_map, until=lambda at, info: at > 0.45)
    check_law(seen, lambda window, number, info: window + 1)
    assert seen.last.snd_cwnd_segments > 8 * START


def test_adalr_on_a_geostationary_link(parameter_map: ParameterMap) -> None:
    with long_link(0.26) as link:
        seen = grown(link, "xftp_adalr", {}, parameter_map, rtt_s=0.52)
    check_growth(seen, adalr)


@pytest.mark.parametrize("name", STANDARD)
def test_a_loss_halves_the_window(parameter_map: ParameterMap, name: str) -> None:
    told = Parameters(initial_window_segments=20, ssthresh_segments=40)

    def recovered(at: float, info: TcpInfo) -> bool:
        done = info.recovery is RecoveryState.OPEN and info.total_retrans_segments > 0
        return done or at > 20

    # 8 Mbit/s x 40 ms is 27 segments; as many again in the queue, then it overflows.
    with long_link(0.02, rate_bps=8e6, queue_bytes=40_000) as link:
        seen = transfer(link, name, told, parameter_map, until=recovered)
    assert seen.last.recovery is RecoveryState.OPEN
    before, after = next(
        (one, two)
        for (_, one), (_, two) in zip(seen.samples, seen.samples[1:], strict=False)
        if one.snd_ssthresh_segments != two.snd_ssthresh_segments
    )
    assert after.snd_ssthresh_segments == pytest.approx(before.snd_cwnd_segments / 2, abs=3)
    # Not before's half: an overflow may take two recoveries.
    assert seen.last.snd_cwnd_segments == pytest.approx(seen.last.snd_ssthresh_segments, abs=4)
