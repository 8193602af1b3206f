"""The equations, against the worked examples of their sources and against measurements."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from tuning.errors import TuningError
from tuning.model import (
    Link,
    Response,
    combined_window_after_loss,
    congestion_avoidance_segments_sent,
    congestion_avoidance_time_s,
    connections_needed,
    cubic_window_segments,
    gain_percent,
    initial_window_saving_s,
    loss_window_segments,
    mathis_rate_bps,
    max_throughput_bps,
    pftk_rate_bps,
    repair_round_trips,
    slow_start_segments_sent,
    slow_start_threshold_segments,
    slow_start_time_s,
    time_at_limit,
    transfer_time,
    window_needed_bytes,
)

T1_BPS = 1.536e6
ACTS_RTT_S = 0.560
TERRESTRIAL_RTT_S = 0.080

GEO = Link(rate_bps=50e6, rtt_s=0.6)


# -- Allman 1997, to the printed digit --------------------------------------------------------


def test_equation_1_1_slow_start_time() -> None:
    assert f"{slow_start_time_s(128, ACTS_RTT_S):.2f}" == "3.92"
    assert f"{slow_start_time_s(128, TERRESTRIAL_RTT_S) * 1000:.0f}" == "560"


def test_equations_1_2_and_1_3_window_per_rtt() -> None:
    assert round(max_throughput_bps(65_535, ACTS_RTT_S) / 8) == 117_027


def test_equation_2_1_two_connections() -> None:
    # Printed 234,054, twice the rounded 117,027; unrounded it is 234,053.57.
    assert round(max_throughput_bps(65_535, ACTS_RTT_S, connections=2) / 8) == 234_054


def test_equation_2_2_window_of_sunos() -> None:
    assert round(max_throughput_bps(24_576, ACTS_RTT_S) / 8) == 43_886


def test_equations_2_3_and_2_4_window_needed() -> None:
    assert round(window_needed_bytes(T1_BPS, ACTS_RTT_S)) == 107_520


def test_equation_2_5_connections_needed() -> None:
    assert connections_needed(107_520, 24_576) == 5
    assert connections_needed(24_576, 24_576) == 1
    assert connections_needed(1, 24_576) == 1


@pytest.mark.parametrize(("connections", "left"), [(1, 0.5), (2, 0.75), (4, 0.875), (8, 0.9375)])
def test_equation_2_6_window_after_a_loss(connections: int, left: float) -> None:
    assert combined_window_after_loss(80.0, connections) == 80 * left


def test_equation_3_1_initial_window() -> None:
    whole = slow_start_time_s(128, ACTS_RTT_S)
    for window in (2, 4, 8, 16, 32):
        saved = whole - slow_start_time_s(128, ACTS_RTT_S, window)
        assert saved == pytest.approx(initial_window_saving_s(window, ACTS_RTT_S))
    assert f"{initial_window_saving_s(4, ACTS_RTT_S):.2f}" == "1.12"
    assert slow_start_time_s(10, ACTS_RTT_S, 32) == 0


def test_section_1_2_1_2_congestion_avoidance() -> None:
    assert f"{congestion_avoidance_time_s(64, 128, TERRESTRIAL_RTT_S):.2f}" == "5.12"
    assert f"{congestion_avoidance_time_s(64, 128, ACTS_RTT_S):.2f}" == "35.84"


def test_section_2_4_5_slow_start_threshold() -> None:
    link = Link(rate_bps=T1_BPS, rtt_s=ACTS_RTT_S, mss_bytes=512, header_bytes=0)
    assert slow_start_threshold_segments(link) == 210
    assert slow_start_threshold_segments(link, 5) == 42
    assert slow_start_threshold_segments(Link(rate_bps=1e4, rtt_s=0.001)) == 2


def test_figure_1_1() -> None:
    """Roughly 22 times more data in the same time."""
    satellite = slow_start_segments_sent(3.92, ACTS_RTT_S, 128)
    terrestrial = slow_start_segments_sent(3.92, TERRESTRIAL_RTT_S, 128)
    assert satellite == 255
    assert f"{terrestrial / satellite:.0f}" == "22"


def test_figure_1_2() -> None:
    """Almost 9 times."""
    satellite = congestion_avoidance_segments_sent(35.84, ACTS_RTT_S, 128, 64)
    terrestrial = congestion_avoidance_segments_sent(35.84, TERRESTRIAL_RTT_S, 128, 64)
    assert f"{terrestrial / satellite:.0f}" == "9"
    assert terrestrial / satellite < 9


# -- Marchese 2001 ----------------------------------------------------------------------------


def test_marchese_table_4_gain() -> None:
    assert f"{gain_percent(49.21, 13.96):.2f}" == "71.63"
    assert gain_percent(4.42, 5.0) == 0


@pytest.mark.parametrize(
    ("initial_window", "buffer_bytes", "published_s"),
    [(1, 64 * 1024, 49.21), (6, 320 * 1024, 13.96)],
)
def test_marchese_transfer_times(
    initial_window: int, buffer_bytes: int, published_s: float
) -> None:
    """2.8 MB at 2 Mbit/s; an RTT of 560 ms fits his "above 500", half a buffer is window."""
    time_s = transfer_time(
        Link(rate_bps=2e6, rtt_s=0.56),
        2.8e6,
        initial_window_segments=initial_window,
        window_limit_bytes=buffer_bytes / 2,
        setup_round_trips=1,
    ).total_s
    assert time_s == pytest.approx(published_s, rel=0.03)


# -- loss -------------------------------------------------------------------------------------


def test_mathis() -> None:
    # 1.2247 / sqrt(1e-4) = 122.5 segments per RTT.
    assert mathis_rate_bps(1000, 0.1, 1e-4) == pytest.approx(122.47 * 1000 * 8 / 0.1, rel=1e-4)


def test_pftk_is_mathis_where_loss_is_rare_and_less_where_it_is_not() -> None:
    rare = pftk_rate_bps(1448, 0.6, 1e-8) / mathis_rate_bps(1448, 0.6, 1e-8)
    often = pftk_rate_bps(1448, 0.6, 0.05) / mathis_rate_bps(1448, 0.6, 0.05)
    assert rare == pytest.approx(1, abs=1e-3)
    assert often < 0.9


def test_pftk_by_hand() -> None:
    # p = 0.02, RTT 0.1, RTO 1: 0.1 * 0.11547 + 3 * 0.086603 * 0.02 * 1.0128 s per segment
    assert pftk_rate_bps(1000, 0.1, 0.02, rto_s=1.0) == pytest.approx(8000 / 0.016810, rel=1e-3)


@pytest.mark.parametrize(
    ("rtt_s", "loss", "window"),
    # As RFC 9438 section 5.1 tabulates: RTT 0.1 s, C = 0.4.
    [(0.1, 1e-2, 12), (0.1, 1e-3, 38), (0.1, 1e-4, 187), (0.1, 1e-5, 1054), (0.1, 1e-6, 5926)],
)
def test_cubic_window_of_rfc_9438(rtt_s: float, loss: float, window: int) -> None:
    link = Link(rate_bps=1e9, rtt_s=rtt_s, loss=loss)
    if loss <= 1e-4:  # above, the larger of the two is Reno's
        assert cubic_window_segments(rtt_s, loss) == pytest.approx(window, rel=0.01)
    assert loss_window_segments(link, Response.CUBIC) == pytest.approx(window, rel=0.07)


def test_loss_is_no_limit_to_a_sender_that_does_not_halve() -> None:
    assert loss_window_segments(Link(rate_bps=1e6, rtt_s=0.1, loss=0.1), Response.RATE) == math.inf
    assert loss_window_segments(Link(rate_bps=1e6, rtt_s=0.1), Response.RENO) == math.inf


def test_repair_round_trips() -> None:
    assert repair_round_trips(0, 1000) == 0
    assert repair_round_trips(0.5, 1) == pytest.approx(1, rel=1e-4)  # geometric: p / (1 - p)
    assert repair_round_trips(0.01, 1) == pytest.approx(0.01 / 0.99, rel=1e-3)
    assert repair_round_trips(0.01, 2590) == pytest.approx(1.23, abs=0.01)


# -- whole transfers --------------------------------------------------------------------------


def test_the_limit_is_8_seconds_and_headers_and_round_trips() -> None:
    limit = time_at_limit(GEO, 50_000_000)
    assert limit.setup_s == pytest.approx(1.2)
    assert limit.streaming_s == pytest.approx(8.0 * 1500 / 1448)
    assert limit.total_s == pytest.approx(9.49, abs=0.01)


def measured(
    seconds: float,
    within: float,
    size: float = 50e6,
    loss: float = 0.0,
    connections: int = 1,
    window: float = 10,
    response: Response = Response.CUBIC,
    commands: float = 2,
) -> tuple[Any, ...]:
    """Describe a measurement at 50 Mbit/s, 600 ms; commands: round trips before the first byte."""
    return seconds, within, size, loss, connections, window, response, commands


FULL = 3_750_000 / 8 / 1448
"""An eighth of rate x RTT in segments."""

MEASURED = {
    "prototype N=1": measured(13.7, 0.03),
    "prototype N=8 IW 32": measured(11.1, 0.03, connections=8, window=32),
    "prototype N=8 IW BDP/N": measured(9.53, 0.03, connections=8, window=FULL),
    "prototype 1 MB": measured(1.37, 0.03, size=1e6, connections=8, window=FULL),
    "prototype 0.1%": measured(
        9.95, 0.1, loss=1e-3, connections=8, window=FULL, response=Response.RATE
    ),
    "prototype 1%": measured(
        11.1, 0.1, loss=1e-2, connections=8, window=FULL, response=Response.RATE
    ),
    "prototype 1% N=1": measured(18.4, 0.25, loss=1e-2, response=Response.RATE),
    "curl 1 MB": measured(10.3, 0.1, size=1e6, commands=10),
    "curl 10 MB": measured(12.5, 0.1, size=1e7, commands=10),
    "curl 50 MB": measured(19.9, 0.1, commands=10),
    "curl 0.1%": measured(175, 0.1, loss=1e-3, commands=10),
    "curl bbr 0.1%": measured(21.8, 0.25, loss=1e-3, response=Response.RATE, commands=10),
    "GridFTP -p 4 10 MB": measured(13.7, 0.25, size=1e7, connections=4, commands=10),
    "GridFTP -p 4": measured(20.2, 0.25, connections=4, commands=10),
    "GridFTP -p 8": measured(20.3, 0.25, connections=8, commands=10),
    "GridFTP -p 4 0.1%": measured(53.1, 0.1, loss=1e-3, connections=4, commands=10),
    "GridFTP -p 8 0.1%": measured(27.2, 0.1, loss=1e-3, connections=8, commands=10),
}
"""What was measured, and how near the model claims to come."""


@pytest.mark.parametrize("name", MEASURED)
def test_measured(name: str) -> None:
    seconds, within, size, loss, connections, window, response, commands = MEASURED[name]
    predicted = transfer_time(
        Link(rate_bps=50e6, rtt_s=0.6, loss=loss),
        size,
        connections=connections,
        initial_window_segments=window,
        response=response,
        setup_round_trips=commands,
    )
    assert predicted.total_s == pytest.approx(seconds, rel=within)


@pytest.mark.parametrize(("connections", "least"), [(1, 0.97), (4, 0.90)])
def test_windows_bound_the_rate(connections: int, least: float) -> None:
    """5 MB over T1 with windows of 24 KB: figure 2.6's first point, equation 2.2 less start."""
    link = Link(rate_bps=T1_BPS, rtt_s=ACTS_RTT_S, mss_bytes=512, header_bytes=40)
    size = 5 * 2**20
    time = transfer_time(
        link,
        size,
        connections=connections,
        initial_window_segments=1,
        window_limit_bytes=24_576,
        setup_round_trips=0,
    )
    bound = connections * 43_886
    assert least * bound < size / time.total_s < bound


def test_initial_windows_of_figure_3_1() -> None:
    link = Link(rate_bps=T1_BPS, rtt_s=ACTS_RTT_S, mss_bytes=512, header_bytes=40)

    def gain(size: int, window: int) -> float:
        one, more = (
            transfer_time(link, size, initial_window_segments=w, window_limit_bytes=40_960).total_s
            for w in (1, window)
        )
        return one / more - 1

    assert gain(5 * 2**20, 32) == pytest.approx(0.03, abs=0.02)
    assert gain(30 * 1024, 32) > gain(100 * 1024, 32) > gain(5 * 2**20, 32)
    assert gain(30 * 1024, 32) > gain(30 * 1024, 4) > 0


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e9])
@pytest.mark.parametrize("loss", [0.0, 1e-4, 1e-2])
def test_never_below_the_limit_and_never_slower_for_more(size: float, loss: float) -> None:
    link = Link(rate_bps=50e6, rtt_s=0.6, loss=loss)
    times = [transfer_time(link, size, connections=n).total_s for n in (1, 2, 4, 8)]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(times))
    # The last segment may be short; the model counts whole ones.
    assert times[-1] >= time_at_limit(link, size).total_s - 1e-9


def test_nothing_to_send_takes_the_set_up() -> None:
    assert transfer_time(GEO, 0).total_s == pytest.approx(1.2)


@pytest.mark.parametrize(
    "values",
    [
        {"rate_bps": 0},
        {"rate_bps": float("nan")},
        {"rate_bps": -5},
        {"rtt_s": 0},
        {"rtt_s": 1e9},
        {"loss": -0.1},
        {"loss": 0.6},
        {"mss_bytes": 0},
        {"header_bytes": -1},
    ],
)
def test_impossible_links(values: dict[str, Any]) -> None:
    with pytest.raises(TuningError):
        Link(**({"rate_bps": 1e6, "rtt_s": 0.1} | values))
