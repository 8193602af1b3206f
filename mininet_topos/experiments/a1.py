"""A1: throughput of the first XFTP, which blocked on every chunk, against its connections
(figure 2.6)."""

from __future__ import annotations

from .a2 import QUEUE_PACKETS, WINDOW_BYTES
from .allman import GOODPUT_BYTES_PER_S, HEADER_BYTES, KB, MB, RTT_S, SEGMENT_BYTES, stack
from .flows import BlockingStripes, Sockets
from .measures import Metric, queue_drops, utilisation
from .rules import compare, falls, near, rises
from .spec import Experiment, Figure, Point, Published, Scenario, Timeline

SERIES = "blocking XFTP"

SOCKETS = Sockets(congestion="xftp_reno97", send_buffer_bytes=36 * KB)
"""SunOS had 24 KB of send buffer as well. Linux wakes a writer only when a third of the buffer is
free (sk_stream_is_writeable of net/sock.h): two thirds of this are 24 KB."""

ONE_CONNECTION_PERCENT = (
    100
    * (WINDOW_BYTES / RTT_S * SEGMENT_BYTES / (SEGMENT_BYTES + HEADER_BYTES))
    / GOODPUT_BYTES_PER_S
)
"""Equation 2.2 less headers, as the text explains its measurement."""


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per number of connections."""
    size = 2 * MB if quick else 5 * MB
    counts = (1, 4, 8, 12) if quick else (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
    return tuple(Point(series=SERIES, x=count, scenario=_scenario(size, count)) for count in counts)


def _scenario(size_bytes: int, connections: int) -> Scenario:
    rate = min(GOODPUT_BYTES_PER_S, connections * 40_000)
    return Scenario(
        topology="acts_t1",
        parameters={"queue": QUEUE_PACKETS},
        tcp=stack(WINDOW_BYTES),
        flows=(
            BlockingStripes(
                name="xftp1996", size_bytes=size_bytes, connections=connections, sockets=SOCKETS
            ),
        ),
        seconds=10 + size_bytes / rate,
    )


EXPERIMENT = Experiment(
    name="A1",
    title="XFTP that blocks per chunk",
    source="Allman 1997, figure 2.6",
    measures="share of a T1's payload rate for a 5 MB file with 24 KB windows, N = 1 to 12",
    points=points,
    metrics=(
        Metric(
            name="utilisation",
            label="utilisation after headers, whole transfer, %",
            measure=utilisation(GOODPUT_BYTES_PER_S),
        ),
        Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
    ),
    figures=(
        Figure(
            metric="utilisation",
            title="5 MB over T1, 560 ms, each chunk of 8 KB waited for",
            x_label="data connections N",
        ),
        Timeline(
            quantity="throughput",
            title="throughput over time",
            points=((SERIES, 1), (SERIES, 4), (SERIES, 8), (SERIES, 12)),
        ),
    ),
    published=(
        Published(
            metric="utilisation",
            series=SERIES,
            x=1,
            value=round(ONE_CONNECTION_PERCENT, 1),
            note="43,886 B/s less 8% headers",
        ),
        Published(metric="utilisation", series=SERIES, x=4, value=87),
        Published(metric="utilisation", series=SERIES, x=8, value=92, note="84% with headers"),
    ),
    rules=(
        near("utilisation", SERIES, 1, ONE_CONNECTION_PERCENT, 0.1),
        rises("utilisation", SERIES, (1, 2, 3, 4)),
        compare(
            "utilisation at 8 connections is above that at 4",
            "utilisation",
            (SERIES, 8),
            (SERIES, 4),
        ),
        falls("utilisation", SERIES, (8, 10, 12), slack=0.02),
        compare(
            "utilisation at 12 connections is below that at 8",
            "utilisation",
            (SERIES, 8),
            (SERIES, 12),
        ),
    ),
    deviations=(
        "sender and receiver are a small program of ours that writes and reads whole chunks in "
        "turn, waiting for each, on hosts that are not slow themselves: what Sun IPX workstations "
        "lost besides is not there",
        "the send buffer is fitted: of 24, 36 and 48 KB that were tried with 2 MB, 24 give one "
        "connection 21.5% and four 62%, as Linux fills two thirds of it; 36 and 48 KB both give "
        "23.1%, the window's rate, and 76 to 77%. It is 36 KB here",
        "the router's queue is not told in the text: it holds what 8 connections overrun it by, "
        "and not what 10 do",
    ),
)
