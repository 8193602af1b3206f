"""A6: the window grows by what is acknowledged, where it overruns the queue (table 3.2)."""

from __future__ import annotations

from .allman import KB, MB
from .chapter3 import DEVIATIONS, OVERRUNNING_WINDOW_BYTES
from .counting import PUBLISHED_OVERRUN, experiment
from .rules import at_least, at_most, compare

EXPERIMENT = experiment(
    name="A6",
    title="Growing by segments acknowledged, queue overrun",
    source="Allman 1997, table 3.2",
    window_bytes=OVERRUNNING_WINDOW_BYTES,
    published=PUBLISHED_OVERRUN,
    rules=(
        at_least("gain", "counting", 30 * KB, 0.01),
        at_least("gain", "counting", 100 * KB, 0.01),
        compare(
            "the middle size can lose: 200 KB gain less than 100 KB",
            "gain",
            ("counting", 100 * KB),
            ("counting", 200 * KB),
        ),
        at_most("gain", "counting", 5 * MB, 15),
    ),
    deviations=DEVIATIONS,
)
