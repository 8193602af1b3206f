"""E6: TCP-ADaLR with congestion at the gateway and no errors (table 7.9)."""

from __future__ import annotations

from . import adalr
from .adalr import ADALR_NEWRENO, ADALR_SACK, MB, NEWRENO, SACK, VARIANTS, Network
from .spec import Experiment, Point, Timeline

SMALL_QUEUE = 8.0
"""Ours: one that slow start overflows here, as 15 packets are not."""

QUEUES = {SMALL_QUEUE: "8 packets", 15.0: "15 packets", 25.0: "25 packets"}
"""Section 7.3 says 15 for FTP, section 7.5.2 says 25."""

SIZE, QUICK_SIZE = 20 * MB, 4 * MB
PUBLISHED_QUEUE = 25.0
PUBLISHED_S = {ADALR_SACK: 1212.7, ADALR_NEWRENO: 1228.0, SACK: 1224.8, NEWRENO: 1216.6}


def network(queue_packets: float) -> Network:
    """Give the network with a small queue at the gateway."""
    return Network(parameters={"queue": round(queue_packets)})


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP with each queue, with delayed ACKs."""
    size = QUICK_SIZE if quick else SIZE
    return tuple(
        adalr.point(variant, queue, variant, size, network(queue))
        for queue in ((SMALL_QUEUE,) if quick else QUEUES)
        for variant in ((ADALR_SACK, SACK) if quick else VARIANTS)
    )


EXPERIMENT = Experiment(
    name="E6",
    title="TCP-ADaLR with congestion",
    source="TCP-ADaLR thesis, table 7.9",
    measures="payload per time with a queue of 8, 15 or 25 packets at the gateway, delayed ACKs",
    points=points,
    metrics=adalr.METRICS,
    figures=(
        adalr.bars("2048/256 kbit/s, 520 ms, a small queue at the gateway", QUEUES),
        Timeline(
            quantity="window",
            title="windows, 8 packets",
            points=((ADALR_SACK, SMALL_QUEUE), (SACK, SMALL_QUEUE)),
        ),
        Timeline(
            quantity="queue",
            title="the gateway's queue, 8 packets",
            link=adalr.SATELLITE,
            points=((ADALR_SACK, SMALL_QUEUE), (SACK, SMALL_QUEUE)),
        ),
    ),
    published=tuple(
        adalr.published_rate(variant, PUBLISHED_QUEUE, time)
        for variant, time in PUBLISHED_S.items()
    ),
    rules=adalr.faster(QUEUES, least=0.9),
    deviations=(
        *adalr.DEVIATIONS,
        "files are 20 MB: the queue can overflow in slow start only, as no window here is above "
        "rate x RTT; 15 packets were seen to hold all that comes, so 8 are run as well",
    ),
)
