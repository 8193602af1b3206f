"""A2: throughput of the asynchronous XFTP against its number of connections (figure 2.7)."""

from __future__ import annotations

from tuning import model

from .allman import GOODPUT_BYTES_PER_S, HEADER_BYTES, KB, MB, RENO97, RTT_S, SEGMENT_BYTES, stack
from .flows import Xftp
from .measures import Metric, queue_drops, steady_utilisation, utilisation
from .outcome import Outcome
from .rules import at_least, falls, flat, rises
from .spec import Experiment, Figure, Point, Published, Scenario, Timeline

WINDOW_BYTES = 24 * KB
QUEUE_PACKETS = 210
"""Eight windows of 48 segments are 384, of which 195 are on their way: 189 wait. Ten are 285."""

SERIES = "XFTP"


def points(quick: bool) -> tuple[Point, ...]:
    """Give a transfer per number of connections."""
    size = 2 * MB if quick else 5 * MB
    counts = (1, 4, 8, 12) if quick else range(1, 13)
    return tuple(Point(series=SERIES, x=count, scenario=_scenario(size, count)) for count in counts)


def _scenario(size_bytes: int, connections: int) -> Scenario:
    rate = min(GOODPUT_BYTES_PER_S, connections * 40_000)
    return Scenario(
        topology="acts_t1",
        parameters={"queue": QUEUE_PACKETS},
        tcp=stack(WINDOW_BYTES),
        flows=(Xftp(name="xftp", size_bytes=size_bytes, connections=connections, sockets=RENO97),),
        seconds=15 + size_bytes / rate,
    )


def limit(outcome: Outcome) -> float:
    """Give the utilisation that set-up and slow start leave, in percent, without any loss."""
    size = outcome.flow().bytes
    link = model.Link(
        rate_bps=1.536e6, rtt_s=RTT_S, mss_bytes=SEGMENT_BYTES, header_bytes=HEADER_BYTES
    )
    time = model.transfer_time(
        link,
        size,
        connections=int(outcome.x),
        initial_window_segments=1,
        window_limit_bytes=WINDOW_BYTES,
        response=model.Response.RENO,
    )
    return 100 * size / time.total_s / GOODPUT_BYTES_PER_S


EXPERIMENT = Experiment(
    name="A2",
    title="XFTP, asynchronous across connections",
    source="Allman 1997, figure 2.7",
    measures="share of a T1's payload rate for a 5 MB file with 24 KB windows, N = 1 to 12",
    points=points,
    metrics=(
        Metric(
            name="steady",
            label="utilisation after headers, 25% to 90% of the file, %",
            measure=steady_utilisation(GOODPUT_BYTES_PER_S, 0.25, 0.9),
        ),
        Metric(
            name="utilisation",
            label="utilisation after headers, whole transfer, %",
            measure=utilisation(GOODPUT_BYTES_PER_S),
        ),
        Metric(name="limit", label="limit of set-up and slow start, %", measure=limit),
        Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
    ),
    figures=(
        Figure(
            metric="steady",
            title="steady part of a 5 MB transfer over T1, 560 ms",
            x_label="data connections N",
        ),
        Figure(
            metric="utilisation",
            title="whole 5 MB transfer over T1, 560 ms",
            x_label="data connections N",
        ),
        Timeline(
            quantity="queue",
            link="satellite",
            title="queue before the satellite",
            points=((SERIES, 4), (SERIES, 8), (SERIES, 12)),
        ),
    ),
    published=tuple(
        Published(
            metric=metric,
            series=SERIES,
            x=connections,
            value=98,
            note="the text: approximately 98% with 6 to 8 connections",
        )
        for metric in ("steady", "utilisation")
        for connections in (6, 7, 8)
    ),
    rules=(
        *(at_least("steady", SERIES, count, 97) for count in (6, 7, 8)),
        rises("steady", SERIES, (1, 2, 3, 4)),
        flat("steady", SERIES, (6, 7, 8), 0.02),
        falls("utilisation", SERIES, (8, 12)),
    ),
    deviations=(
        "the whole transfer is printed beside its own limit: set-up and slow start from one "
        "segment per connection cost about 2 s of 29 s, which the steady part leaves out",
        "the router's queue is not told in the text: it holds what 8 connections overrun it by, "
        "and not what 10 do, as the text describes of figure 2.6",
    ),
)
