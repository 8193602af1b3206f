"""D4: SACK and NewReno over growing round-trip times (figure 4.13)."""

from __future__ import annotations

from .flows import Bulk
from .rules import at_least, compare, ratio
from .spec import Experiment, Point, Timeline
from .testbed import (
    DEVIATIONS,
    GOODPUT_KBPS,
    METRICS,
    RTTS_MS,
    SATELLITE,
    STANDARD,
    figure,
    point,
)

SACK, NEWRENO = "SACK NewReno", "NewReno"
SIZE_BYTES = 10_000_000
QUICK_RTTS_MS = (20, 600)


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer of 10 MB per kind of TCP and RTT."""
    return tuple(
        point(
            name,
            rtt_ms,
            Bulk(name=SATELLITE, size_bytes=SIZE_BYTES, sockets=STANDARD),
            seconds=1.15 * 8 * SIZE_BYTES / GOODPUT_KBPS / 1000 + 10 * rtt_ms / 1000,
            sack=name == SACK,
        )
        for rtt_ms in (QUICK_RTTS_MS if quick else RTTS_MS)
        for name in (SACK, NEWRENO)
    )


EXPERIMENT = Experiment(
    name="D4",
    title="SACK and NewReno by round-trip time",
    source="Henderson 1999, figure 4.13",
    measures="throughput of 10 MB over 1.3 Mbit/s, RTT 20 to 600 ms",
    points=points,
    metrics=METRICS,
    figures=(
        figure("10 MB, 1.3 Mbit/s"),
        Timeline(
            quantity="window",
            title="windows at 600 ms",
            points=((SACK, 600), (NEWRENO, 600)),
        ),
    ),
    rules=(
        at_least("throughput", SACK, 20, 0.9 * GOODPUT_KBPS),
        compare(
            "SACK with NewReno loses at most 10% from 20 to 600 ms",
            "throughput",
            (SACK, 600),
            (SACK, 20),
            -0.1 * GOODPUT_KBPS,
        ),
        ratio("throughput", SACK, NEWRENO, 600, 1.0),
        compare(
            "NewReno is slower at 600 ms than at 20",
            "throughput",
            (NEWRENO, 20),
            (NEWRENO, 600),
        ),
    ),
    deviations=(
        *DEVIATIONS,
        "SACK with Reno's window, and plain Reno, are not in the kernel: two of the four lines of "
        "the figure cannot be drawn",
    ),
)
