"""B4: a T1 with a queue that the window overruns a little, up to 12 MB (figure 7)."""

from __future__ import annotations

from . import satellite_links as text
from .allman import GOODPUT_BYTES_PER_S, KB, MB
from .rules import not_below, order
from .satellite_links import RENO, RTT_S, SACK, XFTP
from .spec import Experiment, Point, Published, Timeline

QUEUE_PACKETS = 100
WINDOW_BYTES = 160 * KB
"""320 segments; the channel holds 202, so 118 would have to wait."""

SIZES = (200 * KB, MB, 5 * MB, 12 * MB)


def points(quick: bool) -> tuple[Point, ...]:
    """Give Reno, SACK and XFTP for each size."""
    return text.points(
        (RENO, SACK, XFTP),
        SIZES[:2] if quick else SIZES,
        topology="acts_t1",
        parameters={"rtt_s": RTT_S, "queue": QUEUE_PACKETS},
        window_bytes=WINDOW_BYTES,
        goodput_bytes_per_s=GOODPUT_BYTES_PER_S,
    )


EXPERIMENT = Experiment(
    name="B4",
    title="A T1, too little buffer",
    source="Allman, Hayes, Kruse and Ostermann 1997, figure 7",
    measures="Reno and SACK with a window a little too large, XFTP with a quarter of it on each "
    "of 4 connections; 200 KB to 12 MB",
    points=points,
    metrics=text.metrics(GOODPUT_BYTES_PER_S),
    figures=(
        text.figure(f"T1, 580 ms, {QUEUE_PACKETS} packets of queue"),
        Timeline(
            quantity="window",
            title="windows during 12 MB",
            points=((RENO, 12 * MB), (SACK, 12 * MB), (XFTP, 12 * MB)),
        ),
    ),
    published=(
        Published(metric="utilisation", series=RENO, x=12 * MB, value=32),
        Published(metric="utilisation", series=SACK, x=12 * MB, value=63),
        Published(metric="utilisation", series=XFTP, x=12 * MB, value=87),
    ),
    rules=(
        order("utilisation", (XFTP, SACK, RENO), 12 * MB),
        not_below("utilisation", XFTP, RENO, SIZES),
    ),
    deviations=(
        *text.DEVIATIONS,
        "neither window nor queue are told in the text: 160 KB meet a queue of 100 packets",
    ),
)
