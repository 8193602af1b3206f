"""Carries packets from one device through a direction to the other device."""

from __future__ import annotations

import errno
import os
import time

from mininet_topos.emulator.capture import CaptureFile
from mininet_topos.emulator.counters import Occupancy, WayCounters
from mininet_topos.emulator.direction import Direction
from mininet_topos.emulator.tun import TunDevice

GIVEN_AT_ONCE = 64
TAKEN_AT_ONCE = 16
"""Packets written and read before the other tasks get their turn. Few are read: what is due is not
to wait for a burst that comes in."""

_DEVICE_DOWN = (errno.EIO, errno.EBADFD, errno.ENETDOWN)


class Courier:
    """One direction with its devices and the clock."""

    def __init__(self, source: TunDevice, target: TunDevice, capture: CaptureFile | None) -> None:
        self.source, self.target = source, target
        self._capture = capture
        self._refused = 0

    def begin(self, direction: Direction, mtu: int) -> None:
        """Begin with an empty link and empty devices."""
        self._direction = direction
        self._mtu = mtu
        self._refused = 0
        self.source.discard(mtu)
        self._drops_before = self.source.drops()

    def take(self) -> None:
        """Read what the device has."""
        clock, read, descriptor, mtu = time.monotonic, os.read, self.source.descriptor, self._mtu
        accept, capture = self._direction.accept, self._capture
        try:
            for _ in range(TAKEN_AT_ONCE):
                packet = read(descriptor, mtu)
                now_s = clock()
                if capture is not None:
                    capture.note(now_s, packet)
                accept(now_s, packet)
        except BlockingIOError:
            return

    def give(self) -> float:
        """Write what is due, and tell when there is more to do; math.inf: not before a packet."""
        clock, direction = time.monotonic, self._direction
        for _ in range(GIVEN_AT_ONCE):
            packet = direction.deliver(clock())
            if packet is None:
                break
            try:
                os.write(self.target.descriptor, packet)
            except OSError as error:
                if error.errno not in _DEVICE_DOWN:
                    raise
                self._refused += 1
        return direction.next_s

    def occupancy(self, now_s: float) -> Occupancy:
        """Give what waits in the queue."""
        return self._direction.occupancy(now_s)

    def counters(self, now_s: float) -> WayCounters:
        """Give what was counted since the begin."""
        device_drops = self.source.drops() - self._drops_before
        return self._direction.counters(now_s, device_drops=device_drops, refused=self._refused)
