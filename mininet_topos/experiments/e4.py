"""E4: TCP-ADaLR with small and large files (figures 7.16 to 7.19)."""

from __future__ import annotations

from . import adalr
from .adalr import ADALR_NEWRENO, KB, MB, NEWRENO, Network
from .rules import at_least, flat, ratio
from .spec import Experiment, Figure, Point

SIZES = {float(500 * KB): "500 kB", float(50 * MB): "50 MB", float(100 * MB): "100 MB"}
SIZES[float(200 * MB)] = "200 MB"
QUICK_SIZES = (float(500 * KB),)


def points(quick: bool) -> tuple[Point, ...]:
    """Give ADaLR and NewReno for each size, with delayed ACKs."""
    return tuple(
        adalr.point(variant, size, variant, round(size), Network())
        for size in (QUICK_SIZES if quick else SIZES)
        for variant in (ADALR_NEWRENO, NEWRENO)
    )


EXPERIMENT = Experiment(
    name="E4",
    title="TCP-ADaLR, small and large files",
    source="TCP-ADaLR thesis, figures 7.16 to 7.19",
    measures="payload per time of files of 500 kB to 200 MB, nothing lost, delayed ACKs",
    points=points,
    metrics=adalr.METRICS,
    figures=(
        Figure(
            metric="throughput",
            title="2048/256 kbit/s, 520 ms, delayed ACKs",
            x_label="file",
            kind="bars",
            x_names=SIZES,
            series=(ADALR_NEWRENO, NEWRENO),
        ),
    ),
    published=(
        adalr.published_rate(ADALR_NEWRENO, 50 * MB, 360.6),
        adalr.published_rate(NEWRENO, 50 * MB, 470.1),
    ),
    rules=(
        *(ratio("throughput", ADALR_NEWRENO, NEWRENO, size, 1.0) for size in SIZES),
        at_least("throughput", ADALR_NEWRENO, 50 * MB, 100),
        flat("throughput", NEWRENO, (50 * MB, 100 * MB, 200 * MB), 0.05),
    ),
    deviations=(
        *adalr.DEVIATIONS,
        "the text's 300, 400 and 500 MB are left out, as they take more than an hour each: with a "
        "window that stays, as here, a larger file is as fast as one of 200 MB",
    ),
)
