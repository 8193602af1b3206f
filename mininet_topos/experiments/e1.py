"""E1: TCP-ADaLR on an ideal channel (table 7.5)."""

from __future__ import annotations

from . import adalr
from .adalr import Network
from .spec import Experiment, Point, Timeline

NETWORK = Network()


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP with and without delayed ACKs."""
    return adalr.lossless_points(quick, NETWORK)


EXPERIMENT = Experiment(
    name="E1",
    title="TCP-ADaLR on an ideal channel",
    source="TCP-ADaLR thesis, table 7.5",
    measures="payload per time of a 50 MB file over 10 ms and a GEO link of 2048/256 kbit/s, with "
    "and without delayed ACKs",
    points=points,
    metrics=adalr.METRICS,
    figures=(
        adalr.bars("2048/256 kbit/s, 520 ms, nothing lost"),
        Timeline(
            quantity="window",
            title="windows, delayed ACKs",
            points=((adalr.ADALR_SACK, adalr.DELAYED), (adalr.SACK, adalr.DELAYED)),
        ),
    ),
    published=adalr.published({"ADaLR": (360.6, 333.4), "plain": (470.1, 463.5)}),
    rules=adalr.faster(least=1.05),
    deviations=adalr.DEVIATIONS,
)
