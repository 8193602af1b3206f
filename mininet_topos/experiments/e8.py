"""E8: TCP-ADaLR with bit errors and congestion at the gateway (figures 7.40 to 7.49)."""

from __future__ import annotations

from . import bit_errors
from .bit_errors import BERS
from .spec import Experiment, Point

QUEUE_PACKETS = 8
"""As in E6: one that overflows here."""


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP at each bit error rate."""
    return bit_errors.points(quick, queue_packets=QUEUE_PACKETS)


EXPERIMENT = Experiment(
    name="E8",
    title="TCP-ADaLR with bit errors and congestion",
    source="TCP-ADaLR thesis, figures 7.40 to 7.49",
    measures="payload per time at bit error rates of 1e-9 to 1e-5 with a queue of 8 packets at "
    "the gateway, delayed ACKs, and what ADaLR gains",
    points=points,
    metrics=bit_errors.METRICS,
    figures=bit_errors.figures(f"errors and a queue of {QUEUE_PACKETS} packets"),
    rules=bit_errors.no_slower(tuple(ber for ber in BERS if ber > 1e-7)),
    deviations=(
        *bit_errors.DEVIATIONS,
        "the gateway's queue holds 8 packets: the 15 or 25 of the text do not overflow here (E6)",
    ),
)
