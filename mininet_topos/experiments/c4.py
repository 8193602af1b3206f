"""C4: K segments per ACK in slow start (figure 8, table 5)."""

from __future__ import annotations

from .marchese import (
    DEVIATIONS,
    DROPS,
    LONG,
    SHORT,
    TIME,
    against_reference,
    by_k,
    reference_of,
)
from .rules import at_least, at_most, compare, falls, flat
from .spec import Experiment, Figure, Point, Published, Timeline

KS = (1, 2, 4, 6, 8, 10)
PUBLISHED_SHORT = {2: 2.15, 4: 1.64, 6: 1.61, 8: 1.59, 10: 1.59}
PUBLISHED_LONG = {1: 13.95, 2: 13.19, 4: 12.65}


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer of each file per K."""
    found = against_reference([(k, by_k(k)) for k in KS], (SHORT, LONG))
    left_out = {(LONG, 2), (LONG, 8), (LONG, 10), (reference_of(LONG), 1)}
    return tuple(each for each in found if not quick or (each.series, each.x) not in left_out)


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
    published=(
        Published(metric="time", series=reference_of(SHORT), x=1, value=4.42),
        Published(metric="time", series=reference_of(LONG), x=1, value=49.21),
        *(Published(metric="time", series=SHORT, x=k, value=v) for k, v in PUBLISHED_SHORT.items()),
        *(Published(metric="time", series=LONG, x=k, value=v) for k, v in PUBLISHED_LONG.items()),
    ),
    rules=(
        compare(
            "100 KB: the reference takes longer than K = 2, by more than a second",
            "time",
            (reference_of(SHORT), 1),
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
