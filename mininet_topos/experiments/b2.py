"""B2: half a T1 with a queue that the window overruns a little (figure 4)."""

from __future__ import annotations

from . import satellite_links as text
from .allman import KB, MB
from .rules import not_below, order
from .satellite_links import RENO, SACK, XFTP
from .spec import Experiment, Point, Published, Timeline

QUEUE_PACKETS = 50
WINDOW_BYTES = 80 * KB
"""160 segments; the channel holds 101, so 59 would have to wait."""

SIZES = (200 * KB, MB, 5 * MB)


def points(quick: bool) -> tuple[Point, ...]:
    """Give Reno, SACK and XFTP for each size."""
    return text.points(
        (RENO, SACK, XFTP),
        SIZES[:2] if quick else SIZES,
        topology="half_t1",
        parameters={"queue": QUEUE_PACKETS},
        window_bytes=WINDOW_BYTES,
        goodput_bytes_per_s=text.HALF_GOODPUT_BYTES_PER_S,
    )


EXPERIMENT = Experiment(
    name="B2",
    title="Half a T1, too little buffer",
    source="Allman, Hayes, Kruse and Ostermann 1997, figure 4",
    measures="Reno and SACK with a window a little too large, XFTP with a quarter of it on each "
    "of 4 connections; 200 KB, 1 and 5 MB",
    points=points,
    metrics=text.metrics(text.HALF_GOODPUT_BYTES_PER_S),
    figures=(
        text.figure(f"half a T1, 580 ms, {QUEUE_PACKETS} packets of queue"),
        Timeline(
            quantity="window",
            title="windows during 5 MB",
            points=((RENO, 5 * MB), (SACK, 5 * MB), (XFTP, 5 * MB)),
        ),
    ),
    published=(
        Published(metric="utilisation", series=SACK, x=5 * MB, value=61),
        Published(metric="utilisation", series=XFTP, x=5 * MB, value=86),
    ),
    rules=(
        order("utilisation", (XFTP, SACK, RENO), 5 * MB),
        not_below("utilisation", XFTP, RENO, SIZES),
    ),
    deviations=(
        *text.DEVIATIONS,
        "neither window nor queue are told in the text: 80 KB meet a queue of 50 packets",
    ),
)
