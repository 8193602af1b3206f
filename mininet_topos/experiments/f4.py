"""F4: what XFTP takes from an ordinary flow beside it, and what it leaves waiting in the queue."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..links import Queue
from . import today
from .f1 import LINK, PACKETS_PER_S
from .flows import AnyFlow, Bulk, Sockets, Xftp
from .measures import Measure, Metric, jain_index, queue_drops
from .outcome import Outcome
from .rules import Rule, at_most
from .spec import Experiment, Figure, Point, Scenario, Timeline
from .today import MB, TOLD, UNTOLD

BESIDE, TOLD_BESIDE = UNTOLD, TOLD
ALONE = f"{TOLD}, alone"

AUTO = 0
COUNTS = (AUTO, 1, 2, 3, 4, 5, 6, 7, 8)
ALONE_COUNTS = (AUTO, 1, 4, 8)
QUICK_COUNTS = (4,)
NAMES = {float(count): str(count) if count else "auto" for count in COUNTS}

SIZE, QUICK_SIZE = 300 * MB, 120 * MB
HEAD_START_S = 15.0
"""Of the ordinary flow: it has the link when XFTP comes."""

SETTLING_S = 10.0
"""After XFTP's first byte, before shares are measured."""

BDP_BYTES = round(LINK.rate_bps * LINK.rtt_s / 8)
DEEP_QUEUE = Queue(bytes=4 * BDP_BYTES)
"""Of XFTP alone: one that would let a standing queue of more than one BDP be."""

TOLERANCE = 0.1


def points(quick: bool) -> tuple[Point, ...]:
    """Give XFTP beside an ordinary flow, without and with the link's rate, and alone."""
    size = QUICK_SIZE if quick else SIZE
    counts = QUICK_COUNTS if quick else COUNTS
    alone = QUICK_COUNTS if quick else ALONE_COUNTS
    told = () if quick else COUNTS
    return (
        *(point(BESIDE, count, size) for count in counts),
        *(point(TOLD_BESIDE, count, size) for count in told),
        *(point(ALONE, count, size) for count in alone),
    )


def point(series: str, count: int, size: int) -> Point:
    """Give XFTP with so many connections."""
    told = series != BESIDE
    file = Xftp(
        name="xftp",
        size_bytes=size,
        connections=count,
        start_s=0.0 if series == ALONE else HEAD_START_S,
        sockets=Sockets(rate_bps=LINK.rate_bps) if told else Sockets(),
    )
    other = Bulk(name="ordinary", background=True)
    flows: tuple[AnyFlow, ...] = (file,) if series == ALONE else (other, file)
    share = 1.0 if told else (count or 8) / ((count or 8) + 1)
    return Point(
        series=series,
        x=count,
        scenario=Scenario(
            topology="hts_geo",
            parameters={"queue": DEEP_QUEUE} if series == ALONE else {},
            tcp=today.hosts("cubic"),
            flows=flows,
            seconds=file.start_s + 12 + size / (share * LINK.goodput_bytes_per_s),
            packets_per_s=PACKETS_PER_S,
        ),
    )


def rates(outcome: Outcome) -> tuple[float, float] | None:
    """Give the rates of XFTP and of the ordinary flow, in bytes/s, once XFTP has settled."""
    if "ordinary" not in outcome.flows:
        return None
    rows = outcome.flow("xftp").history
    moved = [row[0] for before, row in itertools.pairwise(rows) if row[1] > before[1]]
    if not moved or moved[-1] <= moved[0] + SETTLING_S:
        return None
    span = (moved[0] + SETTLING_S, moved[-1])
    own, other = (outcome.flow(name).rate_from_to(*span) for name in ("xftp", "ordinary"))
    return None if own is None or other is None or own + other == 0 else (own, other)


def connections(outcome: Outcome) -> int:
    """Give how many data connections XFTP had at most."""
    return int(max((row[4] for row in outcome.flow("xftp").history), default=0))


def share(outcome: Outcome) -> float | None:
    """Give XFTP's part of what both got, in percent."""
    found = rates(outcome)
    return None if found is None else 100 * found[0] / sum(found)


def shares_taken(outcome: Outcome) -> float | None:
    """Give XFTP's part in its fair shares: 1 where N connections beside one have N of N+1."""
    part, count = share(outcome), connections(outcome)
    return None if part is None or not count else part / (100 * count / (count + 1))


def fairness(outcome: Outcome) -> float | None:
    """Give Jain's index over all connections, XFTP's being alike."""
    found, count = rates(outcome), connections(outcome)
    return (
        None if found is None or not count else jain_index([found[0] / count] * count + [found[1]])
    )


def standing_queue(link: str) -> Measure:
    """Give the longest standing queue in BDP: what the queue did not fall below for an RTT."""

    def measure(outcome: Outcome) -> float | None:
        rows = outcome.queues.get(link, {}).get("forward", [])
        least = [
            min(row[2] for row in rows[first:last])
            for first, last in _windows([row[0] for row in rows], LINK.rtt_s)
        ]
        return max(least) / BDP_BYTES if least else None

    return measure


def _windows(times: list[float], length_s: float) -> Iterator[tuple[int, int]]:
    """Give the slices of samples that span a time, each as short as it can be."""
    last = 0
    for first, begin_s in enumerate(times):
        while last < len(times) and times[last] - begin_s < length_s:
            last += 1
        if last == len(times):
            return
        yield first, last + 1


def rules() -> Iterator[Rule]:
    """Give the aims: no more than its shares without the rate, no standing queue with it."""
    for count in COUNTS:
        rule = at_most("shares", BESIDE, count, 1 + TOLERANCE)
        yield Rule(
            f"beside one cubic flow, XFTP with {NAMES[count]} connections takes at most its "
            f"shares and {100 * TOLERANCE:g}% of them",
            rule.check,
        )
    for count in ALONE_COUNTS:
        rule = at_most("standing", ALONE, count, 1.0)
        yield Rule(
            f"with --rate and {NAMES[count]} connections no queue above one BDP stands for an RTT",
            rule.check,
        )


EXPERIMENT = Experiment(
    name="F4",
    title="What XFTP takes from others",
    source="measured here; no text has it",
    measures="XFTP with 1 to 8 connections beside one cubic flow over GEO 50/5 Mbit/s, 600 ms: its "
    "part, Jain's index; and with --rate the queue that it lets stand",
    points=points,
    metrics=(
        Metric(name="share", label="XFTP's part of what both got, %", measure=share),
        Metric(name="shares", label="XFTP's part / N of N+1", measure=shares_taken),
        Metric(name="jain", label="Jain's index over all connections", measure=fairness),
        Metric(name="standing", label="standing queue, BDP", measure=standing_queue("satellite")),
        Metric(
            name="connections",
            label="XFTP's data connections",
            measure=lambda outcome: float(connections(outcome)),
        ),
        Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
    ),
    figures=(
        *(
            Figure(
                metric=metric,
                title=title,
                x_label="data connections N",
                kind="bars",
                x_names=NAMES,
                series=series,
            )
            for metric, title, series in (
                ("share", "XFTP beside one cubic flow", (BESIDE, TOLD_BESIDE)),
                ("jain", "XFTP beside one cubic flow: fairness", (BESIDE, TOLD_BESIDE)),
                ("standing", "the queue that stands", (ALONE, BESIDE, TOLD_BESIDE)),
            )
        ),
        Timeline(
            quantity="throughput",
            title="4 connections and an ordinary flow",
            points=((BESIDE, 4),),
        ),
        Timeline(
            quantity="queue",
            title="the queue towards the client",
            link="satellite",
            points=((BESIDE, 4), (ALONE, 4)),
        ),
    ),
    rules=tuple(rules()),
    deviations=(
        "the standing queue of XFTP with --rate is judged where it is alone, with room for 4 BDP: "
        "beside a cubic flow, the queue of one BDP is that flow's to fill",
        f"parts are measured from {SETTLING_S:g} s after XFTP's first byte to its last; the other "
        f"flow began {HEAD_START_S:g} s before XFTP",
    ),
)
