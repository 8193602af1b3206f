"""What the rows of Allman, Hayes, Kruse and Ostermann 1997 share: Reno, SACK and XFTP side by side.

Plain FTP is `xftp get -n 1`; XFTP has four connections that share the same window. Receivers
acknowledge every second segment: the text's 11 round trips to a window of 112 KB are those of
delayed ACKs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .allman import GOODPUT_BYTES_PER_S, KB, MB, RENO97, stack
from .flows import Bulk, Xftp
from .measures import Metric, queue_drops, retransmits, steady_utilisation, utilisation
from .spec import Figure, Point, Scenario

RTT_S = 0.58
"""2 x 290 ms."""

HALF_GOODPUT_BYTES_PER_S = GOODPUT_BYTES_PER_S / 2

RENO, SACK, XFTP = "Reno", "SACK", "XFTP"
CONNECTIONS = 4

SIZES: dict[float, str] = {
    200 * KB: "200 KB",
    MB: "1 MB",
    5 * MB: "5 MB",
    12 * MB: "12 MB",
    30 * MB: "30 MB",
}


def points(
    series: Sequence[str],
    sizes: Sequence[int],
    *,
    topology: str,
    parameters: dict[str, Any],
    window_bytes: int,
    goodput_bytes_per_s: float,
) -> tuple[Point, ...]:
    """Give a transfer per kind of TCP and size; a window's size is that of all connections."""
    return tuple(
        point(
            name,
            size,
            size_bytes=size,
            topology=topology,
            parameters=parameters,
            window_bytes=window_bytes,
            seconds=25 * RTT_S + 1.6 * size / goodput_bytes_per_s,
        )
        for size in sizes
        for name in series
    )


def point(
    series: str,
    x: float,
    *,
    size_bytes: int,
    topology: str,
    parameters: dict[str, Any],
    window_bytes: int,
    seconds: float,
    timeout_s: float = 0.0,
    plain_tcp: bool = False,
) -> Point:
    """Give one transfer; plain_tcp: without FTP but for XFTP."""
    connections = CONNECTIONS if series == XFTP else 1
    flow: Xftp | Bulk
    if plain_tcp and series != XFTP:
        flow = Bulk(name="ftp", size_bytes=size_bytes, sockets=RENO97)
    else:
        flow = Xftp(name="ftp", size_bytes=size_bytes, connections=connections, sockets=RENO97)
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology=topology,
            parameters=parameters,
            tcp=stack(window_bytes // connections, sack=series == SACK),
            delayed_acks=True,
            flows=(flow,),
            seconds=seconds,
            timeout_s=timeout_s or 10 * seconds + 120,
        ),
    )


def metrics(goodput_bytes_per_s: float) -> tuple[Metric, ...]:
    """Give what all of these rows measure."""
    return (
        Metric(
            name="utilisation",
            label="share of the link's payload rate, %",
            measure=utilisation(goodput_bytes_per_s),
        ),
        Metric(
            name="second half",
            label="the same, second half of the file, %",
            measure=steady_utilisation(goodput_bytes_per_s, 0.5, 0.95),
        ),
        Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
        Metric(name="again", label="segments sent again", measure=retransmits()),
    )


def figure(title: str, series: tuple[str, ...] = (RENO, SACK, XFTP)) -> Figure:
    """Give utilisation over file sizes."""
    return Figure(
        metric="utilisation",
        title=title,
        x_label="file",
        kind="bars",
        x_names=SIZES,
        series=series,
    )


DEVIATIONS = (
    "Reno is Linux without SACK, which is NewReno; plain Reno, which leaves recovery at the first "
    "partial ACK and often waits for a time-out, is slower than that",
    "the receiver acknowledges every second segment as every second ACK is left out on its way",
    "shares are of 512 bytes in each 552 of the line's rate; the text's optimum counts framing too",
)
