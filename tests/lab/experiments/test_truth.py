"""F5: what is made of the reports of numbered packets."""

from __future__ import annotations

from typing import Any

import pytest

from mininet_topos.errors import ExperimentError
from mininet_topos.experiments import f5
from mininet_topos.experiments.flows import Datagrams
from mininet_topos.experiments.outcome import FlowOutcome, Outcome
from mininet_topos.experiments.rules import Verdict
from mininet_topos.experiments.spec import Scenario
from mininet_topos.experiments.table import Summary, Table


def outcome(x: float, receiver: dict[str, Any], **sender: Any) -> Outcome:
    flow = FlowOutcome(
        kind="Datagrams",
        command="",
        started_s=0,
        seconds=1,
        data_s=1,
        bytes=1,
        report={"receiver": receiver, "sender": sender},
    )
    return Outcome(series="", x=x, flows={"probe": flow})


def test_a_ping_over_t1_takes_what_theory_says() -> None:
    # 2 x 280 ms and twice 1500 x 8 / 1.536 Mbit/s = 7.8125 ms.
    assert f5.theory_rtt_s(1500) == pytest.approx(0.575625)
    late = outcome(1500, {}, rtts_s=[0.580, 0.576125, 0.590])
    assert f5.rtt_error_ms(late) == pytest.approx(0.5)
    assert f5.rtt_error_ms(outcome(1500, {}, rtts_s=[])) is None


def test_the_rate_of_arrivals() -> None:
    assert f5.rate_error(outcome(12e6, {"packets_per_s": 1010})) == pytest.approx(1)


def test_the_first_packet_is_sent_and_the_queue_holds_the_next() -> None:
    assert f5.first_drop(outcome(10, {"first_lost": 11})) == 0
    assert f5.first_drop(outcome(10, {"first_lost": 13})) == 2
    assert f5.first_drop(outcome(10, {"first_lost": None})) is None


def test_losses_in_standard_deviations() -> None:
    # 20,000 packets at 1%: 200 are expected, with a deviation of 14.07.
    assert f5.loss_deviations(outcome(0.01, {"packets": 19_800})) == pytest.approx(0)
    assert f5.loss_deviations(outcome(0.01, {"packets": 19_772})) == pytest.approx(1.99, abs=0.01)


def test_packets_delivered_of_those_sent() -> None:
    assert f5.delivered(outcome(10_000, {"packets": 39_600})) == pytest.approx(99)


@pytest.mark.parametrize(("value", "verdict"), [(0.9, "HOLDS"), (-1.1, "FAILS"), (1.1, "FAILS")])
def test_errors_are_bounded_either_way(value: float, verdict: str) -> None:
    rule = next(rule for rule in f5.rules() if rule.text.startswith("rate error"))
    table = Table({("rate error", f5.RATE, 1.536e6): Summary((value,))})
    assert rule.judge(table).verdict is Verdict[verdict]


def test_only_the_limit_may_be_late() -> None:
    for point in f5.points(False):
        assert isinstance(point.scenario, Scenario)
        assert point.scenario.may_be_late is (point.series == f5.LIMIT)


@pytest.mark.parametrize("wrong", [{"packets": 0}, {"packet_bytes": 39}, {"packet_bytes": 1501}])
def test_datagrams_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(ExperimentError, match="cannot be"):
        Datagrams(name="a", **{"packets": 1, **wrong})
