"""A4: larger initial windows where the window overruns the queue (figure 3.2)."""

from __future__ import annotations

from .chapter3 import (
    DEVIATIONS,
    HUNDRED,
    LARGE,
    LARGEST,
    MIDDLE,
    OTHER_METRICS,
    OVERRUNNING_WINDOW_BYTES,
    SMALL,
    by_initial_window,
    figure,
    gain,
)
from .rules import at_least, at_most, order, rises
from .spec import Experiment, Point


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per size and initial window."""
    return by_initial_window(OVERRUNNING_WINDOW_BYTES, "xftp_reno97", quick)


EXPERIMENT = Experiment(
    name="A4",
    title="Larger initial windows, queue overrun",
    source="Allman 1997, figure 3.2",
    measures="throughput gained by initial windows of 1 to 32 segments, files of 30 KB to 5 MB",
    points=points,
    metrics=(gain("first"), *OTHER_METRICS),
    figures=(figure("larger initial windows, window above the queue"),),
    rules=(
        rises("gain", SMALL, (1, 4, 32)),
        rises("gain", HUNDRED, (1, 4, 32)),
        order("gain", (SMALL, HUNDRED, MIDDLE), 32),
        at_most("gain", LARGE, 32, 30),
        at_least("gain", LARGE, 32, -30),
        at_most("gain", LARGEST, 32, 15),
        at_least("gain", LARGEST, 32, -15),
        at_least("drops", LARGEST, 1, 1),
    ),
    deviations=DEVIATIONS,
)
