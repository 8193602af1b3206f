"""A result's numbers beside the published ones, and the verdicts of its rules."""

from __future__ import annotations

from dataclasses import dataclass

from ..experiments.rules import Judgement, Rule, Verdict, overall
from ..experiments.spec import Experiment, Figure, Published
from ..experiments.table import Table, place, tabulate
from ..running.results import Results


@dataclass(frozen=True, slots=True)
class Judged:
    """One experiment of a report."""

    experiment: Experiment
    results: Results
    table: Table
    judgements: tuple[tuple[Rule, Judgement], ...]

    @property
    def verdict(self) -> Verdict:
        """Sum up the rules."""
        return overall([judgement for _, judgement in self.judgements])

    @property
    def summary(self) -> str:
        """Say the verdict and on how many rules it rests."""
        counts = {
            verdict: sum(judgement.verdict is verdict for _, judgement in self.judgements)
            for verdict in Verdict
        }
        if not self.judgements:
            return "no rule"
        told = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
        return f"{self.verdict.value} ({', '.join(told)})"

    @property
    def unusable(self) -> int:
        """How many runs failed or were late."""
        return sum(not outcome.usable for outcome in self.results.outcomes)

    def published(self, metric: str, series: str, x: float) -> Published | None:
        """Give the published value of a place."""
        for each in self.experiment.published:
            if (each.metric, each.series, each.x) == (metric, series, x):
                return each
        return None


def judge(experiment: Experiment, results: Results) -> Judged:
    """Compute the table and apply the rules."""
    table = tabulate(results.outcomes, experiment.metrics)
    judgements = tuple((rule, rule.judge(table)) for rule in experiment.rules)
    return Judged(experiment, results, table, judgements)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a printed table."""

    metric: str
    series: str
    x: str
    ours: str
    published: str
    note: str
    runs: int


def rows(judged: Judged) -> list[Row]:
    """Give every measured place, and those that are only published."""
    experiment = judged.experiment
    names = {
        (figure.metric, x): name
        for figure in experiment.figures
        if isinstance(figure, Figure)
        for x, name in figure.x_names.items()
    }
    found: list[Row] = []
    shown: set[tuple[str, str, float]] = set()
    for (metric, series, x), summary in judged.table.summaries.items():
        digits = experiment.metric(metric).digits
        width = summary.half_width
        interval = f" ± {number(width, digits)}" if width is not None else ""
        beside = judged.published(metric, series, x)
        shown.add((metric, series, x))
        found.append(
            Row(
                metric=metric,
                series=series,
                x=names.get((metric, x), place(x)),
                ours=number(summary.mean, digits) + interval,
                published=number(beside.value, 6) if beside else "",
                note=beside.note if beside else "",
                runs=len(summary.values),
            )
        )
    for each in experiment.published:
        if (each.metric, each.series, each.x) not in shown:
            name = names.get((each.metric, each.x), place(each.x))
            value = number(each.value, 6)
            found.append(Row(each.metric, each.series, name, "not run", value, each.note, 0))
    return found


def number(value: float, digits: int) -> str:
    """Write a number with so many significant digits, without an exponent where possible."""
    if value and (abs(value) >= 10**digits or abs(value) < 1e-4):
        return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.{digits}g}"
    return f"{value:,.{digits}g}"
