"""F5: whether the emulated links are what they are told to be, and how much the emulator can."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .flows import Datagrams
from .measures import Measure, Metric
from .outcome import Outcome
from .rules import Rule, at_least, at_most
from .spec import Experiment, Figure, Point, Scenario
from .table import Table, place

RTT, RATE, QUEUE, LOSS, LIMIT = "RTT", "rate", "queue", "loss", "packets per second"

SIZES = (64, 576, 1500)
PINGS = 20

RATES_BPS = {1.536e6: "acts_t1", 50e6: "hts_geo", 200e6: "leo"}
RATE_S = 3.0
"""How long the links are filled, at OVERLOAD times what they carry."""

OVERLOAD = 1.2

QUEUES = (1, 10, 50)
LOSSES = (1e-3, 1e-2, 1e-1)
LOSS_PACKETS = 20_000
LOSS_PACKETS_PER_S = 2_500.0
SMALL_BYTES = 100

PACKETS_PER_S = (5_000, 10_000, 20_000, 40_000)
LIMIT_S = 4.0
PROMISED_PACKETS_PER_S = 10_000
"""The ladder's step below 100 Mbit/s both ways in packets of 1500 bytes, 16,667/s."""

DEVIATIONS_ALLOWED = 3.0
"""Standard deviations of a binomial count: passed by chance in 1 of 370."""


def points(quick: bool) -> tuple[Point, ...]:
    """Give what is measured of the links, and the ladder of packets per second."""
    return (
        *(rtt_point(size) for size in (SIZES[1:] if quick else SIZES)),
        *(rate_point(rate) for rate in ((50e6,) if quick else RATES_BPS)),
        *(queue_point(packets) for packets in ((10,) if quick else QUEUES)),
        *(loss_point(probability) for probability in ((1e-2,) if quick else LOSSES)),
        *(limit_point(rate) for rate in (PACKETS_PER_S[1:3] if quick else PACKETS_PER_S)),
    )


def _point(
    series: str,
    x: float,
    flow: Datagrams,
    topology: str,
    parameters: dict[str, Any],
    seconds: float,
    packets_per_s: float,
) -> Point:
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology=topology,
            parameters=parameters,
            flows=(flow,),
            seconds=seconds,
            packets_per_s=packets_per_s,
            may_be_late=series == LIMIT,
        ),
    )


def rtt_point(size: int) -> Point:
    """Give pings of a size over T1."""
    flow = Datagrams(name="probe", packets=PINGS, packet_bytes=size, echo=True)
    return _point(RTT, size, flow, "acts_t1", {"ethernet_bps": None}, 2 + 0.6 * PINGS, 10)


def rate_point(rate_bps: float) -> Point:
    """Give more than a link carries."""
    pace = OVERLOAD * rate_bps / 8 / 1500
    flow = Datagrams(name="probe", packets=round(pace * RATE_S), packets_per_s=pace)
    topology = RATES_BPS[rate_bps]
    # The queue holds all that comes too fast, so that no gap is in what arrives.
    parameters: dict[str, Any] = {"queue": flow.packets}
    if topology == "acts_t1":
        parameters["ethernet_bps"] = None
    return _point(RATE, rate_bps, flow, topology, parameters, 4 + OVERLOAD * RATE_S, pace)


def queue_point(packets: int) -> Point:
    """Give a burst to a queue of so many packets before a T1."""
    flow = Datagrams(name="probe", packets=2 * packets + 5)
    parameters = {"queue": packets, "ethernet_bps": None}
    return _point(QUEUE, packets, flow, "acts_t1", parameters, 5, 1_000)


def loss_point(probability: float) -> Point:
    """Give small packets to a link that loses some."""
    flow = Datagrams(
        name="probe",
        packets=LOSS_PACKETS,
        packet_bytes=SMALL_BYTES,
        packets_per_s=LOSS_PACKETS_PER_S,
    )
    seconds = 4 + LOSS_PACKETS / LOSS_PACKETS_PER_S
    return _point(LOSS, probability, flow, "hts_geo", {"loss": probability}, seconds, 2_500)


def limit_point(packets_per_s: int) -> Point:
    """Give small packets at a pace, to a link whose rate is far above it."""
    flow = Datagrams(
        name="probe",
        packets=round(packets_per_s * LIMIT_S),
        packet_bytes=SMALL_BYTES,
        packets_per_s=packets_per_s,
    )
    return _point(LIMIT, packets_per_s, flow, "leo", {}, 4 + LIMIT_S, packets_per_s)


# -- measures -----------------------------------------------------------------------------------


def _told(outcome: Outcome, end: str) -> dict[str, Any]:
    told: dict[str, Any] = outcome.flow("probe").report[end]
    return told


def theory_rtt_s(size: float) -> float:
    """Give the RTT of a ping over T1: twice propagation and transmission."""
    return 2 * (0.28 + size * 8 / 1.536e6)


def rtt_error_ms(outcome: Outcome) -> float | None:
    """Give how much longer the least RTT is than theory has it."""
    rtts_s: list[float] = _told(outcome, "sender")["rtts_s"]
    return 1000 * (min(rtts_s) - theory_rtt_s(outcome.x)) if rtts_s else None


def rate_error(outcome: Outcome) -> float | None:
    """Give how far the rate of arrivals is from the link's, in percent."""
    arrived_bps: float = _told(outcome, "receiver")["packets_per_s"] * 1500 * 8
    return 100 * (arrived_bps / outcome.x - 1)


def first_drop(outcome: Outcome) -> float | None:
    """Give how far the first lost packet of a burst is from the right one.

    The first packet is being sent, as many as the queue holds wait, and the next is lost.
    """
    lost: int | None = _told(outcome, "receiver")["first_lost"]
    return None if lost is None else lost - (outcome.x + 1)


def loss_deviations(outcome: Outcome) -> float | None:
    """Give how many standard deviations the count of losses is from its expectation."""
    lost: int = LOSS_PACKETS - _told(outcome, "receiver")["packets"]
    probability = outcome.x
    return (lost - LOSS_PACKETS * probability) / math.sqrt(
        LOSS_PACKETS * probability * (1 - probability)
    )


def delivered(outcome: Outcome) -> float | None:
    """Give what of the packets arrived, in percent."""
    arrived: int = _told(outcome, "receiver")["packets"]
    return 100 * arrived / round(outcome.x * LIMIT_S)


def sent_rate(outcome: Outcome) -> float | None:
    """Give what the sender achieved, in packets per second."""
    return float(_told(outcome, "sender")["packets_per_s"])


def lateness_ms(outcome: Outcome) -> float | None:
    """Give the mean lateness of the link's packets towards the client."""
    return 1000 * float(outcome.links["satellite"]["forward"]["mean_lateness_s"])


def _of(series: str, name: str, label: str, measure: Measure, digits: int = 3) -> Metric:
    return Metric(
        name=name, label=label, measure=measure, series=frozenset({series}), digits=digits
    )


def rules() -> Iterator[Rule]:
    """Give what the emulator promises."""
    for size in SIZES:
        yield _within("RTT error", RTT, size, 1.0)
    for rate in RATES_BPS:
        yield _within("rate error", RATE, rate, 1.0)
    for packets in QUEUES:
        yield _within("first drop", QUEUE, packets, 0.0)
    for probability in LOSSES:
        yield _within("losses", LOSS, probability, DEVIATIONS_ALLOWED)
    for pace in PACKETS_PER_S:
        if pace <= PROMISED_PACKETS_PER_S:
            yield at_least("delivered", LIMIT, pace, 100.0)
            yield at_most("lateness", LIMIT, pace, 0.5)


def _within(metric: str, series: str, x: float, bound: float) -> Rule:
    least, most = at_least(metric, series, x, -bound), at_most(metric, series, x, bound)

    def check(table: Table) -> tuple[bool, str]:
        not_below, numbers = least.check(table)
        return not_below and most.check(table)[0], numbers

    return Rule(f"{metric} at {place(x)} is at most {bound:g} either way", check)


EXPERIMENT = Experiment(
    name="F5",
    title="The truth of the emulator",
    source="measured here; no text has it",
    measures="RTT, rate, queue and loss of emulated links against theory, by numbered UDP packets; "
    "and the emulator's lateness with up to 40,000 packets per second",
    points=points,
    metrics=(
        _of(RTT, "RTT error", "least RTT less theory, ms", rtt_error_ms),
        _of(RATE, "rate error", "rate of arrivals against the link's, %", rate_error),
        _of(QUEUE, "first drop", "first lost packet less the right one", first_drop),
        _of(LOSS, "losses", "losses less expectation, standard deviations", loss_deviations),
        _of(LIMIT, "delivered", "packets delivered, %", delivered, digits=5),
        _of(LIMIT, "lateness", "mean lateness, ms", lateness_ms),
        _of(LIMIT, "sent", "packets per second that the sender achieved", sent_rate, digits=5),
    ),
    figures=(
        Figure(metric="RTT error", title="pings over T1, 560 ms", x_label="packet, bytes"),
        Figure(metric="losses", title="lost packets of 20,000", x_label="probability", log_x=True),
        Figure(
            metric="lateness",
            title="packets of 100 bytes over a link of 200 Mbit/s, one way",
            x_label="packets per second",
        ),
    ),
    rules=tuple(rules()),
    deviations=(
        "the highest rate is that of this machine with all that runs beside: the sender is Python "
        "too, and its own rate is told",
    ),
)
