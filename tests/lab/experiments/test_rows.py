"""The rows themselves: every file is whole, and refers only to what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

import mininet_topos.experiments as package
from mininet_topos.errors import ExperimentError
from mininet_topos.experiments.flows import Bulk, Xftp
from mininet_topos.experiments.registry import chosen, experiments
from mininet_topos.experiments.rules import Verdict
from mininet_topos.experiments.spec import Calculation, Experiment, Figure, Scenario
from mininet_topos.experiments.table import Summary, Table
from mininet_topos.report.judge import judge
from mininet_topos.running.results import Results
from mininet_topos.running.scenario import run_point

ROWS = list(experiments().values())
BY_NAME = [pytest.param(row, id=row.name) for row in ROWS]


def places(row: Experiment) -> set[tuple[str, float]]:
    return {(point.series, point.x) for point in row.points(False)}


@pytest.mark.parametrize("row", BY_NAME)
def test_points_are_there_and_different(row: Experiment) -> None:
    for quick in (False, True):
        points = row.points(quick)
        assert points
        assert len({(point.series, point.x) for point in points}) == len(points)


@pytest.mark.parametrize("row", BY_NAME)
def test_a_quick_run_is_shorter_and_has_no_other_places(row: Experiment) -> None:
    if row.needs_root:
        assert row.work_s(quick=True) < row.work_s(quick=False)
    assert {(point.series, point.x) for point in row.points(True)} <= places(row)


@pytest.mark.parametrize("row", BY_NAME)
def test_figures_and_published_values_refer_to_metrics_and_places(row: Experiment) -> None:
    metrics = {metric.name for metric in row.metrics}
    for figure in row.figures:
        if isinstance(figure, Figure):
            assert figure.metric in metrics
            assert set(figure.series) <= {series for series, _ in places(row)}
        else:
            assert set(figure.points) <= places(row)
    for value in row.published:
        assert value.metric in metrics
        assert (value.series, value.x) in places(row)


@pytest.mark.parametrize("row", BY_NAME)
def test_rules_are_about_points_of_the_row(row: Experiment) -> None:
    """With a number at every place every rule comes to a verdict, whichever it is."""
    assert row.rules
    every = Table(
        {
            (metric.name, series, x): Summary((1.0,))
            for metric in row.metrics
            for series, x in places(row)
        }
    )
    for rule in row.rules:
        judgement = rule.judge(every)
        assert judgement.verdict is not Verdict.NOT_JUDGED, (rule.text, judgement.numbers)


@pytest.mark.parametrize("row", BY_NAME)
def test_topologies_can_be_planned(row: Experiment) -> None:
    pytest.importorskip("mininet", reason="the lab's extra is not installed")
    from mininet_topos.running.scenario import build

    seen = set()
    for point in row.points(False):
        scenario = point.scenario
        if isinstance(scenario, Scenario):
            topology = build(scenario, seed=1)
            hosts = {name for flow in scenario.flows for name in (flow.sender, flow.receiver)}
            assert hosts <= set(topology.host_names)
            seen.add(scenario.topology)
    assert bool(seen) is row.needs_root


@pytest.mark.parametrize("row", [row for row in ROWS if not row.needs_root], ids=lambda r: r.name)
def test_computed_rows_hold(row: Experiment) -> None:
    points = row.points(False)
    assert all(isinstance(point.scenario, Calculation) for point in points)
    results = Results(
        experiment=row.name,
        title=row.title,
        source=row.source,
        quick=False,
        repeats=1,
        finished="",
        machine={},
        outcomes=tuple(run_point(point) for point in points),
    )
    judged = judge(row, results)
    assert judged.summary.startswith("holds"), judged.judgements


def test_every_file_that_is_named_like_a_row_is_one() -> None:
    files = {path.stem.upper() for path in Path(package.__file__).parent.glob("[a-f][0-9]*.py")}
    assert files == set(experiments())


def test_rows_are_chosen_by_name_chapter_or_all() -> None:
    assert [row.name for row in chosen(["a8", "A1"])] == ["A8", "A1"]
    assert [row.name for row in chosen(["a"])] == [n for n in experiments() if n[0] == "A"]
    assert chosen(["all"]) == list(experiments().values())
    with pytest.raises(ExperimentError, match="no experiment A99: did you mean"):
        chosen(["A99"])


def test_what_no_flow_or_scenario_can_be() -> None:
    with pytest.raises(ExperimentError, match="to itself"):
        Xftp(name="a", size_bytes=1, sender="client")
    with pytest.raises(ExperimentError, match="never end"):
        Bulk(name="a")
    with pytest.raises(ExperimentError, match="cannot be named"):
        Xftp(name="a b", size_bytes=1)
    one = Xftp(name="a", size_bytes=1)
    with pytest.raises(ExperimentError, match="names of their own"):
        Scenario(topology="leo", flows=(one, one), seconds=1)
    with pytest.raises(ExperimentError, match="no end"):
        Scenario(topology="leo", flows=(Bulk(name="b", background=True),), seconds=1)
    with pytest.raises(ExperimentError, match="cannot take"):
        Scenario(topology="leo", flows=(one,), seconds=0)
