"""E7: TCP-ADaLR with bit errors and no congestion (figures 7.28 to 7.37)."""

from __future__ import annotations

from . import bit_errors
from .adalr import ADALR_SACK
from .bit_errors import BERS, HIGH_BER, LOW_BER
from .rules import compare
from .spec import Experiment, Point


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP at each bit error rate."""
    return bit_errors.points(quick, queue_packets=None)


EXPERIMENT = Experiment(
    name="E7",
    title="TCP-ADaLR with bit errors",
    source="TCP-ADaLR thesis, figures 7.28 to 7.37",
    measures="payload per time at bit error rates of 1e-9 to 1e-5, delayed ACKs, and what ADaLR "
    "gains",
    points=points,
    metrics=bit_errors.METRICS,
    figures=bit_errors.figures("nothing but errors"),
    rules=(
        *bit_errors.no_slower(tuple(BERS)),
        compare(
            f"ADaLR SACK gains more over SACK at {HIGH_BER:g} than at {LOW_BER:g}",
            "gain",
            (ADALR_SACK, HIGH_BER),
            (ADALR_SACK, LOW_BER),
        ),
    ),
    deviations=bit_errors.DEVIATIONS,
)
