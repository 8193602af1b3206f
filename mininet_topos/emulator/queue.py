"""Who may wait for the transmitter: drop-tail in packets or bytes, and RED.

A queue knows when each of its packets will begin its transmission, so that its occupancy at any
time follows from the time alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from mininet_topos import links


class Admission(Enum):
    """What becomes of a packet that arrives."""

    GRANTED = "granted"
    NO_ROOM = "no room"
    EARLY_DROP = "early drop"


class WaitingRoom:
    """The packets whose transmission has not begun."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, int]] = deque()
        self.packets = 0
        self.bytes = 0
        self.most_packets = 0
        self.most_bytes = 0

    def enter(self, begin_s: float, size_bytes: int) -> None:
        """Let a packet wait until its transmission begins."""
        self._waiting.append((begin_s, size_bytes))
        self.packets += 1
        self.bytes += size_bytes
        if self.packets > self.most_packets:
            self.most_packets = self.packets
        if self.bytes > self.most_bytes:
            self.most_bytes = self.bytes

    def advance(self, now_s: float) -> None:
        """Let go whose transmission has begun."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now_s:
            self.packets -= 1
            self.bytes -= waiting.popleft()[1]


class AdmissionPolicy(Protocol):
    """Decides about every packet that arrives."""

    def admit(
        self, room: WaitingRoom, size_bytes: int, now_s: float, idle_from_s: float
    ) -> Admission:
        """Decide about a packet; the room is as of now.

        idle_from_s: when the transmitter ends what it was given so far, or could begin after an
        outage; up to now: it idles, and the packet need not wait.
        """


def admission_policy(
    queue: links.Queue | links.Red, rate_bps: float | None, uniform: Callable[[], float]
) -> AdmissionPolicy:
    """Give the policy of a queue before a transmitter."""
    if isinstance(queue, links.Red):
        return RandomEarlyDetection(queue, rate_bps or float("inf"), uniform)
    return DropTail(queue)


class DropTail:
    """Room for so many packets, or bytes."""

    def __init__(self, queue: links.Queue) -> None:
        self._packets = float("inf") if queue.packets is None else queue.packets
        self._bytes = float("inf") if queue.bytes is None else queue.bytes

    def admit(
        self, room: WaitingRoom, size_bytes: int, now_s: float, idle_from_s: float
    ) -> Admission:
        """Grant while there is room."""
        fits = room.packets < self._packets and room.bytes + size_bytes <= self._bytes
        return Admission.GRANTED if fits or idle_from_s <= now_s else Admission.NO_ROOM


class RandomEarlyDetection:
    """RED of Floyd and Jacobson 1993, figure 2, with its variables' names.

    Deviation: the text's queue has no end; here a packet beyond the limit is dropped, and counts as
    a drop for the distance to the next.
    """

    def __init__(self, red: links.Red, rate_bps: float, uniform: Callable[[], float]) -> None:
        self._red = red
        self._uniform = uniform
        self._typical_s = red.typical_packet_bytes * 8 / rate_bps
        self.average = 0.0
        self._count = -1

    def admit(
        self, room: WaitingRoom, size_bytes: int, now_s: float, idle_from_s: float
    ) -> Admission:
        """Average the queue's length, and drop by the average."""
        red = self._red
        if idle_from_s < now_s:
            missed = (now_s - idle_from_s) / self._typical_s
            self.average *= (1 - red.weight) ** missed
        else:
            self.average += red.weight * (room.packets - self.average)
        if self._drops_early():
            self._count = 0
            return Admission.EARLY_DROP
        if room.packets >= red.limit_packets and idle_from_s > now_s:
            self._count = 0
            return Admission.NO_ROOM
        return Admission.GRANTED

    def _drops_early(self) -> bool:
        red = self._red
        if self.average >= red.max_packets:
            return True
        if self.average < red.min_packets:
            self._count = -1
            return False
        self._count += 1
        share = (self.average - red.min_packets) / (red.max_packets - red.min_packets)
        base = red.max_probability * share
        left = 1 - self._count * base
        return left <= 0 or self._uniform() < base / left
