"""What the rows of the TCP-ADaLR thesis share: its network, its four TCPs, its numbers.

The thesis gives response times of one file; as small files and large ones are compared here, what
is judged is payload per time, and published times are turned into that. 1 MB is 10⁶ bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuning.adalr import receive_window_bytes

from ..tcp_settings import TcpSettings, nineties
from .flows import Crowd, Sockets
from .measures import Metric, data_time, queue_drops, retransmits, throughput
from .rules import Rule, ratio
from .spec import Figure, Point, Published, Scenario

KB, MB = 1000, 1_000_000

SEGMENT_BYTES = 1460
WINDOW_BYTES = 65_535
INITIAL_WINDOW = 2
RTO_MIN_S = 1.0
"""All of table 7.4."""

RTT_S = 0.52
PUBLISHED_BYTES = 50 * MB

ADALR_SACK, ADALR_NEWRENO = "ADaLR SACK", "ADaLR NewReno"
SACK, NEWRENO = "SACK", "NewReno"
VARIANTS = (ADALR_SACK, ADALR_NEWRENO, SACK, NEWRENO)
PLAIN = {ADALR_SACK: SACK, ADALR_NEWRENO: NEWRENO}
"""What each is an extension of."""

DELAYED, AT_ONCE = 1.0, 0.0
ACKS = {DELAYED: "delayed ACKs", AT_ONCE: "an ACK for each"}

SATELLITE = "satellite"

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
"""Large and fixed: the window is the route's."""


def window_bytes(variant: str, rtt_s: float = RTT_S) -> int:
    """Give the window that the receiver offers: with ADaLR the larger one."""
    if variant not in PLAIN:
        return WINDOW_BYTES
    return receive_window_bytes(WINDOW_BYTES, rtt_s, SEGMENT_BYTES)


def stack(variant: str, rtt_s: float = RTT_S) -> TcpSettings:
    """Give the hosts' TCP."""
    return nineties(
        sack=variant in (ADALR_SACK, SACK),
        mss_bytes=SEGMENT_BYTES,
        initial_window_segments=INITIAL_WINDOW,
        rto_min_s=RTO_MIN_S,
        window_bytes=window_bytes(variant, rtt_s),
        quick_ack=True,
        moderate_rcvbuf=False,
        receive_buffer_bytes=(4096, RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES),
    )


def sockets(variant: str) -> Sockets:
    """Give the sender: ADaLR, or the TCP of the text, which counts ACKs."""
    algorithm = "xftp_adalr" if variant in PLAIN else "xftp_reno97"
    return Sockets(congestion=algorithm, initial_window_segments=INITIAL_WINDOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The hybrid network with what a row changes of it."""

    rtt_s: float = RTT_S
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Of the topology."""

    typical_bytes_per_s: float = 110_000
    """What a plain TCP gets, about."""

    packets_per_s: float = 420.0
    """Of both hops at full load, ACKs included."""


def point(
    series: str,
    x: float,
    variant: str,
    size_bytes: int,
    network: Network,
    *,
    delayed: bool = True,
    typical_bytes_per_s: float | None = None,
) -> Point:
    """Give one FTP download."""
    rate = typical_bytes_per_s or network.typical_bytes_per_s
    seconds = 10 + size_bytes / rate
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology="adalr",
            parameters=network.parameters,
            tcp=stack(variant, network.rtt_s),
            delayed_acks=delayed,
            delayed_acks_on=SATELLITE,
            path_rtt_s=network.rtt_s,
            flows=(
                Crowd(
                    name="ftp",
                    size_bytes=size_bytes,
                    window_bytes=window_bytes(variant, network.rtt_s),
                    sockets=sockets(variant),
                ),
            ),
            seconds=seconds,
            timeout_s=6 * seconds + 120,
            packets_per_s=network.packets_per_s,
        ),
    )


def by_acks(variants: Sequence[str], size_bytes: int, network: Network) -> tuple[Point, ...]:
    """Give each variant with and without delayed ACKs: the tables 7.5 to 7.7."""
    return tuple(
        point(variant, acks, variant, size_bytes, network, delayed=acks == DELAYED)
        for acks in ACKS
        for variant in variants
    )


def lossless_points(quick: bool, network: Network) -> tuple[Point, ...]:
    """Give the points of a table without losses; quick: those of SACK with delayed ACKs only."""
    if quick:
        return tuple(point(each, DELAYED, each, 8 * MB, network) for each in (ADALR_SACK, SACK))
    return by_acks(VARIANTS, PUBLISHED_BYTES, network)


def published(times: Mapping[str, tuple[float, float]]) -> tuple[Published, ...]:
    """Turn a table's times, with and without delayed ACKs, into rates; ADaLR's and the others'."""
    return tuple(
        published_rate(variant, acks, time)
        for variant in VARIANTS
        for acks, time in zip(ACKS, times["ADaLR" if variant in PLAIN else "plain"], strict=True)
    )


def published_rate(series: str, x: float, time_s: float, size: int = PUBLISHED_BYTES) -> Published:
    """Turn a published time of a file into a rate."""
    return Published(
        metric="throughput",
        series=series,
        x=x,
        value=round(size / time_s / KB, 1),
        note=f"{time_s:g} s for {size / MB:g} MB",
    )


def faster(
    xs: Iterable[float] = tuple(ACKS), least: float = 1.0, most: float = float("inf")
) -> tuple[Rule, ...]:
    """Give the rule for each pair of ADaLR and what it extends."""
    return tuple(
        ratio("throughput", variant, plain, x, least, most)
        for x in xs
        for variant, plain in PLAIN.items()
    )


METRICS = (
    Metric(name="throughput", label="throughput, kB/s", measure=throughput(unit_bytes=KB)),
    Metric(name="time", label="time of the file, s", measure=data_time()),
    Metric(name="drops", label="packets dropped by the gateway", measure=queue_drops(SATELLITE)),
    Metric(name="again", label="segments sent again", measure=retransmits()),
)


def bars(title: str, x_names: Mapping[float, str] | None = None, x_label: str = "") -> Figure:
    """Give throughputs as bars."""
    return Figure(
        metric="throughput",
        title=title,
        x_label=x_label,
        kind="bars",
        x_names=ACKS if x_names is None else x_names,
        series=VARIANTS,
    )


DEVIATIONS = (
    "ADaLR's sender enlarges the receiver's window, which a kernel's sender may not: the receiver "
    "offers the larger window instead, by the same rule and fixed for the connection, 77 KB "
    "at 520 ms",
    "the 200 ms that ADaLR adds after a time-out and its limit of three retransmitted segments "
    "cannot be reached from a congestion-control program",
    "the receiver acknowledges every second segment by leaving out every second ACK on the "
    "satellite, or acknowledges each",
    "a file is a plain TCP connection's payload: the simulator's FTP had no more",
    "the other TCPs count ACKs, one segment each, as the simulator's did; NewReno is Linux without "
    "SACK",
)
