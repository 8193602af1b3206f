"""One direction of a link, put together from its stages; time comes in as an argument.

A packet goes through: thinning of ACKs, admission to the queue, transmission, outage, loss,
propagation. All of its fate is settled when it arrives, because the queue is first-in first-out.
"""

from __future__ import annotations

import math
import random
from collections import deque

from mininet_topos.emulator.acks import AckThinner
from mininet_topos.emulator.counters import LATE_S, Occupancy, WayCounters
from mininet_topos.emulator.loss import loss_model
from mininet_topos.emulator.queue import Admission, WaitingRoom, admission_policy
from mininet_topos.emulator.schedule import Schedule
from mininet_topos.links import Red, Way


class Direction:
    """One way at work. Times passed to its methods never go back."""

    def __init__(self, way: Way, *, seed: str, started_s: float) -> None:
        """Begin with an empty link; the same seed gives the same losses."""
        self._seconds_per_byte = 8 / way.rate_bps if way.rate_bps else 0.0
        self._schedule = Schedule(way.events, delay_s=way.delay_s, started_s=started_s)
        self._room = WaitingRoom()
        self._policy = admission_policy(
            way.queue, way.rate_bps, random.Random(f"{seed} queue").random
        )
        self._loss = loss_model(way.loss, random.Random(f"{seed} loss").random)
        # What most links are is decided once: every packet pays for what is asked of it.
        self._is_clean = self._loss is None and self._schedule.is_quiet
        self._judges_all = isinstance(way.queue, Red)
        self._delay_s = way.delay_s
        self._thinner = AckThinner() if way.delayed_acks else None
        self._idle_from_s = started_s
        self._last_due_s = started_s
        self._due: deque[tuple[float, bytes]] = deque()
        self._packets_in = self._bytes_in = 0
        self._packets_out = self._bytes_out = 0
        self._queue_drops = self._early_drops = 0
        self._losses = self._outage_losses = 0
        self._late_packets = 0
        self._most_lateness_s = self._lateness_sum_s = 0.0

    def accept(self, now_s: float, packet: bytes) -> None:
        """Take a packet that comes to the link now."""
        self._packets_in += 1
        self._bytes_in += len(packet)
        if self._thinner is None:
            self._send(now_s, packet)
        else:
            for passed in self._thinner.pass_on(now_s, packet):
                self._send(now_s, passed)

    def _send(self, now_s: float, packet: bytes) -> None:
        size_bytes = len(packet)
        begin_s = self._idle_from_s
        if begin_s < now_s:
            begin_s = now_s
        if self._schedule.holds:
            begin_s = self._schedule.held_until_s(begin_s)
        if (begin_s > now_s or self._judges_all) and not self._admits(now_s, begin_s, size_bytes):
            return
        end_s = begin_s + size_bytes * self._seconds_per_byte
        if self._schedule.holds:
            end_s = self._schedule.end_s(begin_s, end_s - begin_s)
        self._idle_from_s = end_s
        if self._is_clean:
            self._due.append((end_s + self._delay_s, packet))
        else:
            self._propagate(begin_s, end_s, packet)

    def _admits(self, now_s: float, begin_s: float, size_bytes: int) -> bool:
        room = self._room
        room.advance(now_s)
        # An idle transmitter tells since when, for RED; one that is held tells until when.
        idle_from_s = begin_s if begin_s > now_s else self._idle_from_s
        admission = self._policy.admit(room, size_bytes, now_s, idle_from_s)
        if admission is Admission.GRANTED:
            if begin_s > now_s:
                room.enter(begin_s, size_bytes)
            return True
        if admission is Admission.NO_ROOM:
            self._queue_drops += 1
        else:
            self._early_drops += 1
        return False

    def _propagate(self, begin_s: float, end_s: float, packet: bytes) -> None:
        is_lost = self._loss is not None and self._loss.loses(len(packet) * 8)
        if self._schedule.loses(begin_s, end_s):
            self._outage_losses += 1
        elif is_lost:
            self._losses += 1
        else:
            due_s = max(end_s + self._schedule.delay_s(end_s), self._last_due_s)
            self._last_due_s = due_s
            self._due.append((due_s, packet))

    @property
    def next_s(self) -> float:
        """Give when `deliver` has something to do next; math.inf: nothing is on its way."""
        next_s = self._due[0][0] if self._due else math.inf
        if self._thinner is not None and self._thinner.due_s is not None:
            next_s = min(next_s, self._thinner.due_s)
        return next_s

    def deliver(self, now_s: float) -> bytes | None:
        """Give a packet that is due at the other end; None: there is none now."""
        if self._thinner is not None:
            for packet in self._thinner.release(now_s):
                self._send(now_s, packet)
        due = self._due
        if not due or due[0][0] > now_s:
            return None
        due_s, packet = due.popleft()
        lateness_s = now_s - due_s
        self._lateness_sum_s += lateness_s
        if lateness_s > self._most_lateness_s:
            self._most_lateness_s = lateness_s
        if lateness_s > LATE_S:
            self._late_packets += 1
        self._packets_out += 1
        self._bytes_out += len(packet)
        return packet

    def occupancy(self, now_s: float) -> Occupancy:
        """Give what waits for the transmitter now."""
        self._room.advance(now_s)
        return Occupancy(now_s, self._room.packets, self._room.bytes)

    def counters(self, now_s: float, *, device_drops: int = 0, refused: int = 0) -> WayCounters:
        """Give what was counted; the two numbers are those of the devices."""
        room = self._room
        room.advance(now_s)
        held = 0 if self._thinner is None else self._thinner.holds
        return WayCounters(
            packets_in=self._packets_in,
            bytes_in=self._bytes_in,
            packets_out=self._packets_out,
            bytes_out=self._bytes_out,
            queue_drops=self._queue_drops,
            early_drops=self._early_drops,
            losses=self._losses,
            outage_losses=self._outage_losses,
            thinned_acks=0 if self._thinner is None else self._thinner.thinned,
            waiting_packets=room.packets,
            waiting_bytes=room.bytes,
            most_packets=room.most_packets,
            most_bytes=room.most_bytes,
            in_flight=len(self._due) + held,
            late_packets=self._late_packets,
            most_lateness_s=self._most_lateness_s,
            mean_lateness_s=self._lateness_sum_s / max(1, self._packets_out),
            device_drops=device_drops,
            refused=refused,
        )
