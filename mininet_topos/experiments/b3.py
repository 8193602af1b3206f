"""B3: a T1 with enough buffer, up to 30 MB (figure 6)."""

from __future__ import annotations

from . import satellite_links as text
from .allman import GOODPUT_BYTES_PER_S, KB, MB
from .rules import at_least, not_below, rises
from .satellite_links import RENO, RTT_S, XFTP
from .spec import Experiment, Point, Published

WINDOW_BYTES = 112 * KB
SIZES = (200 * KB, MB, 5 * MB, 12 * MB, 30 * MB)


def points(quick: bool) -> tuple[Point, ...]:
    """Give Reno and XFTP for each size."""
    return text.points(
        (RENO, XFTP),
        SIZES[:2] if quick else SIZES,
        topology="acts_t1",
        parameters={"rtt_s": RTT_S},
        window_bytes=WINDOW_BYTES,
        goodput_bytes_per_s=GOODPUT_BYTES_PER_S,
    )


EXPERIMENT = Experiment(
    name="B3",
    title="A T1, enough buffer",
    source="Allman, Hayes, Kruse and Ostermann 1997, figure 6",
    measures="a window of 112 KB against XFTP with 4 x 28 KB; 200 KB to 30 MB",
    points=points,
    metrics=text.metrics(GOODPUT_BYTES_PER_S),
    figures=(text.figure("T1, 580 ms, enough buffer", (RENO, XFTP)),),
    published=(
        Published(metric="utilisation", series=RENO, x=30 * MB, value=93),
        Published(metric="utilisation", series=XFTP, x=30 * MB, value=96),
    ),
    rules=(
        at_least("utilisation", RENO, 30 * MB, 90),
        at_least("utilisation", XFTP, 30 * MB, 90),
        not_below("utilisation", XFTP, RENO, SIZES),
        rises("utilisation", RENO, SIZES),
        rises("utilisation", XFTP, SIZES),
    ),
    deviations=text.DEVIATIONS,
)
