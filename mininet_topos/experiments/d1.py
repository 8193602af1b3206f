"""D1: long round-trip times starve at a shared bottleneck (figures 4.2, 4.5, 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from ..links import Queue, Red
from . import henderson as text
from .measures import Metric
from .rules import at_least, at_most, compare, not_below
from .spec import Experiment, Figure, Point, Published, Timeline

NEWRENO_FIFO, SACK_FIFO = "NewReno, FIFO", "SACK, FIFO"
NEWRENO_RED, SACK_RED = "NewReno, RED", "SACK, RED"
VARIANTS: dict[str, tuple[bool, Callable[[int], Queue | Red]]] = {
    NEWRENO_FIFO: (False, text.fifo),
    SACK_FIFO: (True, text.fifo),
    NEWRENO_RED: (False, text.red),
    SACK_RED: (True, text.red),
}
QUEUES = (4, 10, 25, 50)
QUICK = {(NEWRENO_FIFO, 10), (NEWRENO_FIFO, 50), (SACK_RED, 50)}

FIVE = "five flows, FIFO"
FIVE_RTTS_MS = (10, 100, 200, 300, 600)


def points(quick: bool) -> tuple[Point, ...]:
    """Give topology 2 by queue, discipline and TCP, and the five flows of figure 4.2."""
    six = tuple(
        text.point(
            name,
            packets,
            "henderson2",
            text.six(quick),
            quick=quick,
            queue=queue(packets),
            sack=sack,
        )
        for name, (sack, queue) in VARIANTS.items()
        for packets in QUEUES
        if not quick or (name, packets) in QUICK
    )
    five = text.point(
        FIVE,
        50,
        "henderson2",
        text.six(quick, rtts_ms=FIVE_RTTS_MS),
        quick=quick,
        queue=text.fifo(),
        sack=False,
        parameters={"rtts_s": tuple(ms / 1000 for ms in FIVE_RTTS_MS)},
    )
    return (*six, five)


EXPERIMENT = Experiment(
    name="D1",
    title="Long round-trip times starve",
    source="Henderson 1999, figures 4.2, 4.5 and 4.6",
    measures="rates, Jain's index and utilisation of six connections of 10 to 600 ms over one "
    "link, by queue",
    points=points,
    metrics=(
        text.FAIRNESS,
        text.UTILISATION,
        Metric(name="share", label="share of the 600 ms connection, %", measure=text.share(600)),
        *(text.rate_metric(rtt_ms) for rtt_ms in text.RTTS_MS),
        text.WEB_METRIC,
        text.DROPS,
    ),
    figures=(
        Figure(
            metric="share",
            title="what the 600 ms connection gets",
            x_label="queue, packets",
            series=tuple(VARIANTS),
        ),
        Figure(
            metric="utilisation",
            title="utilisation (figure 4.5)",
            x_label="queue, packets",
            series=tuple(VARIANTS),
            zero_based=False,
        ),
        Figure(
            metric="fairness",
            title="fairness (figure 4.6)",
            x_label="queue, packets",
            series=tuple(VARIANTS),
        ),
        Timeline(
            quantity="acknowledged",
            title="five connections (figure 4.2)",
            points=((FIVE, 50),),
            flows=tuple(text.flow_name(rtt_ms) for rtt_ms in FIVE_RTTS_MS),
        ),
        Timeline(
            quantity="queue",
            title="the bottleneck's queue",
            points=((NEWRENO_FIFO, 50), (SACK_RED, 50)),
            link="bottleneck",
        ),
    ),
    published=(
        Published(
            metric="share", series=NEWRENO_FIFO, x=10, value=2, note="2 to 4% over all queues"
        ),
        Published(
            metric="share", series=NEWRENO_FIFO, x=50, value=4, note="2 to 4% over all queues"
        ),
        Published(metric="fairness", series=SACK_RED, x=50, value=0.807, note="table 4.1"),
        Published(metric="600 ms", series=SACK_RED, x=50, value=68.1, note="table 4.1"),
        Published(metric="300 ms", series=SACK_RED, x=50, value=116.2, note="table 4.1"),
        Published(metric="200 ms", series=SACK_RED, x=50, value=156.6, note="table 4.1"),
        Published(metric="100 ms", series=SACK_RED, x=50, value=217.1, note="table 4.1"),
        Published(metric="utilisation", series=SACK_RED, x=50, value=0.99, note="table 4.1"),
    ),
    rules=(
        *(at_most("share", NEWRENO_FIFO, packets, 6) for packets in (10, 25, 50)),
        at_most("share", SACK_RED, 50, 8),
        text.starves(NEWRENO_FIFO, 10),
        text.starves(SACK_RED, 50),
        text.starves(FIVE, 50),
        at_most("fairness", SACK_RED, 50, 0.9),
        at_least("utilisation", SACK_RED, 50, 0.9),
        compare(
            "NewReno, FIFO: a queue of 50 packets is better utilised than one of 4",
            "utilisation",
            (NEWRENO_FIFO, 50),
            (NEWRENO_FIFO, 4),
        ),
        not_below("fairness", SACK_RED, NEWRENO_FIFO, (10, 25, 50), slack=0.05),
    ),
    deviations=(
        *text.DEVIATIONS,
        "RED's thresholds are 40% and 80% of the queue, as 20 and 40 are of the text's 50",
        "before a short FIFO queue all long connections get next to nothing, and which of them "
        "gets least is chance in a single run",
    ),
)
