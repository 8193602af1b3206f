"""Numbers of all runs: a mean and its 95% confidence interval per series, x and metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, mean, stdev

from .measures import Metric
from .outcome import Outcome

_STUDENT_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Quantiles 0.975 of Student's distribution for 1 to 30 degrees of freedom."""


def student_95(degrees_of_freedom: int) -> float:
    """Give the factor of a two-sided 95% interval; beyond 30 degrees within 0.1% (Abramowitz and
    Stegun 26.7.5, two terms)."""
    if degrees_of_freedom <= len(_STUDENT_95):
        return _STUDENT_95[degrees_of_freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees_of_freedom)


@dataclass(frozen=True, slots=True)
class Summary:
    """Some runs of one point."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return mean(self.values)

    @property
    def half_width(self) -> float | None:
        """Half of the 95% confidence interval of the mean; None with a single run."""
        count = len(self.values)
        if count < 2:
            return None
        return student_95(count - 1) * stdev(self.values) / math.sqrt(count)


def place(x: float) -> str:
    """Write a place on the x axis: file sizes and rates in full."""
    return f"{x:,.10g}"


Key = tuple[str, str, float]
"""Metric, series, x."""


class MissingPoint(LookupError):
    """A rule asks for a point that was not run or cannot be used."""


@dataclass(frozen=True, slots=True)
class Table:
    """All numbers of an experiment."""

    summaries: Mapping[Key, Summary] = field(default_factory=dict)

    def at(self, metric: str, series: str, x: float) -> float:
        """Give a mean. Raises MissingPoint."""
        summary = self.summaries.get((metric, series, x))
        if summary is None:
            raise MissingPoint(f"{series or metric} at {place(x)} was not measured")
        return summary.mean

    def xs(self, metric: str, series: str) -> tuple[float, ...]:
        """Give the measured places of a series in order."""
        return tuple(sorted(x for m, s, x in self.summaries if (m, s) == (metric, series)))

    def series(self, metric: str) -> tuple[str, ...]:
        """Name the series of a metric, in the order of their points."""
        return tuple(dict.fromkeys(s for m, s, _ in self.summaries if m == metric))


def tabulate(outcomes: Sequence[Outcome], metrics: Iterable[Metric]) -> Table:
    """Measure every usable outcome; runs of the same point are summed up.

    A metric with a baseline compares with the run of the same repeat; without it there is no
    number.
    """
    usable = [outcome for outcome in outcomes if outcome.usable]
    by_place = {(o.series, o.x, o.repeat): o for o in usable}
    found: dict[Key, list[float]] = {}
    for metric in metrics:
        for outcome in usable:
            value = _number(metric, outcome, by_place) if metric.applies(outcome) else None
            if value is not None and math.isfinite(value):
                found.setdefault((metric.name, outcome.series, outcome.x), []).append(value)
    return Table({key: Summary(tuple(values)) for key, values in found.items()})


def _number(
    metric: Metric, outcome: Outcome, by_place: Mapping[tuple[str, float, int], Outcome]
) -> float | None:
    """Measure an outcome, against those of the same repeat that the metric compares it with."""
    if metric.rivals is not None:
        places = metric.rivals(outcome.series, outcome.x)
        found = (by_place.get((*place, outcome.repeat)) for place in places)
        return metric.lead(outcome, [rival for rival in found if rival is not None])
    if metric.baseline is None:
        return metric.value(outcome)
    baseline = by_place.get((*metric.baseline(outcome.series, outcome.x), outcome.repeat))
    return None if baseline is None else metric.value(outcome, baseline)
