"""C5: slow start that speeds up to a threshold, "Linear thr" (figure 10, table 6)."""

from __future__ import annotations

from .marchese import (
    DEVIATIONS,
    DROPS,
    LINEAR_DEVIATION,
    LONG,
    SHORT,
    TIME,
    against_reference,
    linear,
    reference_of,
)
from .rules import at_most, compare, falls
from .spec import Experiment, Figure, Point, Published, Timeline

THRESHOLDS = (10, 20, 30, 50)
PUBLISHED_SHORT = {10: 2.22, 20: 2.12, 30: 2.09, 50: 1.62}


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer of each file per threshold."""
    found = against_reference([(thr, linear(thr)) for thr in THRESHOLDS], (SHORT, LONG))
    left_out = {(LONG, 20), (LONG, 30), (reference_of(LONG), 1)}
    return tuple(each for each in found if not quick or (each.series, each.x) not in left_out)


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
    published=(
        Published(metric="time", series=reference_of(SHORT), x=1, value=4.42),
        Published(metric="time", series=reference_of(LONG), x=1, value=49.21),
        *(Published(metric="time", series=SHORT, x=t, value=v) for t, v in PUBLISHED_SHORT.items()),
        Published(metric="time", series=LONG, x=10, value=13.8, note="from a gain of 72%"),
        Published(metric="time", series=LONG, x=20, value=13.15),
        Published(metric="time", series=LONG, x=50, value=12.8, note="from a gain of 74%"),
    ),
    rules=(
        compare(
            "100 KB: the reference takes longer than Linear 10, by more than a second",
            "time",
            (reference_of(SHORT), 1),
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
