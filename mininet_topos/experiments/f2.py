"""F2: many small files, over a geostationary link of today."""

from __future__ import annotations

from collections.abc import Iterator

from . import today
from .f1 import LINK, PACKETS_PER_S
from .flows import AnyFlow, Tool
from .rules import Rule, at_least
from .spec import Experiment, Figure, Point, Scenario
from .today import ALGORITHMS, KNOWN, OWN, TOLD, UNTOLD, series

FILE_BYTES = 50 * 1024
COUNTS = (20, 100)
QUICK_COUNT, QUICK_ALGORITHM = 20, "bbr"

MIRROR, PIPELINED = "lftp mirror --parallel=8", "GridFTP -pp -cc 4"
CONTENDERS = (*OWN, MIRROR, PIPELINED)

SECONDS_PER_FILE = {KNOWN: 0.2, TOLD: 0.2, UNTOLD: 0.2, MIRROR: 1.2, PIPELINED: 0.4}
"""About, after SECONDS_FIRST."""

SECONDS_FIRST = 10.0


def points(quick: bool) -> tuple[Point, ...]:
    """Give a command per contender, algorithm and number of files."""
    counts = (QUICK_COUNT,) if quick else COUNTS
    algorithms = (QUICK_ALGORITHM,) if quick else ALGORITHMS
    return tuple(
        point(contender, count, algorithm)
        for count in counts
        for algorithm in algorithms
        for contender in CONTENDERS
    )


def point(contender: str, count: int, algorithm: str) -> Point:
    """Give one command that fetches all files."""
    return Point(
        series=series(contender, algorithm),
        x=count,
        scenario=Scenario(
            topology="hts_geo",
            tcp=today.hosts(algorithm),
            flows=(flow(contender, count),),
            seconds=SECONDS_FIRST + count * SECONDS_PER_FILE[contender],
            timeout_s=1_200,
            packets_per_s=PACKETS_PER_S,
        ),
    )


def flow(contender: str, count: int) -> AnyFlow:
    """Give a contender's fetching of so many files."""
    if contender == MIRROR:
        return Tool(
            name="file", program="lftp-mirror", size_bytes=FILE_BYTES, connections=8, files=count
        )
    if contender == PIPELINED:
        return Tool(
            name="file", program="gridftp-files", size_bytes=FILE_BYTES, connections=4, files=count
        )
    return today.xftp(contender, LINK, FILE_BYTES, files=count)


def rivals() -> dict[str, list[str]]:
    """Give, for each series of XFTP, all others, with either algorithm."""
    others = [series(other, each) for each in ALGORITHMS for other in (MIRROR, PIPELINED)]
    return {series(own, each): others for own in OWN for each in ALGORITHMS}


def rules() -> Iterator[Rule]:
    """Give the aims: for XFTP with --rate, against the best of the others in the same run."""
    for algorithm in ALGORITHMS:
        yield at_least("ratio", series(TOLD, algorithm), 100, 4.0)
        yield at_least("ratio", series(TOLD, algorithm), 20, 1.0)


EXPERIMENT = Experiment(
    name="F2",
    title="XFTP and the tools of today, many small files",
    source="measured here; no text has it",
    measures="time of one command that fetches 100 files of 50 KiB over GEO 50/5 Mbit/s, 600 ms: "
    "xftp mirror with and without --rate, lftp mirror, GridFTP",
    points=points,
    metrics=today.metrics(rivals()),
    figures=(
        *(
            Figure(
                metric="time",
                title=f"files of 50 KiB over GEO 50/5 Mbit/s, 600 ms, {algorithm}",
                x_label="files",
                kind="bars",
                series=tuple(series(each, algorithm) for each in CONTENDERS),
            )
            for algorithm in ALGORITHMS
        ),
        Figure(
            metric="ratio",
            title="how far ahead of the best of the others",
            x_label="files",
            kind="bars",
            series=tuple(rivals()),
        ),
    ),
    rules=tuple(rules()),
    deviations=today.DEVIATIONS,
)
