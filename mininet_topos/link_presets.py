"""The links of the published experiments, and two of today.

The forward way is the one the data takes: from the server's or ground station's side. What the
texts varied, such as queues, is a parameter; where they do not tell, the default says so.
"""

from __future__ import annotations

from mininet_topos.links import LinkSpec, Loss, Outage, Queue, Red, Way

ACTS_T1_RATE_BPS = 1.536e6
ACTS_T1_DELAY_S = 0.28
HALF_T1_RATE_BPS = 768e3
HALF_T1_DELAY_S = 0.29
ITALSAT_RATE_BPS = 2e6
HENDERSON_RATE_BPS = 1.5e6
ADALR_DELAY_S = 0.25


def acts_t1(
    queue: Queue | Red | None = None,
    *,
    loss: Loss | None = None,
    rtt_s: float = 2 * ACTS_T1_DELAY_S,
    seed: int = 1,
) -> LinkSpec:
    """Give the T1 channel over ACTS: 192,000 B/s, 560 ms."""
    return _symmetric(
        "acts-t1",
        Way(rate_bps=ACTS_T1_RATE_BPS, delay_s=rtt_s / 2, queue=queue or Queue(), loss=loss),
        seed,
        "Allman 1997, section 2.2",
    )


def half_t1(
    queue: Queue | Red | None = None, *, loss: Loss | None = None, seed: int = 1
) -> LinkSpec:
    """Give half a T1 channel over ACTS: 768 kbit/s, 2 x 290 ms."""
    return _symmetric(
        "half-t1",
        Way(rate_bps=HALF_T1_RATE_BPS, delay_s=HALF_T1_DELAY_S, queue=queue or Queue(), loss=loss),
        seed,
        "Allman, Hayes, Kruse and Ostermann 1997, section 3",
    )


def italsat(queue: Queue | Red | None = None, *, rtt_s: float = 0.52, seed: int = 1) -> LinkSpec:
    """Give ITALSAT's 2 Mbit/s; the text says no more of the RTT than that it is above 500 ms."""
    return _symmetric(
        "italsat",
        Way(rate_bps=ITALSAT_RATE_BPS, delay_s=rtt_s / 2, queue=queue or Queue()),
        seed,
        "Marchese 2001, section 2",
    )


def henderson_bottleneck(
    queue: Queue | Red | None = None, *, delay_s: float = 0.0025, seed: int = 1
) -> LinkSpec:
    """Give the shared 1.5 Mbit/s link; delays of single flows belong on their own links."""
    return _symmetric(
        "henderson-bottleneck",
        Way(rate_bps=HENDERSON_RATE_BPS, delay_s=delay_s, queue=queue or Queue(packets=50)),
        seed,
        "Henderson 1999, section 4.2",
    )


def adalr_satellite(
    queue: Queue | Red | None = None,
    *,
    rates_bps: tuple[float, float] = (2.048e6, 256e3),
    loss: Loss | None = None,
    seed: int = 1,
) -> LinkSpec:
    """Give the GEO hop from gateway to client, 2 x 125 ms one way; the queue is the gateway's."""
    forward_bps, backward_bps = rates_bps
    return LinkSpec(
        name="adalr-satellite",
        forward=Way(rate_bps=forward_bps, delay_s=ADALR_DELAY_S, queue=queue or Queue(), loss=loss),
        backward=Way(rate_bps=backward_bps, delay_s=ADALR_DELAY_S, loss=loss),
        seed=seed,
        source="TCP-ADaLR thesis, section 7.1",
    )


def adalr_wide_satellite(
    queue: Queue | Red | None = None, *, loss: Loss | None = None, seed: int = 1
) -> LinkSpec:
    """Give the same hop with 10 and 1 Mbit/s (table 7.7)."""
    return adalr_satellite(queue, rates_bps=(10e6, 1e6), loss=loss, seed=seed)


def hts_geo(
    queue: Queue | Red | None = None,
    *,
    loss: Loss | None = None,
    rtt_s: float = 0.6,
    seed: int = 1,
) -> LinkSpec:
    """Give a GEO link of today: 50 and 5 Mbit/s, 600 ms; the queue's default is one BDP."""
    return _with_bdp_queues("hts-geo", (50e6, 5e6), rtt_s, queue, loss, (), seed)


def leo(
    queue: Queue | Red | None = None,
    *,
    loss: Loss | None = None,
    hand_over: Outage | None = None,
    rtt_s: float = 0.04,
    seed: int = 1,
) -> LinkSpec:
    """Give a LEO link of today: 200 and 20 Mbit/s, 40 ms; the queue's default is one BDP.

    hand_over: when both ways are away, such as Outage(at_s=15, lasts_s=0.3, every_s=15).
    """
    events = () if hand_over is None else (hand_over,)
    return _with_bdp_queues("leo", (200e6, 20e6), rtt_s, queue, loss, events, seed)


def _symmetric(name: str, way: Way, seed: int, source: str) -> LinkSpec:
    return LinkSpec(name=name, forward=way, backward=way, seed=seed, source=source)


def _with_bdp_queues(
    name: str,
    rates_bps: tuple[float, float],
    rtt_s: float,
    queue: Queue | Red | None,
    loss: Loss | None,
    events: tuple[Outage, ...],
    seed: int,
) -> LinkSpec:
    ways = [
        Way(
            rate_bps=rate_bps,
            delay_s=rtt_s / 2,
            queue=chosen or Queue(bytes=round(rate_bps * rtt_s / 8)),
            loss=loss,
            events=events,
        )
        for rate_bps, chosen in zip(rates_bps, (queue, None), strict=True)
    ]
    return LinkSpec(
        name=name, forward=ways[0], backward=ways[1], seed=seed, source="a service of today"
    )
