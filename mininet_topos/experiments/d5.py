"""D5: one competing connection that does not cross the satellite (figure 4.20)."""

from __future__ import annotations

from .flows import Bulk
from .rules import at_least, falls, ratio
from .spec import Experiment, Point, Timeline
from .testbed import (
    COMPETITOR,
    DEVIATIONS,
    GOODPUT_KBPS,
    METRICS,
    RTTS_MS,
    SATELLITE,
    STANDARD,
    figure,
    point,
)

ALONE, BESIDE = "alone", "beside a connection of 20 ms"
DURATION_S, QUICK_DURATION_S = 120.0, 50.0
QUICK_RTTS_MS = (20, 600)


def points(quick: bool) -> tuple[Point, ...]:
    """Give the satellite connection alone and with the other, by RTT."""
    duration_s = QUICK_DURATION_S if quick else DURATION_S
    competitor = Bulk(
        name=COMPETITOR, sender="bg_s", receiver="bg_d", background=True, sockets=STANDARD
    )
    return tuple(
        point(
            name,
            rtt_ms,
            Bulk(name=SATELLITE, start_s=2.0, duration_s=duration_s, sockets=STANDARD),
            seconds=duration_s + 5,
            others=(competitor,) if name == BESIDE else (),
        )
        for rtt_ms in (QUICK_RTTS_MS if quick else RTTS_MS)
        for name in (ALONE, BESIDE)
    )


EXPERIMENT = Experiment(
    name="D5",
    title="One short connection beside the satellite's",
    source="Henderson 1999, figure 4.20",
    measures="throughput over 1.3 Mbit/s, RTT 20 to 600 ms, with a connection of 20 ms that shares "
    "the terrestrial link only",
    points=points,
    metrics=METRICS,
    figures=(
        figure("SACK and NewReno, alone and beside one of 20 ms"),
        Timeline(
            quantity="throughput",
            title="the satellite connection at 600 ms",
            points=((ALONE, 600), (BESIDE, 600)),
            flows=(SATELLITE,),
        ),
    ),
    rules=(
        at_least("throughput", ALONE, 600, 0.75 * GOODPUT_KBPS),
        ratio("throughput", ALONE, BESIDE, 600, 2),
        falls("throughput", BESIDE, (20, 100, 200, 400, 600), slack=0.05),
        falls("throughput", BESIDE, (20, 600)),
    ),
    deviations=(
        *DEVIATIONS,
        f"rates are those of {DURATION_S:g} s and not of 10 MB, which would take long beside the "
        "other",
        "the terrestrial link, 10 Mbit/s, has a queue of 50 packets, which the text does not tell",
    ),
)
