"""Verdicts: each rule with a table that fits it and one that does not."""

from __future__ import annotations

import pytest

from mininet_topos.experiments import rules
from mininet_topos.experiments.rules import Judgement, Rule, Verdict, overall
from mininet_topos.experiments.table import Summary, Table


def table(**series: dict[float, float]) -> Table:
    return Table(
        {
            ("v", name, x): Summary((value,))
            for name, values in series.items()
            for x, value in values.items()
        }
    )


RISING = {1: 10.0, 2: 20.0, 3: 30.0}
DENTED = {1: 10.0, 2: 9.9, 3: 30.0}
PEAK = {1: 10.0, 2: 30.0, 3: 20.0}
XS = (1, 2, 3)


@pytest.mark.parametrize(
    ("rule", "fits", "fails"),
    [
        (rules.at_least("v", "a", 2, 20), {"a": RISING}, {"a": DENTED}),
        (rules.at_most("v", "a", 2, 15), {"a": DENTED}, {"a": RISING}),
        (rules.near("v", "a", 2, 19, 0.1), {"a": RISING}, {"a": DENTED}),
        (rules.rises("v", "a", XS), {"a": RISING}, {"a": DENTED}),
        (rules.rises("v", "a", XS, slack=0.02), {"a": DENTED}, {"a": PEAK}),
        (rules.falls("v", "a", (2, 3)), {"a": PEAK}, {"a": RISING}),
        (rules.flat("v", "a", (1, 2), 0.02), {"a": DENTED}, {"a": RISING}),
        (rules.order("v", ("a", "b"), 2), {"a": RISING, "b": DENTED}, {"a": DENTED, "b": RISING}),
        (
            rules.order("v", ("a", "b"), 1, 0.1),
            {"a": {1: 12}, "b": {1: 10}},
            {"a": RISING, "b": RISING},
        ),
        (
            rules.not_below("v", "a", "b", XS),
            {"a": RISING, "b": DENTED},
            {"a": DENTED, "b": RISING},
        ),
        (
            rules.ratio("v", "a", "b", 2, 1.5),
            {"a": RISING, "b": DENTED},
            {"a": RISING, "b": RISING},
        ),
        (rules.best_inside("v", "a", XS), {"a": PEAK}, {"a": RISING}),
        (
            rules.best_inside("v", "a", XS, largest=False),
            {"a": {1: 3, 2: 1, 3: 2}},
            {"a": PEAK},
        ),
        (rules.compare("more at 3", "v", ("a", 3), ("a", 1)), {"a": RISING}, {"a": {1: 2, 3: 1}}),
        (
            rules.gap_shrinks("v", "a", "b", (1, 2)),
            {"a": {1: 20, 2: 21}, "b": {1: 10, 2: 20}},
            {"a": {1: 11, 2: 30}, "b": {1: 10, 2: 20}},
        ),
    ],
    ids=lambda value: value.text if isinstance(value, Rule) else "",
)
def test_rule(
    rule: Rule, fits: dict[str, dict[float, float]], fails: dict[str, dict[float, float]]
) -> None:
    assert rule.judge(table(**fits)).verdict is Verdict.HOLDS
    assert rule.judge(table(**fails)).verdict is Verdict.FAILS
    assert rule.judge(table(other=RISING)).verdict is Verdict.NOT_JUDGED


def test_a_trend_takes_the_places_that_were_measured() -> None:
    assert rules.rises("v", "a", (1, 1.5, 3)).judge(table(a=RISING)).verdict is Verdict.HOLDS
    alone = rules.rises("v", "a", (1, 9)).judge(table(a=RISING))
    assert alone.verdict is Verdict.NOT_JUDGED
    assert "fewer than two" in alone.numbers


def test_a_rule_says_what_it_compares_and_with_which_numbers() -> None:
    rule = rules.order("v", ("a", "b"), 2)
    assert rule.text == "v at 2: a > b"
    assert rule.judge(table(a=RISING, b=DENTED)).numbers == "a 20, b 9.9"


def test_one_that_fails_decides() -> None:
    holds, fails, not_judged = (Judgement(verdict, "") for verdict in Verdict)
    assert overall([holds, not_judged]) is Verdict.HOLDS
    assert overall([holds, fails, not_judged]) is Verdict.FAILS
    assert overall([not_judged]) is Verdict.NOT_JUDGED
    assert overall([]) is Verdict.NOT_JUDGED
