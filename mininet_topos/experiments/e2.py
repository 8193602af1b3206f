"""E2: TCP-ADaLR with 40 ms more on the terrestrial link (table 7.6)."""

from __future__ import annotations

from . import adalr
from .adalr import Network
from .spec import Experiment, Point, Timeline

NETWORK = Network(rtt_s=0.6, parameters={"terrestrial_delay_s": 0.05}, typical_bytes_per_s=95_000)


def points(quick: bool) -> tuple[Point, ...]:
    """Give each TCP with and without delayed ACKs."""
    return adalr.lossless_points(quick, NETWORK)


EXPERIMENT = Experiment(
    name="E2",
    title="TCP-ADaLR with a longer terrestrial link",
    source="TCP-ADaLR thesis, table 7.6",
    measures="payload per time of a 50 MB file with 50 ms to the gateway in place of 10 ms",
    points=points,
    metrics=adalr.METRICS,
    figures=(
        adalr.bars("2048/256 kbit/s, 600 ms, nothing lost"),
        Timeline(
            quantity="window",
            title="windows, delayed ACKs",
            points=((adalr.ADALR_SACK, adalr.DELAYED), (adalr.SACK, adalr.DELAYED)),
        ),
    ),
    published=adalr.published({"ADaLR": (392.6, 357.8), "plain": (533.5, 526.3)}),
    rules=adalr.faster(least=1.05),
    deviations=adalr.DEVIATIONS,
)
