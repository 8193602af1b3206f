"""D3: one long connection grows by K per round trip (figure 4.10, table 4.1)."""

from __future__ import annotations

from . import henderson as text
from .henderson import increase_by
from .rules import at_least, compare, flat, ratio
from .spec import Experiment, Figure, Point, Published, Timeline

KS = (1, 2, 4, 8, 16, 32)
LARGE_KS = (1, 4, 16)
"""Of topology 3, whose eleven links take most of a machine."""

TOPOLOGY_1 = "topology 1, 600 ms"
BY_600, BY_300 = "topology 2, 600 ms", "topology 2, 300 ms"
TOPOLOGY_3 = "topology 3, 600 ms"
BENCHMARK, K = 1, 4

QUICK = {(BY_600, 1), (BY_600, 4), (BY_300, 1), (BY_300, 4)}


def points(quick: bool) -> tuple[Point, ...]:
    """Give every topology by K. K = 1 of topology 2 is the same benchmark, run twice."""
    found = []
    for k in KS:
        sockets = increase_by(k)
        chosen = {
            TOPOLOGY_1: ("henderson1", text.two(600, quick, long=sockets)),
            BY_600: ("henderson2", text.six(quick, special={600: sockets})),
            BY_300: ("henderson2", text.six(quick, special={300: sockets})),
        }
        if k in LARGE_KS:
            chosen[TOPOLOGY_3] = ("henderson3", text.chain(quick, long=sockets))
        found += [
            text.point(series, k, topology, flows, quick=quick, queue=text.red())
            for series, (topology, flows) in chosen.items()
            if not quick or (series, k) in QUICK
        ]
    return tuple(found)


EXPERIMENT = Experiment(
    name="D3",
    title="Increase-by-K on one long connection",
    source="Henderson 1999, figure 4.10 and table 4.1",
    measures="Jain's index, utilisation and rates when only the long connection grows by K "
    "segments per round trip",
    points=points,
    metrics=(
        text.FAIRNESS,
        text.UTILISATION,
        *(text.rate_metric(rtt_ms) for rtt_ms in text.RTTS_MS),
        text.WEB_METRIC,
        text.DROPS,
    ),
    figures=(
        Figure(
            metric="fairness",
            title="fairness by K (figure 4.10)",
            x_label="K, segments per round trip",
            log_x=True,
            x_names={k: str(k) for k in KS},
            series=(TOPOLOGY_1, BY_600, BY_300, TOPOLOGY_3),
        ),
        Figure(
            metric="600 ms",
            title="rate of the 600 ms connection",
            x_label="K, segments per round trip",
            log_x=True,
            x_names={k: str(k) for k in KS},
            series=(TOPOLOGY_1, BY_600, BY_300, TOPOLOGY_3),
        ),
        Timeline(
            quantity="acknowledged",
            title="the 600 ms connection, K = 1 and 4",
            points=((BY_600, BENCHMARK), (BY_600, K)),
            flows=(text.flow_name(600),),
        ),
    ),
    published=(
        Published(metric="fairness", series=BY_600, x=BENCHMARK, value=0.807),
        Published(metric="fairness", series=BY_600, x=K, value=0.873),
        Published(metric="fairness", series=BY_300, x=BENCHMARK, value=0.807),
        Published(metric="fairness", series=BY_300, x=K, value=0.861),
        Published(metric="600 ms", series=BY_600, x=BENCHMARK, value=68.1),
        Published(metric="600 ms", series=BY_600, x=K, value=138.7),
        Published(metric="600 ms", series=BY_300, x=K, value=59.6),
        Published(metric="300 ms", series=BY_300, x=BENCHMARK, value=116.2),
        Published(metric="300 ms", series=BY_300, x=K, value=240.8),
        Published(metric="300 ms", series=BY_600, x=K, value=109.1),
        Published(metric="200 ms", series=BY_600, x=K, value=151.6),
        Published(metric="100 ms", series=BY_600, x=K, value=207.0),
        *(
            Published(metric="utilisation", series=name, x=k, value=0.99)
            for name in (BY_600, BY_300)
            for k in (BENCHMARK, K)
        ),
    ),
    rules=(
        compare(
            "K = 4 gives the 600 ms connection a higher rate",
            "600 ms",
            (BY_600, K),
            (BY_600, BENCHMARK),
        ),
        compare(
            "K = 4 gives the 300 ms connection a higher rate",
            "300 ms",
            (BY_300, K),
            (BY_300, BENCHMARK),
        ),
        ratio("600 ms", BY_600, BY_300, K, 1.4),
        ratio("300 ms", BY_300, BY_600, K, 1.4),
        *(
            compare(
                f"{name}: Jain's index rises with K = 4",
                "fairness",
                (name, K),
                (name, BENCHMARK),
            )
            for name in (BY_600, BY_300, TOPOLOGY_1, TOPOLOGY_3)
        ),
        *(
            rule
            for name in (BY_600, BY_300)
            for rule in (
                at_least("utilisation", name, K, 0.93),
                flat("utilisation", name, (BENCHMARK, K), 0.05),
            )
        ),
    ),
    deviations=text.DEVIATIONS,
)
