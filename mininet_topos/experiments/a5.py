"""A5: the window grows by what is acknowledged, where nothing is lost (table 3.1)."""

from __future__ import annotations

from .allman import SIZES
from .chapter3 import CALM_WINDOW_BYTES, DEVIATIONS
from .counting import PUBLISHED_CALM, experiment
from .rules import at_least, at_most

EXPERIMENT = experiment(
    name="A5",
    title="Growing by segments acknowledged, nothing lost",
    source="Allman 1997, table 3.1",
    window_bytes=CALM_WINDOW_BYTES,
    published=PUBLISHED_CALM,
    rules=(
        *(at_least("gain", "counting", size, 0.01) for size in SIZES),
        *(at_most("drops", "counting", size, 0) for size in SIZES),
    ),
    deviations=DEVIATIONS,
)
