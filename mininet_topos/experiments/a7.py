"""A7: larger initial windows and growing by segments acknowledged together (figures 3.3, 3.4)."""

from __future__ import annotations

from dataclasses import replace

from .allman import SIZES
from .chapter3 import (
    CALM_WINDOW_BYTES,
    DEVIATIONS,
    HUNDRED,
    MIDDLE,
    OTHER_METRICS,
    OVERRUNNING_WINDOW_BYTES,
    SMALL,
    STANDARD,
    by_initial_window,
    figure,
    point,
    sizes,
)
from .measures import Metric, throughput
from .rules import Rule, at_least, compare
from .spec import Experiment, Point

OVERRUN = ", overrun"
LARGER_ONLY = "larger window only"


def points(quick: bool) -> tuple[Point, ...]:
    """Give both figures, and the first modification alone to compare with."""
    calm = by_initial_window(CALM_WINDOW_BYTES, "xftp_abc", quick)
    overrun = tuple(
        replace(each, series=_overrun(each.series))
        for each in by_initial_window(OVERRUNNING_WINDOW_BYTES, "xftp_abc", quick)
    )
    alone = tuple(
        point(
            f"{SIZES[size]}, {LARGER_ONLY}",
            4,
            size_bytes=size,
            window_bytes=CALM_WINDOW_BYTES,
            initial_window=4,
        )
        for size in sizes(quick)
    )
    return calm + overrun + alone


def _overrun(series: str) -> str:
    size, comma, rest = series.partition(",")
    return f"{size}{OVERRUN}{comma}{rest}"


def _more_than_alone(size: str) -> tuple[Rule, Rule]:
    return (
        compare(
            f"{size}, nothing lost: initial window 4 and counting gain more than the window alone",
            "gain",
            (size, 4),
            (f"{size}, {LARGER_ONLY}", 4),
        ),
        compare(
            f"{size}, nothing lost: initial window 32 and counting gain more than counting alone",
            "gain",
            (size, 32),
            (size, 1),
        ),
    )


_MEASURED = frozenset(
    name + end for name in SIZES.values() for end in ("", OVERRUN, f", {LARGER_ONLY}")
)


def _standard(series: str, x: float) -> tuple[str, float]:
    return f"{series.removesuffix(f', {LARGER_ONLY}')}, {STANDARD}", 0


EXPERIMENT = Experiment(
    name="A7",
    title="Both modifications of slow start",
    source="Allman 1997, figures 3.3 and 3.4",
    measures="throughput gained by initial window and counting together, files of 30 KB to 5 MB",
    points=points,
    metrics=(
        Metric(
            name="gain",
            label="throughput change, %",
            measure=throughput(),
            baseline=_standard,
            series=_MEASURED,
        ),
        *OTHER_METRICS,
    ),
    figures=(
        replace(figure("both, window below the queue"), series=tuple(SIZES.values())),
        replace(
            figure("both, window above the queue"),
            series=tuple(name + OVERRUN for name in SIZES.values()),
        ),
    ),
    rules=(
        *(rule for size in (SMALL, HUNDRED, MIDDLE) for rule in _more_than_alone(size)),
        *(at_least("gain", size, window, 0) for size in (SMALL, MIDDLE) for window in (4, 32)),
    ),
    deviations=DEVIATIONS,
)
