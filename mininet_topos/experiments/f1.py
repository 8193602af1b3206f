"""F1: XFTP against what people use today, over a geostationary link of today."""

from __future__ import annotations

from collections.abc import Iterator

from . import today
from .rules import Rule, at_least
from .spec import Experiment, Figure, Point, Scenario
from .today import ALGORITHMS, COMMANDS, KNOWN, MB, OWN, TOLD, UNTOLD, Link, series

LINK = Link(rate_bps=50e6, rtt_s=0.6)
SIZES = {MB: "1 MB", 10 * MB: "10 MB", 50 * MB: "50 MB"}
LOSSES = {0.0: "none", 1e-4: "1e-4", 1e-3: "1e-3", 1e-2: "1e-2"}
CONTENDERS = (*OWN, *COMMANDS)

QUICK_CONTENDERS = (TOLD, UNTOLD, "curl", "lftp pget -n 8", "aria2 -x8 -s8", "GridFTP -p 8")
QUICK_SIZE, QUICK_LOSSES, QUICK_ALGORITHM = 10 * MB, (0.0, 1e-2), "bbr"

PACKETS_PER_S = 6_200.0
"""4,167 of data and an ACK for every second."""

HEAVY_LOSS = 1e-2
SLOWEST = "curl"
"""One cubic connection at 1% needs half an hour for 50 MB: 10 MB show it."""


def name(contender: str, size: int, algorithm: str) -> str:
    """Name the series of a contender's transfers of one size."""
    return series(contender, SIZES[size], algorithm)


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per contender, size, algorithm and loss; those of one place together."""
    if quick:
        return tuple(
            point(contender, QUICK_SIZE, QUICK_ALGORITHM, loss)
            for loss in QUICK_LOSSES
            for contender in QUICK_CONTENDERS
        )
    return tuple(
        point(contender, size, algorithm, loss)
        for size in SIZES
        for algorithm in ALGORITHMS
        for loss in LOSSES
        for contender in CONTENDERS
        if not _left_out(contender, size, algorithm, loss)
    )


def _left_out(contender: str, size: int, algorithm: str, loss: float) -> bool:
    return (contender, size, algorithm, loss) == (SLOWEST, 50 * MB, "cubic", HEAVY_LOSS)


def point(contender: str, size: int, algorithm: str, loss: float) -> Point:
    """Give one transfer."""
    return Point(
        series=name(contender, size, algorithm),
        x=loss,
        scenario=Scenario(
            topology="hts_geo",
            parameters={"loss": loss} if loss else {},
            tcp=today.hosts(algorithm),
            flows=(today.flow(contender, LINK, size),),
            seconds=expected_s(contender, size, algorithm, loss),
            timeout_s=3_600,
            packets_per_s=PACKETS_PER_S,
        ),
    )


def expected_s(contender: str, size: int, algorithm: str, loss: float) -> float:
    """Give about how long it takes, by the response function of cubic (RFC 9438, equation 6)."""
    if contender in (KNOWN, TOLD):
        return 3 + size / LINK.goodput_bytes_per_s
    connections = COMMANDS.get(contender, ("", 8))[1]
    rate = LINK.goodput_bytes_per_s
    if loss and algorithm == "cubic":
        window_segments = 1.054 * (LINK.rtt_s / loss) ** 0.75
        rate = min(rate, connections * window_segments * 1448 / LINK.rtt_s)
    return 9 + size / rate


def rivals() -> dict[str, list[str]]:
    """Give, for each series of XFTP, the others of its size: with either algorithm."""
    return {
        name(own, size, algorithm): [
            name(other, size, each) for each in ALGORITHMS for other in COMMANDS
        ]
        for own in OWN
        for size in SIZES
        for algorithm in ALGORITHMS
    }


def rules() -> Iterator[Rule]:
    """Give the aims: for XFTP with --rate, against the best of the others in the same run."""
    aims = {(50 * MB, 0.0): 1.7, (MB, 0.0): 3.0, (50 * MB, 1e-3): 1.7, (50 * MB, 1e-2): 1.6}
    for size in SIZES:
        for loss in LOSSES:
            for algorithm in ALGORITHMS:
                yield at_least(
                    "ratio", name(TOLD, size, algorithm), loss, aims.get((size, loss), 1.0)
                )
    for loss, share in ((0.0, 0.15), (1e-2, 0.25)):
        for algorithm in ALGORITHMS:
            yield today.within_limit(
                name(TOLD, 50 * MB, algorithm), loss, LINK.limit_s(50 * MB), share
            )


def figures() -> Iterator[Figure]:
    """Give times per size and algorithm, and leads per size."""
    for size, size_text in SIZES.items():
        for algorithm in ALGORITHMS:
            yield Figure(
                metric="speed",
                title=f"{size_text} over GEO 50/5 Mbit/s, 600 ms, {algorithm}",
                x_label="packets lost, probability",
                kind="bars",
                x_names=LOSSES,
                series=tuple(name(each, size, algorithm) for each in CONTENDERS),
            )
        yield Figure(
            metric="ratio",
            title=f"{size_text}: how far ahead of the best of the others",
            x_label="packets lost, probability",
            kind="bars",
            x_names=LOSSES,
            series=tuple(line for line in rivals() if SIZES[size] in line.split(", ")),
        )


EXPERIMENT = Experiment(
    name="F1",
    title="XFTP and the tools of today, one file",
    source="measured here; no text has it",
    measures="time of a cold anonymous download of 1, 10 and 50 MB over GEO 50/5 Mbit/s, 600 ms, "
    "with 0 to 1% of the packets lost: XFTP with and without --rate, curl, lftp, aria2, GridFTP",
    points=points,
    metrics=today.metrics(rivals()),
    figures=tuple(figures()),
    rules=tuple(rules()),
    deviations=(
        *today.DEVIATIONS,
        "curl with cubic at 1% is left out at 50 MB, for which it needs half an hour",
        "the best of the others is taken over both algorithms that they were run with",
    ),
)
