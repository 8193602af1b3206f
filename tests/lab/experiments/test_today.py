"""The rows against the tools of today: who is compared with whom, and what a lead is."""

from __future__ import annotations

import pytest

from mininet_topos.experiments import f1, today
from mininet_topos.experiments.flows import Tool, Xftp
from mininet_topos.experiments.measures import Metric, value
from mininet_topos.experiments.outcome import Outcome
from mininet_topos.experiments.rules import Verdict
from mininet_topos.experiments.table import Summary, Table, tabulate

LEAD = Metric(
    name="lead",
    label="times",
    measure=value("v"),
    rivals=lambda series, x: [("slow", x), ("fast", x), ("absent", x)],
    series=frozenset({"own"}),
)


def outcome(series: str, v: float, repeat: int = 0, **more: object) -> Outcome:
    return Outcome(series=series, x=1, repeat=repeat, values={"v": v}, **more)  # type: ignore[arg-type]


def test_a_lead_is_over_the_best_of_those_that_were_measured() -> None:
    runs = [outcome("own", 10.0), outcome("slow", 40.0), outcome("fast", 25.0)]
    assert tabulate(runs, [LEAD]).summaries == {("lead", "own", 1): Summary((2.5,))}


def test_a_lead_is_of_the_same_repeat() -> None:
    runs = [
        outcome("own", 10.0),
        outcome("own", 10.0, repeat=1),
        outcome("slow", 40.0),
        outcome("fast", 15.0, repeat=1),
    ]
    assert tabulate(runs, [LEAD]).summaries["lead", "own", 1] == Summary((4.0, 1.5))


def test_without_a_rival_there_is_no_lead() -> None:
    assert tabulate([outcome("own", 10.0)], [LEAD]) == Table({})
    late = outcome("fast", 1.0, kept_up=False)
    assert tabulate([outcome("own", 10.0), late], [LEAD]) == Table({})


def test_the_limit_of_a_long_link() -> None:
    # 50 MB at 50 Mbit/s x 1448/1500 are 8.287 s, and 4 x 0.6 s.
    assert today.Link(50e6, 0.6).limit_s(50_000_000) == pytest.approx(10.687, abs=0.001)


def test_the_rule_about_the_limit_says_it() -> None:
    rule = today.within_limit("a", 0, 10.0, 0.15)
    assert rule.text.endswith("within 15% of size / goodput limit + 4 RTT = 10.00 s")
    for seconds, verdict in ((11.4, Verdict.HOLDS), (11.6, Verdict.FAILS)):
        table = Table({("time", "a", 0): Summary((seconds,))})
        assert rule.judge(table).verdict is verdict


def test_only_xftp_is_told_the_rate() -> None:
    link = today.Link(50e6, 0.6)
    told, untold = (today.flow(name, link, 1) for name in (today.TOLD, today.UNTOLD))
    assert isinstance(told, Xftp) and told.sockets.rate_bps == 50e6
    assert isinstance(untold, Xftp) and untold.sockets.rate_bps is None
    known = today.flow(today.KNOWN, link, 1)
    assert isinstance(known, Xftp) and known.sockets.rate_bps == 50e6
    assert (known.known, told.known, untold.known) == (True, False, False)
    other = today.flow("lftp pget -n 8", link, 1)
    assert isinstance(other, Tool) and (other.program, other.connections) == ("lftp-pget", 8)


def test_every_transfer_of_f1_is_compared_with_all_others_of_its_size() -> None:
    for own, others in f1.rivals().items():
        who, size, _ = own.split(", ")
        assert who in today.OWN
        assert {other.split(", ")[1] for other in others} == {size}
        assert {other.split(", ")[0] for other in others} == set(today.COMMANDS)


def test_what_takes_half_an_hour_is_left_out_of_f1() -> None:
    places = {(point.series, point.x) for point in f1.points(False)}
    assert ("curl, 50 MB, cubic", 1e-2) not in places
    assert ("curl, 10 MB, cubic", 1e-2) in places
    assert ("curl, 50 MB, bbr", 1e-2) in places
