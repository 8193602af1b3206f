"""What the rows of Henderson's testbed share: one satellite connection of 1.3 Mbit/s."""

from __future__ import annotations

from ..tcp_settings import TcpSettings, nineties
from .flows import Bulk, Sockets
from .henderson import PACKET_BYTES, SEGMENT_BYTES, WINDOW_BYTES, fifo, waiting_s
from .measures import Metric, queue_drops, retransmits
from .outcome import Outcome
from .spec import Figure, Point, Scenario

SATELLITE_BPS = 1.3e6
QUEUE_PACKETS = 50
GOODPUT_KBPS = SATELLITE_BPS * SEGMENT_BYTES / PACKET_BYTES / 1000

RTTS_MS = (20, 50, 100, 200, 400, 600)
SATELLITE, COMPETITOR = "satellite", "competitor"
STANDARD = Sockets(congestion="xftp_reno97")

TRANSIT_BPS = 10e6
TRANSIT_RTT_S = 0.02
"""Of the competitor."""

TRANSIT_PACKETS_PER_S = 4500.0
"""10 Mbit/s and its ACKs, over two links."""


def stack(*, sack: bool) -> TcpSettings:
    """Give BSD/OS 3.0 with large windows, NewReno or SACK."""
    return nineties(
        sack=sack,
        mss_bytes=SEGMENT_BYTES,
        window_bytes=WINDOW_BYTES,
        receive_buffer_bytes=(4096, 4 << 20, 4 << 20),
        congestion_control=STANDARD.congestion,
    )


def point(
    series: str,
    rtt_ms: int,
    flow: Bulk,
    *,
    seconds: float,
    sack: bool = True,
    others: tuple[Bulk, ...] = (),
) -> Point:
    """Give one transfer over the satellite link, by itself or beside others."""
    queue = fifo(QUEUE_PACKETS)
    path_rtt_s = rtt_ms / 1000 + waiting_s(queue, SATELLITE_BPS)
    if others:
        path_rtt_s = min(path_rtt_s, TRANSIT_RTT_S + waiting_s(queue, TRANSIT_BPS))
    return Point(
        series=series,
        x=rtt_ms,
        scenario=Scenario(
            topology="henderson_testbed",
            parameters={
                "queue": queue,
                "transit_queue": queue,
                "background_rtt_s": TRANSIT_RTT_S,
                "rtt_s": rtt_ms / 1000,
                "satellite_bps": SATELLITE_BPS,
            },
            tcp=stack(sack=sack),
            flows=(flow, *others),
            seconds=seconds,
            packets_per_s=TRANSIT_PACKETS_PER_S if others else 600.0,
            path_rtt_s=path_rtt_s,
        ),
    )


def kbps(outcome: Outcome) -> float:
    """Give the satellite connection's payload rate in kbit/s."""
    return 8 * outcome.flow(SATELLITE).throughput_bytes_per_s / 1000


THROUGHPUT = Metric(name="throughput", label="throughput, kbit/s", measure=kbps, digits=4)
METRICS = (
    THROUGHPUT,
    Metric(name="drops", label="packets dropped at the satellite", measure=queue_drops(SATELLITE)),
    Metric(name="again", label="segments sent again", measure=retransmits(SATELLITE)),
)


def figure(title: str) -> Figure:
    """Give throughput over round-trip times."""
    return Figure(metric="throughput", title=title, x_label="RTT, ms")


DEVIATIONS = (
    "1000-byte packets; the text's testbed was Ethernet with delays in the hosts' drivers, here "
    "they are in a link, whose queue of 50 packets the text does not tell",
    "receivers delay their ACKs as Linux does, which acknowledges every segment at first",
)
