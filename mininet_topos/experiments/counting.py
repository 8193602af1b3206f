"""What tables 3.1 and 3.2 of Allman's thesis share: growing by segments acknowledged."""

from __future__ import annotations

from collections.abc import Mapping

from .allman import KB, MB, SIZES
from .chapter3 import OTHER_METRICS, STANDARD, point, sizes
from .measures import Metric, throughput
from .rules import Rule
from .spec import Experiment, Figure, Point, Published

COUNTING = "counting"

PUBLISHED_CALM = {30 * KB: 9.4, 100 * KB: 16.9, 200 * KB: 15.3, MB: 8.5, 5 * MB: 9.5}
PUBLISHED_OVERRUN = {30 * KB: 8.1, 100 * KB: 14.6, 200 * KB: -36.2, MB: 5.1, 5 * MB: 3.7}


def experiment(
    *,
    name: str,
    title: str,
    source: str,
    window_bytes: int,
    published: Mapping[int, float],
    rules: tuple[Rule, ...],
    deviations: tuple[str, ...],
) -> Experiment:
    """Give one of the two tables."""

    def points(quick: bool) -> tuple[Point, ...]:
        return tuple(
            point(series, size, size_bytes=size, window_bytes=window_bytes, congestion=algorithm)
            for size in sizes(quick)
            for series, algorithm in ((STANDARD, "xftp_reno97"), (COUNTING, "xftp_abc"))
        )

    return Experiment(
        name=name,
        title=title,
        source=source,
        measures="throughput gained against one segment per ACK, files of 30 KB to 5 MB",
        points=points,
        metrics=(
            Metric(
                name="gain",
                label="throughput change, %",
                measure=throughput(),
                baseline=lambda series, x: (STANDARD, x),
                series=frozenset({COUNTING}),
            ),
            *OTHER_METRICS,
        ),
        figures=(
            Figure(
                metric="gain",
                title=title,
                x_label="file",
                kind="bars",
                x_names={float(size): text for size, text in SIZES.items()},
            ),
        ),
        published=tuple(
            Published(metric="gain", series=COUNTING, x=size, value=value)
            for size, value in published.items()
        ),
        rules=rules,
        deviations=deviations,
    )
