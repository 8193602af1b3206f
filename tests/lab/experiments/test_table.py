"""Numbers of all runs: means, confidence intervals, gains over a baseline."""

from __future__ import annotations

import pytest

from mininet_topos.experiments.measures import Metric, jain_index, value
from mininet_topos.experiments.outcome import Outcome
from mininet_topos.experiments.table import MissingPoint, Summary, Table, student_95, tabulate

V = Metric(name="v", label="v, units", measure=value("v"))


def outcome(series: str, x: float, v: float, repeat: int = 0, **more: object) -> Outcome:
    return Outcome(series=series, x=x, repeat=repeat, values={"v": v}, **more)  # type: ignore[arg-type]


def test_mean_and_interval_of_a_textbook_sample() -> None:
    # Mean 5, s = 1.5811, n = 5: 2.776 x 1.5811 / sqrt(5) = 1.963.
    summary = Summary((3.0, 4.0, 5.0, 6.0, 7.0))
    assert summary.mean == 5
    assert summary.half_width == pytest.approx(1.963, abs=0.001)


def test_a_single_run_has_no_interval() -> None:
    assert Summary((3.0,)).half_width is None


def test_student_goes_over_to_the_normal_distribution() -> None:
    assert student_95(1) == 12.706
    assert student_95(60) == pytest.approx(2.000, abs=0.002)
    assert student_95(10**6) == pytest.approx(1.960, abs=0.001)
    assert student_95(30) > student_95(31)


def test_runs_of_a_point_are_summed_up() -> None:
    table = tabulate([outcome("a", 1, 2.0), outcome("a", 1, 4.0, repeat=1)], [V])
    assert table.at("v", "a", 1) == 3.0
    assert table.xs("v", "a") == (1,)
    assert table.series("v") == ("a",)


@pytest.mark.parametrize("spoiled", [{"error": "it broke"}, {"kept_up": False}])
def test_runs_that_failed_or_were_late_do_not_count(spoiled: dict[str, object]) -> None:
    table = tabulate([outcome("a", 1, 2.0), outcome("a", 1, 99.0, repeat=1, **spoiled)], [V])
    assert table.at("v", "a", 1) == 2.0


def test_a_point_that_was_not_measured_is_missing() -> None:
    with pytest.raises(MissingPoint, match="a at 2 was not measured"):
        tabulate([outcome("a", 1, 2.0)], [V]).at("v", "a", 2)


def test_gains_are_over_the_baseline_of_the_same_repeat() -> None:
    gain = Metric(
        name="gain",
        label="gain, %",
        measure=value("v"),
        baseline=lambda series, x: ("old", x),
        series=frozenset({"new"}),
    )
    outcomes = [
        outcome("old", 1, 10.0),
        outcome("new", 1, 15.0),
        outcome("old", 1, 20.0, repeat=1),
        outcome("new", 1, 20.0, repeat=1),
        outcome("new", 1, 99.0, repeat=2),  # without a baseline: no number
    ]
    assert tabulate(outcomes, [gain]).summaries == {("gain", "new", 1): Summary((50.0, 0.0))}


def test_values_that_are_no_numbers_are_left_out() -> None:
    assert tabulate([outcome("a", 1, float("inf"))], [V]) == Table({})


def test_jain() -> None:
    assert jain_index([1.0, 1.0, 1.0]) == pytest.approx(1)
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain_index([0.0, 0.0]) == 0
