"""Measures, flows and the rule of Henderson's rows."""

from __future__ import annotations

from typing import Any

import pytest

from mininet_topos.experiments import d4, d5, henderson, testbed
from mininet_topos.experiments.flows import Bulk, WebLoad
from mininet_topos.experiments.measures import jain_index
from mininet_topos.experiments.outcome import FlowOutcome, Outcome
from mininet_topos.experiments.rules import Verdict
from mininet_topos.experiments.spec import Scenario
from mininet_topos.experiments.table import Summary, Table

BITS = 8


def flow(kind: str, bps: float, seconds: float, *, before_bps: float | None = None) -> FlowOutcome:
    """A flow with one rate before the warm-up's end and another after it."""
    rows: list[list[float]] = []
    sent = 0.0
    for half_seconds in range(int(2 * seconds) + 1):
        t_s = half_seconds / 2
        rows.append([t_s, sent, 10, 0, 1])
        early = before_bps is not None and t_s < henderson.WARM_UP_S
        sent += (before_bps if early and before_bps is not None else bps) / BITS / 2
    return FlowOutcome(
        kind=kind,
        command="",
        started_s=0,
        seconds=seconds,
        data_s=seconds,
        bytes=int(bps * seconds / BITS),
        history=rows,
    )


def outcome(flows: dict[str, FlowOutcome]) -> Outcome:
    return Outcome(series="a", x=1, flows=flows)


def test_rates_leave_out_the_warm_up() -> None:
    one = outcome({"10ms": flow("Bulk", 480_000, 60, before_bps=0)})
    assert henderson.kbps(10)(one) == pytest.approx(480)
    assert henderson.share(10)(one) == pytest.approx(32)
    assert henderson.kbps(600)(one) is None


def test_rates_end_with_the_connection_that_ends_first() -> None:
    flows = {"10ms": flow("Bulk", 480_000, 40), "600ms": flow("Bulk", 240_000, 60)}
    flows["600ms"].history[-1][1] *= 100
    assert henderson.kbps(600)(outcome(flows)) == pytest.approx(240)


def test_fairness_is_of_the_connections_at_the_first_bottleneck() -> None:
    flows = {
        "10ms": flow("Bulk", 600_000, 60),
        "600ms": flow("Bulk", 200_000, 60),
        "10ms-hop2": flow("Bulk", 900_000, 60),
        "web1": flow("WebLoad", 288_000, 60),
        "web2": flow("WebLoad", 288_000, 60),
    }
    assert henderson.fairness(outcome(flows)) == pytest.approx(jain_index([600, 200]))
    # (600 + 200 + 288) kbit/s of payload, with headers, of 1.5 Mbit/s.
    expected = 1_088 * 1000 / 960 / 1500
    assert henderson.bottleneck_utilisation(outcome(flows)) == pytest.approx(expected, rel=1e-4)


def test_a_connection_without_a_record_leaves_no_index() -> None:
    flows = {"10ms": flow("Bulk", 600_000, 60), "600ms": flow("Bulk", 1, 1)}
    assert henderson.fairness(outcome(flows)) is None


def test_the_published_rates_give_the_published_index() -> None:
    """Table 4.1 names four of the six: the short ones share what the link has left."""
    known = [68.1, 116.2, 156.6, 217.1]
    short = (0.99 * 1500 - 0.2 * 1500 - sum(known)) / 2
    assert jain_index([short, short, *known]) == pytest.approx(0.807, abs=0.02)


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ((217, 157, 116, 68), Verdict.HOLDS),
        ((217, 157, 170, 68), Verdict.HOLDS),
        ((217, 157, 116, 150), Verdict.FAILS),
        ((100, 110, 120, 130), Verdict.FAILS),
    ],
)
def test_starving(rates: tuple[float, ...], verdict: Verdict) -> None:
    table = Table(
        {
            (f"{rtt_ms} ms", "a", 50): Summary((rate,))
            for rtt_ms, rate in zip((100, 200, 300, 600), rates, strict=True)
        }
    )
    assert henderson.starves("a", 50).judge(table).verdict is verdict
    assert henderson.starves("b", 50).judge(table).verdict is Verdict.NOT_JUDGED


def by_name(flows: tuple[Any, ...]) -> dict[str, Any]:
    return {each.name: each for each in flows}


def test_only_the_long_connection_grows_by_k() -> None:
    flows = by_name(henderson.six(True, special={600: henderson.increase_by(4)}))
    assert flows["600ms"].sockets.congestion == "xftp_incbyk"
    assert dict(flows["600ms"].sockets.parameters) == {"k": 4}
    rest = {name: each for name, each in flows.items() if name != "600ms"}
    assert all(each.sockets == henderson.STANDARD for each in rest.values())
    assert len(rest) == 6
    assert henderson.increase_by(1) == henderson.STANDARD


def test_everyone_is_constant_rate_but_the_one_added() -> None:
    policy = henderson.constant_rate(16)
    flows = by_name(henderson.six(True, others=policy, added=henderson.STANDARD))
    added = flows.pop(henderson.ADDED)
    assert added.sockets == henderson.STANDARD
    assert all(each.sockets == policy for each in flows.values())
    assert isinstance(flows[henderson.WEB], WebLoad)


def test_a_chain_has_a_connection_and_a_load_at_every_gateway() -> None:
    flows = henderson.chain(True)
    assert sum(isinstance(each, Bulk) for each in flows) == 6
    loads = [each for each in flows if isinstance(each, WebLoad)]
    assert len(loads) == 5
    assert loads[0].load_bps == pytest.approx(0.2 * 1.5e6 * 0.96)


def test_red_keeps_the_thresholds_of_the_text() -> None:
    red = henderson.red()
    assert (red.min_packets, red.max_packets, red.limit_packets) == (20, 40, 50)


def test_the_competitor_does_not_cross_the_satellite() -> None:
    beside = [each for each in d5.points(False) if each.series == d5.BESIDE]
    assert {each.x for each in beside} == set(testbed.RTTS_MS)
    for each in beside:
        assert isinstance(each.scenario, Scenario)
        competitor = by_name(each.scenario.flows)[testbed.COMPETITOR]
        assert (competitor.sender, competitor.receiver) == ("bg_s", "bg_d")
        assert competitor.background


def test_newreno_is_without_sack() -> None:
    for each in d4.points(True):
        assert isinstance(each.scenario, Scenario)
        assert each.scenario.tcp is not None
        assert each.scenario.tcp.sack is (each.series == d4.SACK)
