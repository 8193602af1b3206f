"""What a link is: rate, delay, queue, loss and events of each of its two ways.

Sizes are those of IP packets, headers included, as the link carries nothing else. Rates count the
same bits. The links of the published experiments are in `link_presets`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar, cast

from mininet_topos.errors import LinkError
from mininet_topos.link_parts import (
    BitErrors,
    DelayStep,
    ErrorBursts,
    Event,
    GilbertElliott,
    Loss,
    Outage,
    PacketLoss,
    Queue,
    Red,
    is_count,
    is_number,
    require,
    require_time,
)

__all__ = [
    "BitErrors",
    "DelayStep",
    "ErrorBursts",
    "Event",
    "GilbertElliott",
    "LinkSpec",
    "Loss",
    "Outage",
    "PacketLoss",
    "Queue",
    "Red",
    "Way",
]

FORMAT_VERSION = 1
"""Of the JSON form of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What happens to packets in one direction."""

    rate_bps: float | None = None
    """Bits per second of IP packets; None: transmission takes no time."""

    delay_s: float = 0.0
    """Propagation: from the end of a packet's transmission to its arrival."""

    queue: Queue | Red = field(default_factory=Queue)
    """Where packets wait for the transmitter."""

    loss: Loss | None = None
    """What is lost after its transmission, so that it took its share of the rate."""

    events: tuple[Event, ...] = ()
    """Outages and delay steps."""

    delayed_acks: bool = False
    """Pass on every second pure ACK of TCP only, as a receiver sends them that delays its ACKs."""

    def __post_init__(self) -> None:
        require(
            self.rate_bps is None or (is_number(self.rate_bps) and self.rate_bps > 0),
            f"a rate of {self.rate_bps} bit/s carries nothing",
        )
        require_time("a delay", self.delay_s)
        require(isinstance(self.queue, Queue | Red), f"{self.queue!r} is neither drop-tail nor RED")
        require(
            self.rate_bps is not None or not isinstance(self.queue, Red),
            "RED needs a rate: without one no queue builds",
        )
        require(
            self.loss is None or isinstance(self.loss, Loss), f"{self.loss!r} is no kind of loss"
        )
        for event in self.events:
            require(isinstance(event, Event), f"{event!r} is neither outage nor delay step")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec:
    """A link: its two ways and where they are from."""

    name: str
    forward: Way
    """From the first end to the second: from the sender's or ground station's side."""

    backward: Way
    mtu: int = 1500
    """Largest IP packet in bytes."""

    seed: int = 1
    """Of everything random in the link."""

    source: str = ""
    """Text and figure that the numbers are from."""

    def __post_init__(self) -> None:
        require(bool(self.name), "a link needs a name")
        require(
            is_count(self.mtu) and 68 <= self.mtu <= 65535,  # RFC 791: 68 is the least
            f"an MTU of {self.mtu} bytes is not between 68 and 65535",
        )
        require(isinstance(self.seed, int), f"{self.seed!r} is no seed: it is no whole number")

    @property
    def rtt_s(self) -> float:
        """Give the propagation delay there and back, before any delay step."""
        return self.forward.delay_s + self.backward.delay_s

    @property
    def bdp_bytes(self) -> int | None:
        """Give what fills the forward way for one round trip; None without a rate."""
        rate_bps = self.forward.rate_bps
        return None if rate_bps is None else round(rate_bps * self.rtt_s / 8)

    def to_json(self) -> dict[str, Any]:
        """Give the link as what JSON can hold; `from_json` reads it."""
        return {
            "format": FORMAT_VERSION,
            "name": self.name,
            "forward": _way_to_json(self.forward),
            "backward": _way_to_json(self.backward),
            "mtu": self.mtu,
            "seed": self.seed,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> LinkSpec:
        """Read a link from its JSON form.

        Raises LinkError for anything that is not one.
        """
        values = dict(told)
        version = values.pop("format", None)
        require(version == FORMAT_VERSION, f"a link of format {version!r} cannot be read")
        for direction in ("forward", "backward"):
            values[direction] = _way_from_json(values.get(direction))
        return _build(cls, values)


_Built = TypeVar("_Built")

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Queue,
        Red,
        PacketLoss,
        BitErrors,
        ErrorBursts,
        GilbertElliott,
        Outage,
        DelayStep,
    )
}


def _way_to_json(way: Way) -> dict[str, Any]:
    return {
        "rate_bps": way.rate_bps,
        "delay_s": way.delay_s,
        "queue": _to_json(way.queue),
        "loss": None if way.loss is None else _to_json(way.loss),
        "events": [_to_json(event) for event in way.events],
        "delayed_acks": way.delayed_acks,
    }


def _way_from_json(told: Any) -> Way:
    require(isinstance(told, dict), "a link needs a way there and a way back")
    values = dict(told)
    if "queue" in values:
        values["queue"] = _from_json(values["queue"])
    if values.get("loss") is not None:
        values["loss"] = _from_json(values["loss"])
    require(isinstance(values.get("events", ()), list | tuple), "events are a list")
    values["events"] = tuple(_from_json(event) for event in values.get("events", ()))
    return _build(Way, values)


def _to_json(value: Queue | Red | Loss | Event) -> dict[str, Any]:
    return {"kind": type(value).__name__, **asdict(value)}


def _from_json(told: Any) -> Any:
    require(isinstance(told, dict), f"{told!r} is no part of a link")
    values = dict(told)
    kind = values.pop("kind", None)
    require(kind in _KINDS, f"{kind!r} is no part of a link")
    return _build(_KINDS[kind], values)


def _build(kind: type[_Built], values: dict[str, Any]) -> _Built:
    unknown = values.keys() - {known.name for known in fields(cast(Any, kind))}
    require(not unknown, f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    try:
        return kind(**values)
    except TypeError as error:
        raise LinkError(f"{kind.__name__} is not complete: {error}") from error
