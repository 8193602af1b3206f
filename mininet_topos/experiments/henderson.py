"""What the rows of Henderson 1999, chapter 4, share: connections of several RTTs at one bottleneck.

1.5 Mbit/s, packets of 1000 bytes, every segment acknowledged as ns does, HTTP-like background load
of 20% of the link. Rates are those of the acknowledgments at the sender, without the first seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..links import Queue, Red
from ..tcp_settings import TcpSettings, nineties
from .flows import Bulk, Sockets, WebLoad
from .measures import Measure, Metric, jain_index, queue_drops
from .outcome import Outcome
from .rules import Rule
from .spec import Point, Scenario
from .table import Table

BOTTLENECK_BPS = 1.5e6
PACKET_BYTES = 1000
SEGMENT_BYTES = PACKET_BYTES - 40

WEB_SHARE = 0.2
WEB_PAYLOAD_BPS = WEB_SHARE * BOTTLENECK_BPS * SEGMENT_BYTES / PACKET_BYTES

WINDOW_BYTES = 240 * 1024
"""The largest that the text's receivers had (section 4.2.2): no connection is held by it."""

RTTS_MS = (10, 20, 100, 200, 300, 600)
"""Topology 2."""

SHORTEST_RTT_S = 0.01
"""Of all three topologies, while nothing waits."""

WARM_UP_S = 15.0
DURATION_S = 135.0
QUICK_DURATION_S = 60.0
"""The text does not tell how long it simulated; it took the mean of about fifty runs."""

SAMPLE_S = 1.0
"""Few: each of the seven senders has a recorder of its own."""

STANDARD = Sockets(congestion="xftp_reno97")
WEB = "web"


def stack(*, sack: bool) -> TcpSettings:
    """Give ns's one-way TCP: NewReno or SACK, an ACK for every segment."""
    return nineties(
        sack=sack,
        mss_bytes=SEGMENT_BYTES,
        window_bytes=WINDOW_BYTES,
        receive_buffer_bytes=(4096, 4 << 20, 4 << 20),
        quick_ack=True,
        congestion_control=STANDARD.congestion,
    )


def red(limit_packets: int = 50) -> Red:
    """Give the text's RED queue, 20 and 40 of 50 packets; thresholds of others in proportion."""
    return Red(
        min_packets=0.4 * limit_packets,
        max_packets=0.8 * limit_packets,
        limit_packets=limit_packets,
        typical_packet_bytes=PACKET_BYTES,
    )


def fifo(limit_packets: int = 50) -> Queue:
    """Give a drop-tail queue."""
    return Queue(packets=limit_packets)


def waiting_s(queue: Queue | Red, rate_bps: float) -> float:
    """Give about how long a packet waits in a queue that long transfers keep busy.

    That is RED's lower threshold, or half of a FIFO: what a window that is halved leaves of it.
    """
    packets = queue.min_packets if isinstance(queue, Red) else (queue.packets or 0) / 2
    return packets * 8 * PACKET_BYTES / rate_bps


def flow_name(rtt_ms: int) -> str:
    """Name the connection of an RTT."""
    return f"{rtt_ms}ms"


def constant_rate(c: int) -> Sockets:
    """Give the Constant-Rate policy of section 4.1.4."""
    return Sockets(congestion="xftp_crate", parameters=(("c", c),))


def increase_by(k: int) -> Sockets:
    """Give the Increase-by-K policy of section 4.1.5; K = 1 is the standard one."""
    return Sockets(congestion="xftp_incbyk", parameters=(("k", k),)) if k > 1 else STANDARD


def transfer(
    name: str, ends: tuple[str, str], quick: bool, sockets: Sockets = STANDARD, number: int = 0
) -> Bulk:
    """Give a connection that lasts for the whole run; number: spreads the starts over a second."""
    return Bulk(
        name=name,
        sender=ends[0],
        receiver=ends[1],
        start_s=0.15 * number,
        duration_s=QUICK_DURATION_S if quick else DURATION_S,
        sockets=sockets,
    )


def web(ends: tuple[str, str], sockets: Sockets = STANDARD, name: str = WEB) -> WebLoad:
    """Give the background load."""
    return WebLoad(
        name=name,
        sender=ends[0],
        receiver=ends[1],
        load_bps=WEB_PAYLOAD_BPS,
        background=True,
        sockets=sockets,
    )


def two(
    long_ms: int,
    quick: bool,
    *,
    long: Sockets = STANDARD,
    others: Sockets = STANDARD,
    added: Sockets | None = None,
) -> tuple[Bulk | WebLoad, ...]:
    """Give the flows of topology 1; added: of one connection more, of 10 ms."""
    flows = [
        transfer(flow_name(10), ("s1", "d1"), quick, others, 0),
        transfer(flow_name(long_ms), ("s2", "d2"), quick, long, 1),
    ]
    return (*flows, *_added(added, quick), web(("web_s", "web_d"), others))


def six(
    quick: bool,
    *,
    special: Mapping[int, Sockets] | None = None,
    others: Sockets = STANDARD,
    added: Sockets | None = None,
    rtts_ms: Sequence[int] = RTTS_MS,
) -> tuple[Bulk | WebLoad, ...]:
    """Give the flows of topology 2; special: by RTT, those that differ from the others.

    added: of one connection more, of the shortest RTT.
    """
    flows = [
        transfer(
            flow_name(rtt_ms),
            (f"s{number}", f"d{number}"),
            quick,
            (special or {}).get(rtt_ms, others),
            number,
        )
        for number, rtt_ms in enumerate(rtts_ms, start=1)
    ]
    return (*flows, *_added(added, quick), web(("web_s", "web_d"), others))


def chain(
    quick: bool, *, long: Sockets = STANDARD, others: Sockets = STANDARD, gateways: int = 5
) -> tuple[Bulk | WebLoad, ...]:
    """Give the flows of topology 3: the long one, and a short one and a load at every gateway."""
    hops = range(1, gateways + 1)
    return (
        transfer(flow_name(600), ("s0", "d0"), quick, long, 0),
        *(transfer(_hop_name(n), (f"s{n}", f"d{n}"), quick, others, n) for n in hops),
        *(web((f"s{n}", f"d{n}"), others, f"{WEB}{n}") for n in hops),
    )


def _hop_name(number: int) -> str:
    return flow_name(10) if number == 1 else f"{flow_name(10)}-hop{number}"


ADDED = "standard"


def _added(sockets: Sockets | None, quick: bool) -> tuple[Bulk, ...]:
    if sockets is None:
        return ()
    return (transfer(ADDED, ("s1", "d1"), quick, sockets, 0),)


def point(
    series: str,
    x: float,
    topology: str,
    flows: tuple[Bulk | WebLoad, ...],
    *,
    quick: bool,
    queue: Queue | Red,
    sack: bool = True,
    parameters: Mapping[str, object] | None = None,
) -> Point:
    """Give one run."""
    hops = 5 if topology == "henderson3" else 1
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology=topology,
            parameters={"queue": queue, **(parameters or {})},
            tcp=stack(sack=sack),
            flows=flows,
            seconds=(QUICK_DURATION_S if quick else DURATION_S) + 4,
            packets_per_s=900.0 * hops,
            path_rtt_s=SHORTEST_RTT_S + waiting_s(queue, BOTTLENECK_BPS),
            sample_interval_s=SAMPLE_S,
        ),
    )


def flow_rate(outcome: Outcome, name: str) -> float | None:
    """Give a connection's payload rate in bits/s after the warm-up."""
    if name not in outcome.flows:
        return None
    rate = outcome.flows[name].rate_from_to(WARM_UP_S, _last_s(outcome))
    return None if rate is None else 8 * rate


def _last_s(outcome: Outcome) -> float:
    """Give when the first of the connections ended: from then on the rest has more room."""
    return min(
        flow.history[-1][0]
        for flow in outcome.flows.values()
        if flow.kind == "Bulk" and flow.history
    )


def rates_at_bottleneck(outcome: Outcome) -> list[float] | None:
    """Give the rates of the connections at the (first) bottleneck, without the background's."""
    names = [
        name for name, flow in outcome.flows.items() if flow.kind == "Bulk" and "hop" not in name
    ]
    rates = [flow_rate(outcome, name) for name in names]
    return [rate for rate in rates if rate is not None] if None not in rates else None


def fairness(outcome: Outcome) -> float | None:
    """Give Jain's index over the connections."""
    rates = rates_at_bottleneck(outcome)
    return jain_index(rates) if rates else None


def bottleneck_utilisation(outcome: Outcome) -> float | None:
    """Give the share of the bottleneck that carries data for the first time, headers included."""
    rates = rates_at_bottleneck(outcome)
    load = outcome.flows.get(WEB) or outcome.flows.get(f"{WEB}1")
    if not rates or load is None:
        return None
    payload_bps = sum(rates) + 8 * load.throughput_bytes_per_s
    return payload_bps * PACKET_BYTES / SEGMENT_BYTES / BOTTLENECK_BPS


def kbps(rtt_ms: int) -> Measure:
    """Give a connection's payload rate in kbit/s."""

    def measure(outcome: Outcome) -> float | None:
        rate = flow_rate(outcome, flow_name(rtt_ms))
        return None if rate is None else rate / 1000

    return measure


def share(rtt_ms: int) -> Measure:
    """Give a connection's share of the bottleneck in percent."""

    def measure(outcome: Outcome) -> float | None:
        rate = flow_rate(outcome, flow_name(rtt_ms))
        return None if rate is None else 100 * rate / BOTTLENECK_BPS

    return measure


def web_share(outcome: Outcome) -> float | None:
    """Give the background's share of the bottleneck in percent, headers included."""
    load = outcome.flows.get(WEB)
    if load is None:
        return None
    wire_bps = 8 * load.throughput_bytes_per_s * PACKET_BYTES / SEGMENT_BYTES
    return 100 * wire_bps / BOTTLENECK_BPS


def rate_metric(rtt_ms: int) -> Metric:
    """Give the metric of a connection's rate."""
    return Metric(name=f"{rtt_ms} ms", label=f"rate of {rtt_ms} ms, kbit/s", measure=kbps(rtt_ms))


FAIRNESS = Metric(name="fairness", label="Jain's fairness index", measure=fairness)
UTILISATION = Metric(
    name="utilisation", label="utilisation of the bottleneck", measure=bottleneck_utilisation
)
WEB_METRIC = Metric(name="web", label="background's share, %", measure=web_share)
DROPS = Metric(name="drops", label="packets dropped", measure=queue_drops("bottleneck"))


def starves(series: str, x: float, rtts_ms: Sequence[int] = (100, 200, 300, 600)) -> Rule:
    """The longer the RTT, the lower the rate; neighbours may differ by 15% the other way."""

    def check(table: Table) -> tuple[bool, str]:
        rates = [table.at(f"{rtt_ms} ms", series, x) for rtt_ms in rtts_ms]
        holds = all(b < 1.15 * a for a, b in pairwise(rates)) and rates[-1] < rates[0]
        return holds, ", ".join(f"{rate:.4g}" for rate in rates) + " kbit/s"

    names = ", ".join(map(str, rtts_ms))
    return Rule(f"{series} at {x:g}: rates fall with the RTT over {names} ms, but for 15%", check)


DEVIATIONS = (
    "the text simulated with ns and took the mean of about fifty runs; here a run lasts for "
    f"{DURATION_S:g} s of which the first {WARM_UP_S:g} s do not count: --repeat gives means",
    "ns's receivers acknowledge every segment, and so do these; packets carry 960 bytes of payload",
    "NewReno and SACK are Linux's, with its recovery by RACK and proportional rate reduction",
    "the background load is of the same rate, 20% of the link, with responses of Pareto sizes in "
    "place of Mah's traces, over a path of 100 ms",
    "the background's rate is its mean over the whole run: utilisation can come out 1% above 1",
)
