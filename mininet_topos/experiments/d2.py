"""D2: the Constant-Rate policy, by all and with one standard connection (figures 4.7 to 4.9)."""

from __future__ import annotations

from . import henderson as text
from .henderson import STANDARD, constant_rate
from .rules import at_least, compare
from .spec import Experiment, Figure, Point, Timeline

STANDARD_PLACE = 1
CONSTANTS = (4, 16, 64, 100, 400, 1600)
PLACES = {float(STANDARD_PLACE): "standard", **{float(c): str(c) for c in CONSTANTS}}

TOPOLOGY_1, TOPOLOGY_2, TOPOLOGY_3 = "topology 1", "topology 2", "topology 3"
ONE_MORE = " and one standard"

QUICK = {
    *((TOPOLOGY_2, place) for place in (STANDARD_PLACE, 16, 1600)),
    *((TOPOLOGY_2 + ONE_MORE, place) for place in (16,)),
}
LARGE_PLACES = (STANDARD_PLACE, 16, 100, 1600)
"""Of topology 3, whose eleven links take most of a machine."""


def points(quick: bool) -> tuple[Point, ...]:
    """Give every topology by the policy's constant."""
    found = []
    for place in (STANDARD_PLACE, *CONSTANTS):
        sockets = STANDARD if place == STANDARD_PLACE else constant_rate(place)
        chosen = {
            TOPOLOGY_1: ("henderson1", text.two(600, quick, long=sockets, others=sockets)),
            TOPOLOGY_1 + ONE_MORE: (
                "henderson1",
                text.two(600, quick, long=sockets, others=sockets, added=STANDARD),
            ),
            TOPOLOGY_2: ("henderson2", text.six(quick, others=sockets)),
            TOPOLOGY_2 + ONE_MORE: ("henderson2", text.six(quick, others=sockets, added=STANDARD)),
        }
        if place in LARGE_PLACES:
            chosen[TOPOLOGY_3] = ("henderson3", text.chain(quick, long=sockets, others=sockets))
        found += [
            text.point(series, place, topology, flows, quick=quick, queue=text.red())
            for series, (topology, flows) in chosen.items()
            if not quick or (series, place) in QUICK
        ]
    return tuple(found)


def _figure(metric: str, title: str, series: tuple[str, ...], *, zero_based: bool = True) -> Figure:
    return Figure(
        metric=metric,
        title=title,
        x_label="constant c, segments per second squared",
        log_x=True,
        x_names=PLACES,
        series=series,
        zero_based=zero_based,
    )


ALONE = (TOPOLOGY_1, TOPOLOGY_2, TOPOLOGY_3)

EXPERIMENT = Experiment(
    name="D2",
    title="The Constant-Rate policy",
    source="Henderson 1999, figures 4.7 to 4.9",
    measures="Jain's index and utilisation when all grow by c·rtt²/cwnd per ACK, and with one "
    "standard connection among them",
    points=points,
    metrics=(
        text.FAIRNESS,
        text.UTILISATION,
        *(text.rate_metric(rtt_ms) for rtt_ms in text.RTTS_MS),
        text.DROPS,
    ),
    figures=(
        _figure("utilisation", "utilisation (figure 4.7)", ALONE, zero_based=False),
        _figure("fairness", "fairness (figure 4.8)", ALONE),
        _figure(
            "fairness",
            "fairness beside one standard connection (figure 4.9)",
            tuple(name + ONE_MORE for name in ALONE[:2]),
        ),
        Timeline(
            quantity="acknowledged",
            title="topology 2, c = 16",
            points=((TOPOLOGY_2, 16),),
            flows=tuple(text.flow_name(rtt_ms) for rtt_ms in text.RTTS_MS),
        ),
    ),
    rules=(
        *(
            compare(
                f"{name}: fairness with c = {c} is above the standard's",
                "fairness",
                (name, c),
                (name, STANDARD_PLACE),
            )
            for name in ALONE
            for c in (16, 64)
            if name != TOPOLOGY_3 or c in LARGE_PLACES
        ),
        compare(
            "topology 2: with c = 1600 fairness is lost again",
            "fairness",
            (TOPOLOGY_2, 16),
            (TOPOLOGY_2, 1600),
            0.02,
        ),
        at_least("fairness", TOPOLOGY_2, 16, 0.9),
        at_least("utilisation", TOPOLOGY_2, 16, 0.9),
        *(
            compare(
                f"{name}, c = {c}: one standard connection takes fairness away",
                "fairness",
                (name, c),
                (name + ONE_MORE, c),
                0.02,
            )
            for name in (TOPOLOGY_1, TOPOLOGY_2)
            for c in (16, 64)
        ),
    ),
    deviations=(
        *text.DEVIATIONS,
        "the text does not tell the added connection's RTT: it has 10 ms, as one of 100 ms grows "
        "much as Constant-Rate does with c = 16 and takes no more than its share",
        "topology 3 is run without it, and with its long connection at 600 ms",
    ),
)
