"""C5: slow start that speeds up to a threshold, "Linear thr" (figure 10, table 6)."""

from __future__ import annotations

from .marchese import (
    DEVIATIONS,
    DROPS,
    LINEAR_DEVIATION,
    LONG,
    REFERENCE_PLACE,
    SHORT,
    TIME,
    both_files,
    linear,
    published_times,
    reference_of,
)
from .rules import at_most, compare, falls
from .spec import Experiment, Figure, Point, Timeline

THRESHOLDS = (10, 20, 30, 50)
PUBLISHED_SHORT = {10: 2.22, 20: 2.12, 30: 2.09, 50: 1.62}
PUBLISHED_LONG = {10: 13.8, 20: 13.15, 50: 12.8}
"""At 10 and 50 from gains of 72% and 74%."""

QUICK_LEAVES_OUT = {(LONG, 20), (LONG, 30), (reference_of(LONG), REFERENCE_PLACE)}


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer of each file per threshold."""
    return both_files([(t, linear(t)) for t in THRESHOLDS], QUICK_LEAVES_OUT if quick else ())


EXPERIMENT = Experiment(
    name="C5",
    title="Linear slow start up to a threshold",
    source="Marchese 2001, figure 10 and table 6",
    measures="time of 2.8 MB and 100 KB by the window up to which the n-th ACK adds n segments",
    points=points,
    metrics=(TIME, DROPS),
    figures=(
        Figure(
            metric="time",
            title="100 KB",
            x_label="thr, segments",
            series=(SHORT,),
        ),
        Timeline(
            quantity="throughput",
            title="2.8 MB (figure 10)",
            points=tuple((LONG, thr) for thr in THRESHOLDS),
        ),
    ),
    published=published_times(PUBLISHED_SHORT, PUBLISHED_LONG),
    rules=(
        compare(
            "100 KB: the reference takes longer than Linear 10, by more than a second",
            "time",
            (reference_of(SHORT), REFERENCE_PLACE),
            (SHORT, 10),
            1,
        ),
        falls("time", SHORT, THRESHOLDS, slack=0.03),
        compare(
            "100 KB: Linear 50 is faster than Linear 10, by more than 0.2 s",
            "time",
            (SHORT, 10),
            (SHORT, 50),
            0.2,
        ),
        falls("time", LONG, THRESHOLDS, slack=0.03),
        at_most("drops", LONG, 10, 0),
        at_most("drops", LONG, 50, 0),
    ),
    deviations=(*DEVIATIONS, LINEAR_DEVIATION),
)
