"""C2: the initial window beside the buffer (figures 4 to 6, table 4)."""

from __future__ import annotations

from .marchese import DEVIATIONS, DROPS, KB, TIME, Tuning, point, time_change
from .rules import at_least, at_most, best_inside, compare, falls
from .spec import Experiment, Figure, Point, Published, Timeline

BUFFERS = {float(size): str(size) for size in (64, 192, 320, 480, 640)}
INITIAL_WINDOWS = (1, 2, 4, 6)


def series(initial_window: int) -> str:
    """Name the line of an initial window."""
    return f"IW {initial_window}"


STANDARD, BEST = series(1), series(6)
QUICK = {(1, 64), (1, 320), (6, 64), (6, 320), (6, 640)}


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per initial window and buffer."""
    return tuple(
        point(
            series(window),
            kbytes,
            Tuning(initial_window=window, buffer_bytes=round(kbytes) * KB),
        )
        for window in INITIAL_WINDOWS
        for kbytes in BUFFERS
        if not quick or (window, kbytes) in QUICK
    )


EXPERIMENT = Experiment(
    name="C2",
    title="Initial window and buffer",
    source="Marchese 2001, figures 4 to 6 and table 4",
    measures="time of 2.8 MB by initial window, 1 to 6, and buffer, 64 to 640 KB",
    points=points,
    metrics=(TIME, time_change(STANDARD), DROPS),
    figures=(
        Figure(
            metric="time",
            title="2.8 MB by initial window and buffer",
            x_label="buffer, kbytes",
            x_names=BUFFERS,
        ),
        Timeline(
            quantity="throughput",
            title="initial window 6 (figure 6)",
            points=tuple((BEST, kbytes) for kbytes in BUFFERS),
        ),
    ),
    published=(
        Published(metric="time", series=STANDARD, x=64, value=49.21),
        Published(metric="time", series=BEST, x=320, value=13.96),
        Published(metric="time change", series=BEST, x=320, value=-71.63, note="a gain of 71.63%"),
    ),
    rules=(
        at_most("time change", BEST, 320, -70),
        best_inside("time", BEST, tuple(BUFFERS), largest=False),
        falls("time", BEST, (64, 192, 320)),
        compare(
            "at 64 kbytes an initial window of 6 is faster than one of 1",
            "time",
            (STANDARD, 64),
            (BEST, 64),
        ),
        compare(
            "at 320 kbytes an initial window of 6 is faster than one of 1",
            "time",
            (STANDARD, 320),
            (BEST, 320),
        ),
        at_least("drops", BEST, 640, 1),
    ),
    deviations=DEVIATIONS,
)
