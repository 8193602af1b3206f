"""The report, from results that are made up: what must be on the page, and in the pictures."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the lab's extra is not installed")

from mininet_topos.experiments.outcome import FlowOutcome
from mininet_topos.experiments.registry import experiments
from mininet_topos.experiments.rules import Verdict
from mininet_topos.experiments.spec import Point, Scenario
from mininet_topos.experiments.table import Summary, Table
from mininet_topos.report.judge import Judged, judge, number, rows
from mininet_topos.report.page import deviations, section, write_report
from mininet_topos.report.plots import curve
from mininet_topos.running import results as stored

from ..running.support import flow, outcome, results

A2 = experiments()["A2"]
FULL = 178_086.9


def a2(best: float = 0.99, **more: object) -> stored.Results:
    shares = {1: 0.24, 2: 0.48, 3: 0.72, 4: 0.96, 6: best, 7: best, 8: best, 12: best * 0.9}
    outcomes = [outcome("XFTP", n, share * FULL) for n, share in shares.items()]
    return results("A2", *outcomes, **more)


def test_a_shape_like_the_published_one_holds() -> None:
    judged = judge(A2, a2())
    assert judged.verdict is Verdict.HOLDS
    assert judged.summary == "holds (6 holds)"


def test_another_does_not() -> None:
    judged = judge(A2, a2(best=0.9))
    assert judged.verdict is Verdict.FAILS
    assert "3 does not hold" in judged.summary


def test_published_values_stand_beside_ours_also_where_nothing_was_run() -> None:
    partial = results(
        "A2", outcome("XFTP", 6, 0.5 * FULL), outcome("XFTP", 6, 0.6 * FULL, repeat=1)
    )
    found = {(row.metric, row.x): row for row in rows(judge(A2, partial))}
    assert found["steady", "6"].ours == "55 ± 63.5"
    assert found["steady", "6"].published == "98"
    assert found["steady", "8"].ours == "not run"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (43886.2, 3, "43,886"),
        (0.12345, 3, "0.123"),
        (97.04, 3, "97"),
        (0, 3, "0"),
        (-36.2, 3, "-36.2"),
    ],
)
def test_numbers(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_the_page_is_whole(tmp_path: Path) -> None:
    late = outcome("XFTP", 5, FULL, kept_up=False)
    broken = outcome("XFTP", 9, FULL, error="xftp ended with 1: <no> route")
    made = a2(quick=True)
    full = stored.Results(**{**_fields(made), "outcomes": (*made.outcomes, late, broken)})
    stored.write(tmp_path, full)
    stored.write(tmp_path, results("Z1", outcome("gone", 1, 1.0)))  # a row that is no more
    page, judged = write_report(tmp_path, experiments())
    text = page.read_text()
    assert [each.experiment.name for each in judged] == ["A2"]
    for expected in (
        "Allman 1997, figure 2.7",
        "(quick)",
        "links or hosts were late; not judged",
        "&lt;no&gt; route",
        "no plain Reno",
        "server: sack = False",
        "of them more than 1 ms late (the worst 4.00 ms)",
        "Without results here:",
    ):
        assert expected in text
    assert "http://" not in text and "https://" not in text and "<script" not in text
    assert text.count("data:image/png;base64,") == len(A2.figures)
    pictures = sorted((tmp_path / "figures").iterdir())
    assert [path.name for path in pictures] == ["A2-1.png", "A2-2.png", "A2-3.png"]
    for path in pictures:
        width, height = struct.unpack(">II", path.read_bytes()[16:24])  # PNG 11.2.2, IHDR
        assert width > 700 and height > 400


def _fields(made: stored.Results) -> dict[str, object]:
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


@pytest.mark.parametrize("name", list(experiments()))
def test_every_row_can_be_drawn_with_and_without_numbers(name: str) -> None:
    """With a number at every place: what measures read of a flow's own report is not made up."""
    experiment = experiments()[name]
    points = experiment.points(True)
    table = Table(
        {(m.name, p.series, p.x): Summary((1.0, 2.0)) for m in experiment.metrics for p in points}
    )
    measured = [outcome(p.series, p.x, FULL / 2, flows=_flows(p)) for p in points]
    judgements = tuple((rule, rule.judge(table)) for rule in experiment.rules)
    part = section(Judged(experiment, results(name, *measured), table, judgements))
    assert 0 < len(part.pictures) <= len(experiment.figures)  # empty ones are left out
    assert part.rows
    failed = [outcome(p.series, p.x, 1.0, error="broken") for p in points]
    part = section(judge(experiment, results(name, *failed)))
    assert part.judged.verdict is Verdict.NOT_JUDGED
    assert len(part.problems) == len(points)


def _flows(point: Point) -> dict[str, FlowOutcome]:
    """Give each flow of a point's scenario the same rate."""
    if not isinstance(point.scenario, Scenario):
        return {}
    return {each.name: flow(FULL / 2) for each in point.scenario.flows}


def test_curves() -> None:
    made = flow(rate=10_240.0)
    times, values = curve(made, "acknowledged")
    assert (times[-1], values[-1]) == (10.0, 100.0)
    _, rates = curve(made, "throughput")
    assert rates == pytest.approx([10.0] * len(rates))
    assert curve(made, "window")[1][0] == 20


def test_deviations_are_told_once() -> None:
    judged = judge(A2, a2(deviations=("what the row said when it was run",)))
    assert deviations(judged) == (*A2.deviations, "no plain Reno")
