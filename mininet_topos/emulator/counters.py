"""What a link has counted, as its emulator tells it while it runs and at its end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

LATE_S = 0.001
"""A packet sent so much later than it was due is counted as late."""

TOLERATED_LATE_SHARE = 0.001
"""Of all packets: with more late ones the link was not what was asked for."""


class Occupancy(NamedTuple):
    """A queue at one moment; the packet in transmission is not in it."""

    at_s: float
    """On the monotonic clock, which all processes of a machine share."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WayCounters:
    """One direction since its start or its last restart."""

    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int
    queue_drops: int
    """Packets that found no room."""

    early_drops: int
    """Packets that RED dropped before the queue was full."""

    losses: int
    """Packets lost by the loss model."""

    outage_losses: int
    """Packets lost in an outage, whatever the loss model would have done to them."""

    thinned_acks: int
    """Pure ACKs left out by `delayed_acks`."""

    waiting_packets: int
    waiting_bytes: int
    most_packets: int
    """Highest occupancy of the queue."""

    most_bytes: int
    in_flight: int
    """Packets that were accepted and have not arrived, queued ones among them."""

    late_packets: int
    """Packets sent more than LATE_S after they were due."""

    most_lateness_s: float
    mean_lateness_s: float
    device_drops: int
    """Packets the device dropped because the emulator did not read them in time."""

    refused: int
    """Packets the device of the other end did not take, as it was down."""

    @property
    def could_keep_up(self) -> bool:
        """Tell whether packets went when they were due, but for one in a thousand."""
        return (
            self.device_drops == 0 and self.late_packets <= TOLERATED_LATE_SHARE * self.packets_out
        )


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """Both directions of a link."""

    started_s: float
    """When it began, or began anew, on the monotonic clock: where its events count from."""

    at_s: float
    """When this was read, on the monotonic clock."""

    forward: WayCounters
    backward: WayCounters
    most_unread_s: float
    """Longest that the emulator left its devices unread: what came then was late from the begin."""

    processor_s: float
    """Processor time the emulator used."""

    scheduling: str
    """How the kernel schedules the emulator: "fifo", "nice -15" or "normal"."""

    @property
    def most_lateness_s(self) -> float:
        """Give how much later than due the latest packet was sent."""
        return max(self.forward.most_lateness_s, self.backward.most_lateness_s)

    @property
    def late_packets(self) -> int:
        """Give how many packets were sent more than LATE_S after they were due."""
        return self.forward.late_packets + self.backward.late_packets

    @property
    def could_keep_up(self) -> bool:
        """Tell whether the link was what was asked for; a result without this is worth nothing."""
        return self.forward.could_keep_up and self.backward.could_keep_up

    def to_json(self) -> dict[str, Any]:
        """Give the counters as what JSON can hold, with the verdict."""
        return {**asdict(self), "could_keep_up": self.could_keep_up}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> LinkCounters:
        """Read the counters from their JSON form."""
        values = {name: value for name, value in told.items() if name != "could_keep_up"}
        values["forward"] = WayCounters(**values["forward"])
        values["backward"] = WayCounters(**values["backward"])
        return cls(**values)
