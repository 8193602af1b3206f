"""C3: many transfers at once by tuned connections (figure 7)."""

from __future__ import annotations

from dataclasses import replace

from .marchese import DEVIATIONS, DROPS, REFERENCE, THROUGHPUT, TIME, TUNED, crowds
from .rules import ratio, rises
from .spec import Experiment, Figure, Point

REFERENCE_NAME = "IW 1, 64 KB"
TUNED_NAME = "IW 6, 320 KB"
CONFIGURATIONS = {
    REFERENCE_NAME: REFERENCE,
    "IW 1, 320 KB": replace(TUNED, initial_window=1),
    "IW 2, 320 KB": replace(TUNED, initial_window=2),
    TUNED_NAME: TUNED,
}
COUNTS = (1, 2, 5, 10, 15, 20, 25, 30)
QUICK_COUNTS = (1, 10, 30)


def points(quick: bool) -> tuple[Point, ...]:
    """Give so many transfers at once by each configuration."""
    chosen = [
        (name, tuning)
        for name, tuning in CONFIGURATIONS.items()
        if not quick or name in (REFERENCE_NAME, TUNED_NAME)
    ]
    return crowds(chosen, QUICK_COUNTS if quick else COUNTS)


EXPERIMENT = Experiment(
    name="C3",
    title="Many tuned transfers at once",
    source="Marchese 2001, figure 7",
    measures="mean throughput of 1 to 30 transfers of 100 KB at once, by buffer and initial window",
    points=points,
    metrics=(THROUGHPUT, TIME, DROPS),
    figures=(
        Figure(
            metric="throughput",
            title="N transfers of 100 KB at once",
            x_label="active connections N",
        ),
    ),
    rules=(
        ratio("throughput", TUNED_NAME, REFERENCE_NAME, 1, 1.3),
        ratio("throughput", TUNED_NAME, REFERENCE_NAME, 5, 1.15),
        ratio("throughput", TUNED_NAME, REFERENCE_NAME, 10, 1.1),
        ratio("throughput", TUNED_NAME, REFERENCE_NAME, 30, 0.8, 1.25),
        rises("time", REFERENCE_NAME, (1, 10, 20, 30)),
        rises("time", TUNED_NAME, (1, 10, 20, 30)),
    ),
    deviations=DEVIATIONS,
)
