"""The rows of the TCP-ADaLR thesis: windows, networks, published numbers."""

from __future__ import annotations

import pytest

from mininet_topos.experiments import adalr, bit_errors, e1, e4, e9
from mininet_topos.experiments.flows import Bulk, Crowd
from mininet_topos.experiments.outcome import FlowOutcome, Outcome
from mininet_topos.experiments.spec import Point, Scenario
from mininet_topos.links import BitErrors


def scenario(point: Point) -> Scenario:
    assert isinstance(point.scenario, Scenario)
    return point.scenario


def test_only_adalr_has_the_larger_window() -> None:
    # Algorithm 5.3 at 520 ms: 65,535 + 0.25 x 31.2 x 1460.
    assert adalr.stack(adalr.ADALR_SACK).window_bytes == 76_923
    assert adalr.stack(adalr.SACK).window_bytes == adalr.stack(adalr.NEWRENO).window_bytes == 65_535
    assert adalr.stack(adalr.ADALR_NEWRENO, 0.05).window_bytes == 65_535  # rho is below 15


def test_sack_and_the_algorithm_are_the_variants_own() -> None:
    for variant in adalr.VARIANTS:
        assert adalr.stack(variant).sack is variant.endswith("SACK")
        algorithm = adalr.sockets(variant).congestion
        assert algorithm == ("xftp_adalr" if "ADaLR" in variant else "xftp_reno97")


def test_every_variant_is_run_with_and_without_delayed_acks() -> None:
    points = e1.points(False)
    assert {(point.series, point.x) for point in points} == {
        (variant, acks) for variant in adalr.VARIANTS for acks in adalr.ACKS
    }
    for point in points:
        assert scenario(point).delayed_acks is (point.x == adalr.DELAYED)
        # The terrestrial hop must not leave every second of what is left out once more.
        assert scenario(point).delayed_acks_on == "satellite"


def test_published_times_become_rates() -> None:
    value = next(p for p in e1.EXPERIMENT.published if p.series == adalr.SACK and p.x == 1.0)
    assert value.value == pytest.approx(50e6 / 470.1 / 1000, abs=0.1)
    assert "470.1 s" in value.note


def test_larger_files_take_longer_and_are_allowed_to() -> None:
    by_size = {point.x: scenario(point) for point in e4.points(False)}
    assert all(by_size[size].limit_s > 3 * by_size[size].seconds for size in by_size)
    assert sorted(by_size, key=lambda size: by_size[size].seconds) == sorted(by_size)


@pytest.mark.parametrize("queue", [None, 15])
def test_bit_errors_and_the_gateways_queue(queue: int | None) -> None:
    for point in bit_errors.points(False, queue):
        parameters = scenario(point).parameters
        assert parameters["loss"] == BitErrors(rate=point.x)
        assert parameters.get("queue") == queue
        [flow] = scenario(point).flows
        assert isinstance(flow, Crowd) and flow.size_bytes == bit_errors.SIZES[point.x]


def test_the_mixture_has_adalr_on_its_long_paths() -> None:
    mixed = next(scenario(p) for p in e9.points(False) if p.series == e9.MIXED)
    algorithms = [flow.sockets.congestion for flow in mixed.flows]
    assert algorithms == ["xftp_reno97"] * 3 + ["xftp_adalr"] * 3
    windows = [mixed.host_tcp[f"d{n}"].window_bytes for n in range(1, 7)]
    assert windows[:3] == [65_535] * 3
    assert all(window is not None and window > 65_535 for window in windows[3:])
    assert all(isinstance(flow, Bulk) and flow.duration_s for flow in mixed.flows)


def test_fairness_of_the_published_rates_is_what_was_published() -> None:
    for series, rates in e9.FLOW_RATES.items():
        flows = {
            e9.flow_name(n): FlowOutcome(
                kind="Bulk",
                command="",
                started_s=0,
                seconds=10,
                data_s=10,
                bytes=round(30 * rate),
                history=[[t, t * rate, 40, 0, 1] for t in range(31)],
            )
            for n, rate in enumerate(rates, 1)
        }
        outcome = Outcome(series=series, x=0, flows=flows)
        assert e9.jain(outcome) == pytest.approx(e9.JAIN[series], abs=2e-3)
        assert e9.max_min(outcome) == pytest.approx(e9.MAX_MIN[series], abs=2e-3)
