"""B1: half a T1 with enough buffer: one large window against four small ones (figure 3)."""

from __future__ import annotations

from . import satellite_links as text
from .allman import KB, MB
from .rules import gap_shrinks, near, not_below
from .satellite_links import RENO, XFTP
from .spec import Experiment, Point, Published

WINDOW_BYTES = 56 * KB
SIZES = (200 * KB, MB, 5 * MB)


def points(quick: bool) -> tuple[Point, ...]:
    """Give Reno and XFTP for each size."""
    return text.points(
        (RENO, XFTP),
        SIZES[:2] if quick else SIZES,
        topology="half_t1",
        parameters={},
        window_bytes=WINDOW_BYTES,
        goodput_bytes_per_s=text.HALF_GOODPUT_BYTES_PER_S,
    )


EXPERIMENT = Experiment(
    name="B1",
    title="Half a T1, enough buffer",
    source="Allman, Hayes, Kruse and Ostermann 1997, figure 3",
    measures="a window of 56 KB against XFTP with 4 x 14 KB; 200 KB, 1 and 5 MB",
    points=points,
    metrics=text.metrics(text.HALF_GOODPUT_BYTES_PER_S),
    figures=(text.figure("half a T1, 580 ms, enough buffer", (RENO, XFTP)),),
    published=(
        Published(
            metric="utilisation", series=RENO, x=5 * MB, value=90, note="the text: about 90%"
        ),
    ),
    rules=(
        not_below("utilisation", XFTP, RENO, SIZES),
        gap_shrinks("utilisation", XFTP, RENO, SIZES),
        near("utilisation", RENO, 5 * MB, 90, 0.08),
    ),
    deviations=text.DEVIATIONS,
)
