"""E9: six flows of different RTT over one link, of TCP-ADaLR and NewReno (tables 7.11 to 7.15)."""

from __future__ import annotations

from collections.abc import Mapping

from ..tcp_settings import TcpSettings
from . import adalr
from .adalr import ADALR_NEWRENO, KB, NEWRENO
from .flows import Bulk
from .measures import Metric, jain_index, queue_drops
from .outcome import Outcome
from .rules import at_least, compare
from .spec import Experiment, Figure, Point, Published, Scenario

RTTS_S = (0.025, 0.05, 0.1, 0.3, 0.4, 0.5)
ALL_ADALR, ALL_NEWRENO, MIXED = "all ADaLR", "all NewReno", "ADaLR from 300 ms on"

LONG_RTT_S = 0.3
"""From here on flows are ADaLR's in the mixture."""

SECONDS, QUICK_SECONDS = 120.0, 40.0
SETTLING_S = 10.0
"""Until the longest paths have their windows; rates are counted from here."""

SAMPLE_S = 1.0
"""Few: each of the six senders has a recorder of its own."""

STANDING_RTT_S = 0.3
"""What the shortest path comes to: the windows of all six, which no loss cuts, wait in the queue
of the shared link, 393 KB that take 315 ms."""

PLACE = 0.0
"""Of numbers that are of all six."""

FLOW_RATES: Mapping[str, tuple[float, ...]] = {
    ALL_ADALR: (283_404.6, 281_750.6, 268_984.6, 195_099.8, 175_343.8, 160_897.4),
    ALL_NEWRENO: (322_418.0, 300_629.1, 263_129.2, 158_601.5, 129_560.8, 109_239.5),
    MIXED: (253_202.9, 231_009.8, 206_831.7, 211_369.5, 188_513.4, 177_309.9),
}
"""Bytes per second, tables 7.11, 7.12 and 7.14."""

JAIN = {ALL_ADALR: 0.9510, ALL_NEWRENO: 0.8650, MIXED: 0.9859}
MAX_MIN = {ALL_ADALR: 0.5677, ALL_NEWRENO: 0.3388, MIXED: 0.7000}


def variant(series: str, rtt_s: float) -> str:
    """Give the TCP of a flow."""
    adalr_here = series == ALL_ADALR or (series == MIXED and rtt_s >= LONG_RTT_S)
    return ADALR_NEWRENO if adalr_here else NEWRENO


def flow_name(number: int) -> str:
    """Name a flow, from 1."""
    return f"rtt{round(1000 * RTTS_S[number - 1])}"


def points(quick: bool) -> tuple[Point, ...]:
    """Give the six flows together."""
    seconds = QUICK_SECONDS if quick else SECONDS
    return tuple(point(series, seconds) for series in (ALL_ADALR, ALL_NEWRENO, MIXED))


def point(series: str, seconds: float) -> Point:
    """Give the six flows, each with its TCP at both ends."""
    flows, host_tcp = [], dict[str, TcpSettings]()
    for number, rtt_s in enumerate(RTTS_S, 1):
        kind = variant(series, rtt_s)
        sender, receiver = f"s{number}", f"d{number}"
        host_tcp[sender] = host_tcp[receiver] = adalr.stack(kind, rtt_s)
        flows.append(
            Bulk(
                name=flow_name(number),
                sender=sender,
                receiver=receiver,
                duration_s=seconds,
                window_bytes=adalr.window_bytes(kind, rtt_s),
                sockets=adalr.sockets(kind),
            )
        )
    return Point(
        series=series,
        x=PLACE,
        scenario=Scenario(
            topology="adalr_fairness",
            parameters={"rtts_s": RTTS_S},
            host_tcp=host_tcp,
            delayed_acks=True,
            delayed_acks_on="bottleneck",
            path_rtt_s=STANDING_RTT_S,
            flows=tuple(flows),
            seconds=seconds + 5,
            packets_per_s=2_700,
            sample_interval_s=SAMPLE_S,
        ),
    )


def rate(outcome: Outcome, number: int) -> float | None:
    """Give a flow's rate in bytes/s once all have settled, to its last record."""
    flow = outcome.flow(flow_name(number))
    return flow.rate_from_to(SETTLING_S, flow.history[-1][0]) if flow.history else None


def rates(outcome: Outcome) -> list[float]:
    """Give the rates of those that have one."""
    found = (rate(outcome, number) for number in range(1, len(RTTS_S) + 1))
    return [each for each in found if each is not None]


def jain(outcome: Outcome) -> float | None:
    """Give Jain's index of the six (equation 7.4)."""
    found = rates(outcome)
    return jain_index(found) if len(found) == len(RTTS_S) else None


def max_min(outcome: Outcome) -> float | None:
    """Give the least rate over the largest (equation 7.5)."""
    found = rates(outcome)
    return min(found) / max(found) if len(found) == len(RTTS_S) and max(found) > 0 else None


def _rate_metric(number: int) -> Metric:
    def measure(outcome: Outcome) -> float | None:
        found = rate(outcome, number)
        return None if found is None else found / KB

    milliseconds = round(1000 * RTTS_S[number - 1])
    return Metric(name=flow_name(number), label=f"flow of {milliseconds} ms, kB/s", measure=measure)


EXPERIMENT = Experiment(
    name="E9",
    title="Fairness of TCP-ADaLR",
    source="TCP-ADaLR thesis, figure 7.52, tables 7.11 to 7.15",
    measures="six flows of 25 to 500 ms over 10 Mbit/s: Jain's index and the least rate over the "
    "largest, all ADaLR, all NewReno, and mixed",
    points=points,
    metrics=(
        Metric(name="jain", label="Jain's index", measure=jain, digits=4),
        Metric(name="max-min", label="least rate / largest rate", measure=max_min, digits=4),
        *(_rate_metric(number) for number in range(1, len(RTTS_S) + 1)),
        Metric(name="drops", label="packets dropped", measure=queue_drops("bottleneck")),
    ),
    figures=tuple(
        Figure(metric=metric, title=title, x_label="", kind="bars", x_names={PLACE: "six flows"})
        for metric, title in (
            ("jain", "Jain's index of six flows of 25 to 500 ms"),
            ("max-min", "the slowest of six flows against the fastest"),
            (flow_name(6), "the flow of 500 ms"),
        )
    ),
    published=(
        *(Published(metric="jain", series=s, x=PLACE, value=v) for s, v in JAIN.items()),
        *(Published(metric="max-min", series=s, x=PLACE, value=v) for s, v in MAX_MIN.items()),
        *(
            Published(metric=flow_name(number), series=series, x=PLACE, value=round(rate / KB, 1))
            for series, its in FLOW_RATES.items()
            for number, rate in enumerate(its, 1)
        ),
    ),
    rules=(
        compare(
            "Jain's index is higher with ADaLR than with NewReno",
            "jain",
            (ALL_ADALR, PLACE),
            (ALL_NEWRENO, PLACE),
        ),
        compare(
            "the least rate over the largest is higher with ADaLR than with NewReno",
            "max-min",
            (ALL_ADALR, PLACE),
            (ALL_NEWRENO, PLACE),
        ),
        compare(
            "the mixture is fairer than NewReno alone",
            "jain",
            (MIXED, PLACE),
            (ALL_NEWRENO, PLACE),
        ),
        at_least("jain", MIXED, PLACE, 0.9),
    ),
    deviations=(
        *adalr.DEVIATIONS,
        "each receiver's window is that of the rule for its own RTT: 65,535 bytes up to 100 ms, "
        "more beyond",
        f"rates are counted from {SETTLING_S:g} s on, as a run is shorter than the text's",
        "the text's rates add up to 10.9 Mbit/s on its link of 10: they are compared in their "
        "proportions only",
    ),
)
