"""Slow start of every program: the window after each ACK is the one its law gives.

TCP_INFO is one consistent picture of the window and of the segments that came in, so the law is
checked ACK by ACK, whatever the timing. Growth per RTT then follows from the link.
"""

from __future__ import annotations

import pytest

from bench.emulated_path import Link, long_link
from tuning.congestion import ParameterMap, Parameters
from tuning.tcp_info import TcpInfo

from .bpf_support import needs_bpf
from .laws import Step, check_law
from .transfers import transfer

pytestmark = needs_bpf

BIG = 300
"""Segments at which a transfer has grown enough."""

TRIES = 3
"""A machine that keeps the sender waiting leaves its window unfilled, which then does not grow."""


def until_big(at: float, info: object) -> bool:
    return getattr(info, "snd_cwnd_segments", 0) >= BIG or at > 8


def linear(thr: int) -> Step:
    return lambda window, number, info: window + (number if window <= thr else 1)


def constant(k: int) -> Step:
    return lambda window, number, info: window + k


@pytest.mark.parametrize(
    ("name", "parameters", "initial", "step"),
    [
        ("xftp_reno97", None, 1, constant(1)),
        ("xftp_reno97", Parameters(initial_window_segments=4), 4, constant(1)),
        ("xftp_crate", None, 1, constant(1)),
        ("xftp_incbyk", None, 1, constant(1)),
        ("xftp_kack", None, 6, constant(2)),
        ("xftp_kack", Parameters(k=4), 6, constant(4)),
        ("xftp_kack", Parameters(k=10), 6, constant(10)),
        ("xftp_linthr", None, 6, linear(20)),
        ("xftp_linthr", Parameters(thr_segments=50), 6, linear(50)),
    ],
)
def test_window_after_each_ack(
    link: Link,
    parameter_map: ParameterMap,
    name: str,
    parameters: Parameters | None,
    initial: int,
    step: Step,
) -> None:
    for _ in range(TRIES):
        seen = transfer(link, name, parameters, parameter_map, until=until_big)
        if seen.was_filled:
            break
    assert seen.first.snd_cwnd_segments == initial
    assert seen.last.snd_cwnd_segments >= BIG
    check_law(seen, step)


def test_the_baseline_doubles_per_round_trip(link: Link, parameter_map: ParameterMap) -> None:
    seen = transfer(link, "xftp_reno97", None, parameter_map, until=until_big)
    round_trips = seen.samples[-1][0] / seen.least_rtt_s
    # 1, 2, 4 … 256, 300: the ninth round trip brings the 300th segment. A busy machine adds some.
    assert 8.5 < round_trips < 11


def test_byte_counting_grows_by_what_is_acknowledged(
    link: Link, parameter_map: ParameterMap
) -> None:
    seen = transfer(link, "xftp_abc", None, parameter_map, until=until_big)
    assert seen.first.snd_cwnd_segments == 1
    for _, info in seen.samples:
        assert info.snd_cwnd_segments == pytest.approx(1 + seen.delivered(info), abs=2)


@pytest.mark.parametrize("name", ["xftp_reno97", "xftp_abc"])
def test_delayed_acks_slow_the_baseline_but_not_byte_counting(
    parameter_map: ParameterMap, name: str
) -> None:
    with long_link(0.05, delayed_acks=True) as link:
        seen = transfer(link, name, None, parameter_map, until=until_big)
    acks, delivered = seen.acks(seen.last), seen.delivered(seen.last)
    assert acks < 0.75 * delivered, "the receiver did not delay its ACKs"
    if name == "xftp_abc":
        assert seen.last.snd_cwnd_segments == pytest.approx(1 + delivered, abs=4)
    else:
        check_law(seen, constant(1))


@pytest.mark.parametrize("reference_rtt_s", [0.05, 0.025])
def test_hybla_adds_two_to_the_rho_less_one(
    link: Link, parameter_map: ParameterMap, reference_rtt_s: float
) -> None:
    told = Parameters(reference_rtt_s=reference_rtt_s, ssthresh_segments=2 * BIG)
    seen = transfer(link, "xftp_hybla", told, parameter_map, until=until_big)
    assert seen.first.snd_cwnd_segments == int(seen.first.rtt_s / reference_rtt_s)

    def step(window: float, number: int, info: TcpInfo) -> float:
        assert info.min_rtt_s is not None
        return min(window + 2 ** (info.min_rtt_s / reference_rtt_s) - 1, 2 * BIG)

    # 2^x is linear between whole x: up to 6% above.
    check_law(seen, step, tolerance=0.08)


def test_hybla_scales_the_threshold_of_its_model(link: Link, parameter_map: ParameterMap) -> None:
    seen = transfer(link, "xftp_hybla", None, parameter_map, until=lambda at, info: at > 0.5)
    rho = round(seen.first.rtt_s * 1e6) * 1024 // 25_000  # in 1/1024, as the program counts
    expected = 65536 // seen.first.snd_mss_bytes * rho // 1024
    assert seen.first.snd_ssthresh_segments == pytest.approx(expected, abs=1)


def test_adalr_grows_by_a_quarter_of_the_root_of_rho(parameter_map: ParameterMap) -> None:
    with long_link(0.3) as link:
        # The sub-phases end at ssthresh: it is far away here.
        told = Parameters(ssthresh_segments=10 * BIG)
        seen = transfer(link, "xftp_adalr", told, parameter_map, until=until_big)
    assert 36 <= 60 * seen.least_rtt_s < 38
    assert seen.first.snd_cwnd_segments == 2
    check_law(
        seen,
        lambda window, number, info: window + (60 * info.rtt_s) ** 0.5 / 4,
        tolerance=0.05,
    )


def test_adalr_is_standard_on_a_short_path(link: Link, parameter_map: ParameterMap) -> None:
    told = Parameters(ssthresh_segments=10 * BIG)
    seen = transfer(link, "xftp_adalr", told, parameter_map, until=until_big)
    check_law(seen, constant(1))


def test_adalr_begins_with_a_threshold_of_64_kilobytes(
    link: Link, parameter_map: ParameterMap
) -> None:
    seen = transfer(link, "xftp_adalr", None, parameter_map, until=lambda at, info: at > 0.3)
    assert seen.first.snd_ssthresh_segments == 65536 // seen.first.snd_mss_bytes
