"""A3: larger initial windows where nothing is lost (figure 3.1)."""

from __future__ import annotations

from .chapter3 import (
    CALM_WINDOW_BYTES,
    DEVIATIONS,
    HUNDRED,
    LARGE,
    LARGEST,
    MIDDLE,
    OTHER_METRICS,
    SMALL,
    by_initial_window,
    figure,
    gain,
)
from .rules import at_least, at_most, order, rises
from .spec import Experiment, Point, Published


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per size and initial window."""
    return by_initial_window(CALM_WINDOW_BYTES, "xftp_reno97", quick)


EXPERIMENT = Experiment(
    name="A3",
    title="Larger initial windows, nothing lost",
    source="Allman 1997, figure 3.1",
    measures="throughput gained by initial windows of 1 to 32 segments, files of 30 KB to 5 MB",
    points=points,
    metrics=(gain("first"), *OTHER_METRICS),
    figures=(figure("larger initial windows, window below the queue"),),
    published=(
        Published(metric="gain", series=SMALL, x=4, value=27),
        Published(metric="gain", series=SMALL, x=32, value=180, note="roughly"),
        Published(metric="gain", series=LARGEST, x=32, value=3),
    ),
    rules=(
        rises("gain", SMALL, (1, 4, 32)),
        rises("gain", MIDDLE, (1, 4, 32)),
        order("gain", (SMALL, HUNDRED, MIDDLE, LARGE, LARGEST), 32),
        order("gain", (SMALL, MIDDLE), 32),
        at_least("gain", SMALL, 32, 90),
        at_most("gain", LARGEST, 32, 15),
        at_most("drops", SMALL, 32, 0),
        at_most("drops", LARGEST, 32, 0),
    ),
    deviations=DEVIATIONS,
)
