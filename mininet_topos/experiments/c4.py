"""C4: K segments per ACK in slow start (figure 8, table 5)."""

from __future__ import annotations

from .marchese import (
    DEVIATIONS,
    DROPS,
    LONG,
    REFERENCE_PLACE,
    SHORT,
    TIME,
    both_files,
    by_k,
    published_times,
    reference_of,
)
from .rules import at_least, at_most, compare, falls, flat
from .spec import Experiment, Figure, Point, Timeline

KS = (1, 2, 4, 6, 8, 10)
PUBLISHED_SHORT = {2: 2.15, 4: 1.64, 6: 1.61, 8: 1.59, 10: 1.59}
PUBLISHED_LONG = {1: 13.95, 2: 13.19, 4: 12.65}

QUICK_LEAVES_OUT = {(LONG, 2), (LONG, 8), (LONG, 10), (reference_of(LONG), REFERENCE_PLACE)}


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer of each file per K."""
    return both_files([(k, by_k(k)) for k in KS], QUICK_LEAVES_OUT if quick else ())


EXPERIMENT = Experiment(
    name="C4",
    title="K segments per ACK",
    source="Marchese 2001, figure 8 and table 5",
    measures="time of 2.8 MB and 100 KB by the growth of slow start per ACK, IW 6, 320 KB",
    points=points,
    metrics=(TIME, DROPS),
    figures=(
        Figure(
            metric="time",
            title="100 KB",
            x_label="K, segments per ACK in slow start",
            series=(SHORT, reference_of(SHORT)),
        ),
        Figure(
            metric="time",
            title="2.8 MB",
            x_label="K, segments per ACK in slow start",
            series=(LONG,),
        ),
        Timeline(
            quantity="throughput",
            title="2.8 MB (figure 8)",
            points=tuple((LONG, k) for k in KS),
        ),
    ),
    published=published_times(PUBLISHED_SHORT, PUBLISHED_LONG),
    rules=(
        compare(
            "100 KB: the reference takes longer than K = 2, by more than a second",
            "time",
            (reference_of(SHORT), REFERENCE_PLACE),
            (SHORT, 2),
            1,
        ),
        falls("time", SHORT, (1, 2, 4)),
        flat("time", SHORT, (4, 6, 8, 10), 0.1),
        falls("time", LONG, (1, 2, 4)),
        at_most("drops", LONG, 4, 0),
        at_least("drops", LONG, 6, 1),
    ),
    deviations=DEVIATIONS,
)
