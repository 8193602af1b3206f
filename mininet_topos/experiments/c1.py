"""C1: the buffer, with an initial window of one segment (figure 3)."""

from __future__ import annotations

from dataclasses import replace

from .marchese import BUFFERS, DEVIATIONS, DROPS, KB, REFERENCE, TIME, point
from .rules import at_least, at_most, best_inside, compare
from .spec import Experiment, Figure, Point, Published, Timeline

SERIES = "IW 1"


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per buffer."""
    return tuple(
        point(SERIES, kbytes, replace(REFERENCE, buffer_bytes=round(kbytes) * KB))
        for kbytes in BUFFERS
        if not quick or kbytes in (64, 320, 640)
    )


EXPERIMENT = Experiment(
    name="C1",
    title="Buffers of 64 to 640 KB",
    source="Marchese 2001, figure 3",
    measures="time of 2.8 MB over 2 Mbit/s, 540 ms, by the buffer of both ends, initial window 1",
    points=points,
    metrics=(TIME, DROPS),
    figures=(
        Figure(
            metric="time",
            title="2.8 MB, initial window 1",
            x_label="buffer, kbytes",
            x_names=BUFFERS,
        ),
        Timeline(
            quantity="throughput",
            title="throughput over time",
            points=tuple((SERIES, kbytes) for kbytes in (64, 192, 320, 640)),
        ),
    ),
    published=(
        Published(metric="time", series=SERIES, x=64, value=49.21),
        Published(metric="time", series=SERIES, x=320, value=15, note="about, in the best case"),
    ),
    rules=(
        best_inside("time", SERIES, tuple(BUFFERS), largest=False),
        compare(
            "a buffer of 64 kbytes takes at least twice as long as one of 320: 30 s more",
            "time",
            (SERIES, 64),
            (SERIES, 320),
            30,
        ),
        at_most("drops", SERIES, 64, 0),
        at_most("drops", SERIES, 320, 0),
        at_least("drops", SERIES, 640, 1),
    ),
    deviations=DEVIATIONS,
)
