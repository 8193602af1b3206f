"""The parts of a link: queues, losses and events, checked when they are made.

Sizes are those of IP packets, headers included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from mininet_topos.errors import LinkError


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A first-in first-out queue that drops what arrives when it is full.

    The packet in transmission has left the queue: with room for n packets and an idle link, n + 1
    of a burst survive. With neither limit the queue is endless.
    """

    packets: int | None = None
    """Packets that may wait."""

    bytes: int | None = None
    """Bytes that may wait."""

    def __post_init__(self) -> None:
        for name in ("packets", "bytes"):
            limit = getattr(self, name)
            require(limit is None or is_count(limit), f"a queue of {limit} {name} holds nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Random early detection (Floyd and Jacobson 1993, figure 2), not gentle, counting packets."""

    min_packets: float = 20
    """Average queue below which nothing is dropped."""

    max_packets: float = 40
    """Average queue from which on everything is dropped."""

    limit_packets: int = 50
    """Packets that may wait at all."""

    max_probability: float = 0.1
    """Of a drop as the average comes near to max_packets."""

    weight: float = 0.002
    """Of the newest queue length in the average."""

    typical_packet_bytes: int = 1000
    """The average decays in an idle time as if so large packets had found the queue empty."""

    def __post_init__(self) -> None:
        require(
            is_number(self.min_packets)
            and is_number(self.max_packets)
            and 0 <= self.min_packets < self.max_packets,
            f"RED's thresholds {self.min_packets} and {self.max_packets} packets are not in order",
        )
        require(
            is_count(self.limit_packets),
            f"a queue of {self.limit_packets} packets holds nothing",
        )
        require_probability("RED's maximum probability", self.max_probability)
        require_probability("RED's weight", self.weight)
        require(self.weight > 0, "RED's weight 0 never sees the queue")
        require(
            is_count(self.typical_packet_bytes),
            f"RED's typical packet of {self.typical_packet_bytes} bytes is no packet",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketLoss:
    """Every packet is lost with the same probability."""

    probability: float

    def __post_init__(self) -> None:
        require_probability("a packet's loss probability", self.probability)


@dataclass(frozen=True, slots=True, kw_only=True)
class BitErrors:
    """Every bit is wrong with the same probability; one wrong bit loses the packet."""

    rate: float
    """Bit error rate: PER = 1 - (1 - BER)^bits."""

    def __post_init__(self) -> None:
        require_probability("a bit error rate", self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBursts:
    """Bursts of consecutive wrong bits at a fixed interval of transmitted bits."""

    every_bits: int
    """From the begin of a burst to the begin of the next, and from the first bit to the first."""

    length_bits: int
    """Wrong bits of one burst."""

    passed_bits: int = 0
    """Bits counted as transmitted before the first packet: where between two bursts to begin."""

    def __post_init__(self) -> None:
        require(
            is_count(self.length_bits) and is_count(self.every_bits),
            f"a burst of {self.length_bits} bits every {self.every_bits} bits is none",
        )
        require(
            self.length_bits <= self.every_bits,
            f"a burst of {self.length_bits} bits does not end before the next, "
            f"{self.every_bits} bits later",
        )
        require(
            is_count(self.passed_bits) or self.passed_bits == 0,
            f"{self.passed_bits} bits cannot have passed",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott:
    """A good and a bad state, changed with every packet (Gilbert 1960, Elliott 1963).

    The link begins in the good state; a packet first changes the state, then meets its loss.
    """

    p_good_to_bad: float
    p_bad_to_good: float
    loss_good: float = 0.0
    loss_bad: float = 1.0

    def __post_init__(self) -> None:
        require_probability("the probability of going bad", self.p_good_to_bad)
        require_probability("the probability of going good", self.p_bad_to_good)
        require_probability("the loss in the good state", self.loss_good)
        require_probability("the loss in the bad state", self.loss_bad)

    @property
    def mean_loss(self) -> float:
        """Give the share of packets lost in the long run."""
        changes = self.p_good_to_bad + self.p_bad_to_good
        bad = self.p_good_to_bad / changes if changes else 0.0
        return bad * self.loss_bad + (1 - bad) * self.loss_good


Loss: TypeAlias = PacketLoss | BitErrors | ErrorBursts | GilbertElliott


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The link is away for a while: a hand-over, or rain.

    Times count from the link's start, or from its last restart.
    """

    at_s: float
    lasts_s: float
    every_s: float | None = None
    """From the begin of one to the begin of the next; None: it happens once."""

    holds: bool = False
    """The transmitter waits, and packets queue. Otherwise it goes on, and what any part of the
    outage meets in transmission is lost."""

    def __post_init__(self) -> None:
        require_time("an outage's begin", self.at_s)
        require_time("an outage's length", self.lasts_s)
        require(self.lasts_s > 0, "an outage of 0 s is none")
        if self.every_s is not None:
            require_time("the time between outages", self.every_s)
            require(
                self.every_s > self.lasts_s,
                f"an outage of {self.lasts_s:g} s every {self.every_s:g} s never ends",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayStep:
    """The propagation delay changes, for packets whose transmission ends from then on.

    No packet overtakes another: after a step down they wait for those before them.
    """

    at_s: float
    delay_s: float

    def __post_init__(self) -> None:
        require_time("a delay step's time", self.at_s)
        require_time("a delay", self.delay_s)


Event: TypeAlias = Outage | DelayStep


def require(holds: bool, sentence: str) -> None:
    """Refuse a link for which something does not hold."""
    if not holds:
        raise LinkError(sentence)


def is_number(value: object) -> bool:
    """Tell a finite number from anything else."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value: object) -> bool:
    """Tell a whole number of at least 1 from anything else."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def require_time(name: str, value: float) -> None:
    """Refuse what is no time from now on, in seconds."""
    require(is_number(value) and value >= 0, f"{name} of {value} s is not in the future")


def require_probability(name: str, value: float) -> None:
    """Refuse what is no probability."""
    require(is_number(value) and 0 <= value <= 1, f"{name} of {value} is not between 0 and 1")
