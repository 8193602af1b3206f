"""C7: many transfers at once with the changed slow starts (figures 9, 11, 12)."""

from __future__ import annotations

from .marchese import (
    DEVIATIONS,
    DROPS,
    LINEAR_DEVIATION,
    REFERENCE,
    THROUGHPUT,
    TIME,
    TUNED,
    by_k,
    crowds,
    linear,
)
from .rules import compare, not_below, ratio
from .spec import Experiment, Figure, Point

REFERENCE_NAME, TUNED_NAME = "reference", "IW 6"
K2, K4, K6 = "K 2", "K 4", "K 6"
LINEAR = {thr: f"Linear {thr}" for thr in (10, 20, 30, 50)}
CONFIGURATIONS = {
    REFERENCE_NAME: REFERENCE,
    TUNED_NAME: TUNED,
    K2: by_k(2),
    K4: by_k(4),
    K6: by_k(6),
    **{name: linear(thr) for thr, name in LINEAR.items()},
}
COUNTS = (1, 5, 10, 15, 20, 30)
QUICK_COUNTS = (5, 10)
QUICK_NAMES = (REFERENCE_NAME, TUNED_NAME, K2, K6, LINEAR[20], LINEAR[50])


def points(quick: bool) -> tuple[Point, ...]:
    """Give so many transfers at once by each configuration."""
    chosen = [
        (name, tuning)
        for name, tuning in CONFIGURATIONS.items()
        if not quick or name in QUICK_NAMES
    ]
    return crowds(chosen, QUICK_COUNTS if quick else COUNTS)


def _figure(title: str, names: tuple[str, ...]) -> Figure:
    return Figure(metric="throughput", title=title, x_label="active connections N", series=names)


EXPERIMENT = Experiment(
    name="C7",
    title="Many transfers at once, changed slow starts",
    source="Marchese 2001, figures 9, 11 and 12",
    measures="mean throughput of 1 to 30 transfers of 100 KB at once, by the growth of slow start",
    points=points,
    metrics=(THROUGHPUT, TIME, DROPS),
    figures=(
        _figure("K segments per ACK (figure 9)", (REFERENCE_NAME, TUNED_NAME, K2, K4, K6)),
        _figure("Linear thr (figure 11)", (REFERENCE_NAME, *LINEAR.values())),
        _figure("the chosen ones (figure 12)", (REFERENCE_NAME, TUNED_NAME, K2, LINEAR[20])),
    ),
    rules=(
        ratio("throughput", K2, REFERENCE_NAME, 5, 1.05),
        ratio("throughput", LINEAR[20], REFERENCE_NAME, 5, 1.05),
        not_below("throughput", K2, REFERENCE_NAME, COUNTS, slack=0.1),
        not_below("throughput", LINEAR[20], REFERENCE_NAME, COUNTS, slack=0.1),
        *(
            compare(
                f"{count} connections: {gentle} has more throughput than {harsh}",
                "throughput",
                (gentle, count),
                (harsh, count),
            )
            for count in (10, 15)
            for gentle, harsh in ((K2, K6), (LINEAR[20], LINEAR[50]))
        ),
        *(
            compare(
                f"{count} connections: {harsh} loses more packets than {gentle}",
                "drops",
                (harsh, count),
                (gentle, count),
            )
            for count in (5, 10)
            for gentle, harsh in ((K2, K6), (LINEAR[20], LINEAR[50]))
        ),
    ),
    deviations=(
        *DEVIATIONS,
        LINEAR_DEVIATION,
        "K = 6 loses more packets than K = 2 as in the text, but here that does not make it slower "
        "than K = 2: probably as recovery by SACK, RACK and proportional rate reduction repairs "
        "bursts of losses sooner than Linux 2.2 did",
    ),
)
