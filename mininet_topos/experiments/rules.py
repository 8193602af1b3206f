"""Verdicts: rules that are stated in words and computed from the measured table.

Every constructor here gives a `Rule` whose sentence says exactly what is compared; `judge` finds
whether it holds and with which numbers. A rule about a point that was not measured (--quick, a
failed run) is not judged.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .table import MissingPoint, Table, place


class Verdict(enum.Enum):
    """What became of a rule, or of a whole experiment."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A rule's verdict and the numbers it rests on."""

    verdict: Verdict
    numbers: str


Check = Callable[[Table], tuple[bool, str]]
"""Whether it holds, and the numbers; raises MissingPoint."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on the shape of a figure."""

    text: str
    """The condition, for people."""

    check: Check

    def judge(self, table: Table) -> Judgement:
        """Apply it to what was measured."""
        try:
            holds, numbers = self.check(table)
        except MissingPoint as error:
            return Judgement(Verdict.NOT_JUDGED, str(error))
        return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, numbers)


def overall(judgements: Sequence[Judgement]) -> Verdict:
    """Sum up: a rule that fails decides; without any that holds nothing is judged."""
    verdicts = {judgement.verdict for judgement in judgements}
    for verdict in (Verdict.FAILS, Verdict.HOLDS):
        if verdict in verdicts:
            return verdict
    return Verdict.NOT_JUDGED


def _number(value: float) -> str:
    return f"{value:.4g}"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(_number(value) for value in values)


def _places(xs: Sequence[float]) -> str:
    return ", ".join(place(x) for x in xs)


def _measured(table: Table, metric: str, series: str, xs: Sequence[float]) -> list[float]:
    """Give the measured ones of the places; two at least, or a trend says nothing."""
    values = [table.at(metric, series, x) for x in xs if x in table.xs(metric, series)]
    if len(values) < 2:
        raise MissingPoint(f"{series or metric} was measured at fewer than two of {_places(xs)}")
    return values


def at_least(metric: str, series: str, x: float, bound: float) -> Rule:
    """The value at x is at least the bound."""

    def check(table: Table) -> tuple[bool, str]:
        value = table.at(metric, series, x)
        return value >= bound, _number(value)

    return Rule(f"{metric} of {series} at {place(x)} is at least {_number(bound)}", check)


def at_most(metric: str, series: str, x: float, bound: float) -> Rule:
    """The value at x is at most the bound."""

    def check(table: Table) -> tuple[bool, str]:
        value = table.at(metric, series, x)
        return value <= bound, _number(value)

    return Rule(f"{metric} of {series} at {place(x)} is at most {_number(bound)}", check)


def near(metric: str, series: str, x: float, expected: float, relative: float) -> Rule:
    """The value at x is the expected one within a share of it."""

    def check(table: Table) -> tuple[bool, str]:
        value = table.at(metric, series, x)
        return abs(value - expected) <= relative * abs(expected), _number(value)

    return Rule(
        f"{metric} of {series} at {place(x)} is within {100 * relative:g}% of {_number(expected)}",
        check,
    )


def rises(metric: str, series: str, xs: Sequence[float], slack: float = 0.0) -> Rule:
    """Each value is above the one before; `slack` is the share of it that may be missing."""
    return _trend("rises", 1, metric, series, xs, slack)


def falls(metric: str, series: str, xs: Sequence[float], slack: float = 0.0) -> Rule:
    """Each value is below the one before, but for a share of `slack`."""
    return _trend("falls", -1, metric, series, xs, slack)


def _trend(
    verb: str, sign: int, metric: str, series: str, xs: Sequence[float], slack: float
) -> Rule:
    def check(table: Table) -> tuple[bool, str]:
        values = _measured(table, metric, series, xs)
        pairs = itertools.pairwise(values)
        holds = all(sign * (b - a) > -slack * abs(a) for a, b in pairs)
        return holds, _numbers(values)

    tolerated = f", steps back of up to {100 * slack:g}% apart" if slack else ""
    return Rule(f"{metric} of {series} {verb} over {_places(xs)}{tolerated}", check)


def flat(metric: str, series: str, xs: Sequence[float], spread: float) -> Rule:
    """The values differ by no more than a share of their largest."""

    def check(table: Table) -> tuple[bool, str]:
        values = _measured(table, metric, series, xs)
        return max(values) - min(values) <= spread * abs(max(values)), _numbers(values)

    return Rule(
        f"{metric} of {series} over {_places(xs)} differs by at most {100 * spread:g}%", check
    )


def order(metric: str, series: Sequence[str], x: float, margin: float = 0.0) -> Rule:
    """At x the series come in this order, the largest first, each `margin` above the next."""

    def check(table: Table) -> tuple[bool, str]:
        values = [table.at(metric, name, x) for name in series]
        pairs = itertools.pairwise(values)
        numbers = ", ".join(f"{n} {_number(v)}" for n, v in zip(series, values, strict=True))
        return all(a > b + margin * abs(b) for a, b in pairs), numbers

    apart = f", each by more than {100 * margin:g}%" if margin else ""
    return Rule(f"{metric} at {place(x)}: {' > '.join(series)}{apart}", check)


def not_below(metric: str, upper: str, lower: str, xs: Sequence[float], slack: float = 0.0) -> Rule:
    """At every measured x one series is no less than another, but for a share of `slack`."""

    def check(table: Table) -> tuple[bool, str]:
        places = [x for x in xs if x in table.xs(metric, upper) and x in table.xs(metric, lower)]
        if not places:
            raise MissingPoint(f"{upper} and {lower} were not both measured")
        pairs = [(table.at(metric, upper, x), table.at(metric, lower, x)) for x in places]
        numbers = ", ".join(f"{_number(a)} against {_number(b)}" for a, b in pairs)
        return all(a >= b - slack * abs(b) for a, b in pairs), numbers

    allowed = f" within {100 * slack:g}%" if slack else ""
    return Rule(
        f"{metric} of {upper} is no less than that of {lower}{allowed} at {_places(xs)}", check
    )


def ratio(
    metric: str, upper: str, lower: str, x: float, low: float, high: float = float("inf")
) -> Rule:
    """At x one series is so many times another."""

    def check(table: Table) -> tuple[bool, str]:
        below = table.at(metric, lower, x)
        if below == 0:
            raise MissingPoint(f"{lower} is 0 at {place(x)}")
        value = table.at(metric, upper, x) / below
        return low <= value <= high, f"{_number(value)} times"

    bounds = f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"
    return Rule(f"{metric} of {upper} at {place(x)} is {bounds} times that of {lower}", check)


def best_inside(metric: str, series: str, xs: Sequence[float], *, largest: bool = True) -> Rule:
    """The best value is neither at the first nor at the last place."""

    def check(table: Table) -> tuple[bool, str]:
        places = [x for x in xs if x in table.xs(metric, series)]
        if len(places) < 3:
            raise MissingPoint(f"{series or metric} was measured at fewer than three places")
        values = [table.at(metric, series, x) for x in places]
        best = (max if largest else min)(values)
        return best not in (values[0], values[-1]), _numbers(values)

    word = "largest" if largest else "smallest"
    return Rule(f"{metric} of {series} is {word} between {place(xs[0])} and {place(xs[-1])}", check)


def compare(
    text: str,
    metric: str,
    upper: tuple[str, float],
    lower: tuple[str, float],
    least_difference: float = 0.0,
) -> Rule:
    """One point, (series, x), is above another by more than a difference."""

    def check(table: Table) -> tuple[bool, str]:
        a, b = table.at(metric, *upper), table.at(metric, *lower)
        return a - b > least_difference, f"{_number(a)} against {_number(b)}"

    return Rule(text, check)


def gap_shrinks(metric: str, upper: str, lower: str, xs: Sequence[float]) -> Rule:
    """One series is ahead of another by the more, as a share of it, the earlier the place."""

    def check(table: Table) -> tuple[bool, str]:
        places = [x for x in xs if x in table.xs(metric, upper) and x in table.xs(metric, lower)]
        if len(places) < 2:
            raise MissingPoint(f"{upper} and {lower} were not both measured at two places")
        gaps = [100 * (table.at(metric, upper, x) / table.at(metric, lower, x) - 1) for x in places]
        return all(a > b for a, b in itertools.pairwise(gaps)), _numbers(gaps) + " % ahead"

    return Rule(
        f"{upper} is ahead of {lower} in {metric} by less and less over {_places(xs)}", check
    )
