"""Measures and places of Marchese's rows."""

from __future__ import annotations

import pytest

from mininet_topos.errors import ExperimentError
from mininet_topos.experiments import marchese
from mininet_topos.experiments.flows import Crowd
from mininet_topos.experiments.marchese import KB, REFERENCE, TUNED, by_k, linear
from mininet_topos.experiments.outcome import FlowOutcome, Outcome
from mininet_topos.experiments.spec import Scenario
from mininet_topos.experiments.table import tabulate


def outcome(series: str, x: float, *each_s: float, size: int = 1000) -> Outcome:
    ftp = FlowOutcome(
        kind="Crowd",
        command="crowd",
        started_s=0,
        seconds=max(each_s),
        data_s=max(each_s),
        bytes=size * len(each_s),
        report={"transfers_s": list(each_s)},
    )
    return Outcome(series=series, x=x, flows={"ftp": ftp})


def test_time_and_throughput_are_means_over_the_transfers() -> None:
    two = outcome("a", 1, 2.0, 4.0)
    assert marchese.mean_time(two) == 3
    # 1000 bytes in 2 s and in 4 s: 500 and 250 bytes/s, not 2000 bytes in 4 s.
    assert marchese.mean_throughput(two) == pytest.approx(0.375)


def test_the_time_is_compared_with_the_reference() -> None:
    table = tabulate(
        [outcome("IW 1", 64, 49.21), outcome("IW 6", 320, 13.96)], [marchese.time_change("IW 1")]
    )
    # Table 4's gain.
    assert table.at("time change", "IW 6", 320) == pytest.approx(-71.63, abs=0.005)


def test_the_files_are_those_that_the_tables_divide_to() -> None:
    assert pytest.approx(49.21 * 56_665, rel=1e-3) == marchese.LONG_BYTES
    assert pytest.approx(1.64 * 63_600, rel=1e-3) == marchese.SHORT_BYTES


def test_the_reference_explains_its_published_time() -> None:
    """Whole windows at the link's RTT, and slow start by an ACK for every second segment."""
    window = REFERENCE.window_bytes // marchese.SEGMENT_BYTES
    assert window == 22
    left, cwnd, rounds = -(-marchese.LONG_BYTES // marchese.SEGMENT_BYTES), 1.0, 0
    while left > 0:
        left -= int(cwnd)
        cwnd = min(window, cwnd + max(1, cwnd / 2))
        rounds += 1
    assert rounds * (marchese.LINK_RTT_S + 0.01) == pytest.approx(49.21, rel=0.02)


def test_tunings_become_settings_of_sockets() -> None:
    assert by_k(1) == TUNED
    assert by_k(4).sockets.congestion == "xftp_kack"
    assert dict(by_k(4).sockets.parameters) == {"k": 4}
    assert dict(linear(20).sockets.parameters) == {"thr_segments": 20}
    assert linear(20).sockets.initial_window_segments == 6
    assert TUNED.window_bytes == 160 * KB


def test_a_crowd_is_one_flow_with_the_window_of_its_tuning() -> None:
    [point] = marchese.crowds([("reference", REFERENCE)], [30])
    assert isinstance(point.scenario, Scenario)
    [flow] = point.scenario.flows
    assert isinstance(flow, Crowd)
    assert (flow.transfers, flow.size_bytes, flow.window_bytes) == (30, 104_300, 32 * KB)
    assert point.scenario.delayed_acks


def test_each_file_has_its_reference() -> None:
    points = marchese.both_files([(2, by_k(2))])
    assert [(each.series, each.x) for each in points] == [
        ("100 KB, reference", 1),
        ("100 KB", 2),
        ("2.8 MB, reference", 1),
        ("2.8 MB", 2),
    ]


@pytest.mark.parametrize(("transfers", "size"), [(0, 1), (1, 0)])
def test_what_no_crowd_can_be(transfers: int, size: int) -> None:
    with pytest.raises(ExperimentError, match="cannot be"):
        Crowd(name="a", transfers=transfers, size_bytes=size)
