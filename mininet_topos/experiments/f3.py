"""F3: a low-orbit link with losses, and with the outages of hand-overs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..links import Outage
from . import today
from .measures import Metric, longest_stall
from .rules import Rule, at_least, at_most
from .spec import Experiment, Figure, Point, Scenario, Timeline
from .today import ALGORITHMS, COMMANDS, KNOWN, MB, OWN, TOLD, UNTOLD, Link, series

LINK = Link(rate_bps=200e6, rtt_s=0.04)
LOSS = 0.005
OUTAGE = Outage(at_s=3.0, lasts_s=0.3, every_s=15.0)
"""The first comes early, so that transfers of 8 s see one."""

STEADY, HANDED_OVER = 0.0, 1.0
PLACES = {STEADY: "no outage", HANDED_OVER: "outages of 0.3 s"}
SIZES = {STEADY: 100 * MB, HANDED_OVER: 200 * MB}
QUICK_SIZES = {STEADY: 50 * MB, HANDED_OVER: 100 * MB}

CONTENDERS = (*OWN, "curl", "lftp pget -n 8", "aria2 -x8 -s8", "GridFTP -p 8")
QUICK_CONTENDERS, QUICK_ALGORITHM = (TOLD, UNTOLD, "curl", "GridFTP -p 8"), "bbr"

PACKETS_PER_S = 26_000.0
"""16,667 of data and an ACK for every second."""

SAMPLE_S = 0.1
"""Of the records; a stall is found this much too long at most."""

LONGEST_STALL_S = OUTAGE.lasts_s + 2 * LINK.rtt_s + SAMPLE_S


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per contender, algorithm and place."""
    sizes = QUICK_SIZES if quick else SIZES
    algorithms = (QUICK_ALGORITHM,) if quick else ALGORITHMS
    return tuple(
        point(contender, algorithm, place, size)
        for place, size in sizes.items()
        for algorithm in algorithms
        for contender in (QUICK_CONTENDERS if quick else CONTENDERS)
    )


def point(contender: str, algorithm: str, place: float, size: int) -> Point:
    """Give one transfer."""
    parameters: dict[str, Any] = {"loss": LOSS}
    if place == HANDED_OVER:
        parameters["hand_over"] = OUTAGE
    return Point(
        series=series(contender, algorithm),
        x=place,
        scenario=Scenario(
            topology="leo",
            parameters=parameters,
            tcp=today.hosts(algorithm),
            flows=(today.flow(contender, LINK, size),),
            seconds=5 + size / _rate_bytes_per_s(contender, algorithm),
            timeout_s=1_800,
            packets_per_s=PACKETS_PER_S,
            sample_interval_s=SAMPLE_S,
        ),
    )


def _rate_bytes_per_s(contender: str, algorithm: str) -> float:
    """Give about how fast it is: cubic is as Reno on so short a path (RFC 9438, section 4.3)."""
    if algorithm == "bbr" or contender in (KNOWN, TOLD):
        return 0.8 * LINK.goodput_bytes_per_s
    connections = COMMANDS.get(contender, ("", 8))[1]
    one: float = 1.31 / LOSS**0.5 * 1448 / LINK.rtt_s
    return min(0.8 * LINK.goodput_bytes_per_s, connections * one)


def rivals() -> dict[str, list[str]]:
    """Give, for each series of XFTP, the others with the same algorithm."""
    return {
        series(own, each): [series(other, each) for other in CONTENDERS[len(OWN) :]]
        for own in OWN
        for each in ALGORITHMS
    }


def rules() -> Iterator[Rule]:
    """Give the aims: for XFTP with --rate, against the best of the others in the same run."""
    yield at_least("ratio", series(TOLD, "bbr"), STEADY, 1.1)
    yield at_least("ratio", series(TOLD, "cubic"), STEADY, 4.0)
    for algorithm in ALGORITHMS:
        yield at_least("ratio", series(TOLD, algorithm), HANDED_OVER, 1.0)
        stall = at_most("stall", series(TOLD, algorithm), HANDED_OVER, LONGEST_STALL_S)
        text = f"{stall.text} s: the outage, 2 RTT, and the {SAMPLE_S:g} s between two samples"
        yield Rule(text, stall.check)


EXPERIMENT = Experiment(
    name="F3",
    title="XFTP and the tools of today, low orbit",
    source="measured here; no text has it",
    measures="time of a cold anonymous download over LEO 200/20 Mbit/s, 40 ms, 0.5% of the packets "
    "lost: 100 MB without outages, 200 MB with one of 300 ms every 15 s",
    points=points,
    metrics=(
        *today.metrics(rivals()),
        Metric(name="stall", label="longest time without progress, s", measure=longest_stall()),
    ),
    figures=(
        *(
            Figure(
                metric="speed",
                title=f"LEO 200/20 Mbit/s, 40 ms, 0.5% lost, {algorithm}",
                x_label="",
                kind="bars",
                x_names=PLACES,
                series=tuple(series(each, algorithm) for each in CONTENDERS),
            )
            for algorithm in ALGORITHMS
        ),
        Figure(
            metric="ratio",
            title="how far ahead of the best of the others",
            x_label="",
            kind="bars",
            x_names=PLACES,
            series=tuple(rivals()),
        ),
        Timeline(
            quantity="throughput",
            title="through outages, bbr",
            points=tuple(
                (series(each, "bbr"), HANDED_OVER) for each in (TOLD, UNTOLD, "GridFTP -p 8")
            ),
        ),
    ),
    rules=tuple(rules()),
    deviations=today.DEVIATIONS,
)
