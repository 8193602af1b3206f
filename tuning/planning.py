"""What a transfer over a given link needs, and how long it will take: `xftp plan`.

plan(50e6, 0.6, size_bytes=50_000_000).with_n.total_s      9.5 s
plan(50e6, 0.6).tuning()                                   a SocketTuning for each connection
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .errors import check_integer, check_number
from .model import (
    LINUX_INITIAL_WINDOW_SEGMENTS,
    MSS_BYTES,
    SETUP_ROUND_TRIPS,
    Link,
    Response,
    TransferTime,
    connections_needed,
    loss_window_segments,
    slow_start_threshold_segments,
    time_at_limit,
    transfer_time,
)
from .sockopts import MAX_INITIAL_WINDOW_SEGMENTS, SocketTuning

DEFAULT_SIZE_BYTES = 100_000_000
"""A file of no particular size."""

DEFAULT_MAX_CONNECTIONS = 8
"""Allman 1997 B.5."""

MAX_CONNECTIONS = 64
"""More is a mistake: each costs the peer a socket and a share of the network's patience."""

MIN_BUFFER_BYTES = 16 * 1024
"""Two records of 8 KiB; Allman's connections had 24 KiB."""

MAX_BUFFER_BYTES = 64 * 1024 * 1024
"""Per connection and direction: 64 MiB carry a gigabit over a geostationary satellite twice."""

BUFFERS_PER_WINDOW = 4
"""Room for a window in flight, and for one more for each round trip in which a lost segment, or its
repeat that was lost too, keeps back what came behind it. With two, 50 Mbit/s over 600 ms fell by a
quarter for a second or two whenever at 1% loss a repeat was lost; with four the link stayed full.
"""

UNSENT_S = 0.05
MIN_UNSENT_BYTES = 16 * 1024
"""TCP_NOTSENT_LOWAT: what a connection sends in that time, and at least two records."""

WORTHWHILE = 1.02
"""More connections are opened only for a time shorter by more than this factor."""

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do with a link, and what to expect of it."""

    link: Link
    """Rate, RTT, loss and segment size that were given."""

    size_bytes: int
    """The file of the expected times."""

    connections: int
    """As few as come within 2% of the shortest time."""

    window_needed_bytes: int
    """Window that fills the link (Allman 1997 equation 2.3)."""

    connections_for_window: int
    """Connections whose allowed windows add up to it (equation 2.5)."""

    connections_for_loss: int
    """Connections whose windows under this loss add up to it."""

    send_buffer_bytes: int
    """SO_SNDBUF of each connection."""

    receive_buffer_bytes: int
    """SO_RCVBUF of each connection."""

    notsent_lowat_bytes: int
    """TCP_NOTSENT_LOWAT of each connection."""

    initial_window_segments: int
    """Initial window of each connection."""

    slow_start_threshold_segments: int
    """Where each connection should leave slow start (section 2.4.5)."""

    pacing_rate_bps: float
    """SO_MAX_PACING_RATE of each connection."""

    sysctls: tuple[tuple[str, int], ...]
    """Least values of both hosts that grant this to an unprivileged process."""

    untuned: TransferTime
    """One connection with the initial window of Linux and buffers that grow by themselves."""

    with_one: TransferTime
    """One connection with the windows that are allowed."""

    with_n: TransferTime
    """The connections of this plan."""

    at_limit: TransferTime
    """The link full from the first byte, headers counted."""

    def tuning(self) -> SocketTuning:
        """Give the settings of each connection's sockets, on both ends."""
        return SocketTuning(
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
            initial_window_segments=self.initial_window_segments,
            pacing_rate_bps=self.pacing_rate_bps,
            notsent_lowat_bytes=self.notsent_lowat_bytes,
        )

    def as_json(self) -> dict[str, Any]:
        """Give the plan as plain values, with its format's version and the totals."""
        values = asdict(self) | {"version": FORMAT_VERSION, "sysctls": dict(self.sysctls)}
        for name in ("untuned", "with_one", "with_n", "at_limit"):
            values[name]["total_s"] = getattr(self, name).total_s
        return values


def plan(
    rate_bps: float,
    rtt_s: float,
    *,
    loss: float = 0.0,
    size_bytes: int = DEFAULT_SIZE_BYTES,
    window_limit_bytes: int | None = None,
    initial_window_segments: int | None = None,
    max_connections: int = DEFAULT_MAX_CONNECTIONS,
    response: Response = Response.CUBIC,
    mss_bytes: int = MSS_BYTES,
    setup_round_trips: float = SETUP_ROUND_TRIPS,
) -> Plan:
    """Compute connections, buffers and initial window for a link, and the expected times.

    window_limit_bytes: largest buffer that both hosts grant a connection; None: what is needed.
    initial_window_segments: as the hosts have it; None: it can be set per socket. Raises
    TuningError for values that cannot be meant.
    """
    link = Link(rate_bps=rate_bps, rtt_s=rtt_s, loss=loss, mss_bytes=mss_bytes)
    check_integer("the size", size_bytes, 1, 2**60, "bytes")
    check_integer("the limit of connections", max_connections, 1, MAX_CONNECTIONS, "connections")
    check_number("the set-up", setup_round_trips, 0, 100, "round trips")
    # The values of each connection are checked as the settings of a socket.
    SocketTuning(
        receive_buffer_bytes=window_limit_bytes, initial_window_segments=initial_window_segments
    )

    def buffer(connections: int) -> int:
        return min(buffer_bytes(link, connections), window_limit_bytes or MAX_BUFFER_BYTES)

    def initial_window(connections: int) -> int:
        return initial_window_segments or initial_window_for(link, connections)

    def expected(connections: int) -> TransferTime:
        return transfer_time(
            link,
            size_bytes,
            connections=connections,
            initial_window_segments=initial_window(connections),
            window_limit_bytes=buffer(connections),
            response=response,
            setup_round_trips=setup_round_trips,
        )

    connections = _fewest(expected, max_connections)
    wanted_buffer = buffer_bytes(link, connections)
    loss_window = loss_window_segments(link, response)
    return Plan(
        link=link,
        size_bytes=size_bytes,
        connections=connections,
        window_needed_bytes=round(link.window_bytes),
        connections_for_window=connections_needed(
            link.window_bytes, window_limit_bytes or MAX_BUFFER_BYTES
        ),
        connections_for_loss=connections_needed(link.window_segments, loss_window),
        send_buffer_bytes=buffer(connections),
        receive_buffer_bytes=buffer(connections),
        notsent_lowat_bytes=notsent_lowat_bytes(rate_bps / connections),
        initial_window_segments=initial_window(connections),
        slow_start_threshold_segments=slow_start_threshold_segments(link, connections),
        pacing_rate_bps=rate_bps / connections,
        sysctls=(("net.core.rmem_max", wanted_buffer), ("net.core.wmem_max", wanted_buffer)),
        untuned=transfer_time(
            link,
            size_bytes,
            initial_window_segments=LINUX_INITIAL_WINDOW_SEGMENTS,
            window_limit_bytes=window_limit_bytes or math.inf,
            response=Response.CUBIC,
            setup_round_trips=setup_round_trips,
        ),
        with_one=expected(1),
        with_n=expected(connections),
        at_limit=time_at_limit(link, size_bytes, setup_round_trips),
    )


def _fewest(expected: Callable[[int], TransferTime], max_connections: int) -> int:
    """Give the smallest number of connections that comes near the shortest time."""
    times = [expected(connections).total_s for connections in range(1, max_connections + 1)]
    return 1 + next(i for i, time_s in enumerate(times) if time_s <= min(times) * WORTHWHILE)


# -- the settings of one of N connections -----------------------------------------------------


def tuning_for(link: Link, connections: int) -> SocketTuning:
    """Give the settings of each of N connections that fill a link together."""
    check_integer("the number of connections", connections, 1, MAX_CONNECTIONS, "connections")
    size_bytes = buffer_bytes(link, connections)
    return SocketTuning(
        send_buffer_bytes=size_bytes,
        receive_buffer_bytes=size_bytes,
        initial_window_segments=initial_window_for(link, connections),
        pacing_rate_bps=link.rate_bps / connections,
        notsent_lowat_bytes=notsent_lowat_bytes(link.rate_bps / connections),
    )


def buffer_bytes(link: Link, connections: int) -> int:
    """Give each of N connections four times its part of rate x RTT, 16 KiB to 64 MiB."""
    size_bytes = round(BUFFERS_PER_WINDOW * link.window_bytes / connections)
    return min(max(size_bytes, MIN_BUFFER_BYTES), MAX_BUFFER_BYTES)


def initial_window_for(link: Link, connections: int) -> int:
    """Give each of N connections its part of rate x RTT in segments, 1 to 1000."""
    segments = int(link.window_bytes / connections / link.mss_bytes)
    return min(max(segments, 1), MAX_INITIAL_WINDOW_SEGMENTS)


def notsent_lowat_bytes(connection_rate_bps: float) -> int:
    """Give what a connection sends in 50 ms, at least 16 KiB."""
    return min(max(int(connection_rate_bps / 8 * UNSENT_S), MIN_UNSENT_BYTES), MAX_BUFFER_BYTES)
