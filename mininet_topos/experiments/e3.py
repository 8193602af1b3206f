"""E3: TCP-ADaLR over a satellite link of 10/1 Mbit/s (table 7.7)."""

from __future__ import annotations

from . import adalr
from .adalr import Network
from .spec import Experiment, Point, Timeline

NETWORK = Network(
    parameters={"forward_bps": 10e6, "backward_bps": 1e6},
    typical_bytes_per_s=115_000,
)


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP with and without delayed ACKs."""
    return adalr.lossless_points(quick, NETWORK)


EXPERIMENT = Experiment(
    name="E3",
    title="TCP-ADaLR over a faster satellite link",
    source="TCP-ADaLR thesis, table 7.7",
    measures="payload per time of a 50 MB file over 10/1 Mbit/s in place of 2048/256 kbit/s",
    points=points,
    metrics=adalr.METRICS,
    figures=(
        adalr.bars("10/1 Mbit/s, 520 ms, nothing lost"),
        Timeline(
            quantity="window",
            title="windows, delayed ACKs",
            points=((adalr.ADALR_SACK, adalr.DELAYED), (adalr.SACK, adalr.DELAYED)),
        ),
    ),
    published=adalr.published({"ADaLR": (283.0, 235.4), "plain": (462.3, 459.7)}),
    rules=adalr.faster(least=1.05),
    deviations=(
        *adalr.DEVIATIONS,
        "the text's gap grows with the rate, to 1.6 and 2 times: its ADaLR goes on to 110 KB of "
        "window and more. Here both are bound by their windows, 77 KB and 64 KB, and the gap is "
        "that of the slower link (E1)",
    ),
)
