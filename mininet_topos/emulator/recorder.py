"""The occupancy of both queues over time, kept small: a day at 10 ms is 350 MB of numbers."""

from __future__ import annotations

import math
from array import array

from mininet_topos.emulator.counters import Occupancy

Row = tuple[float, int, int, int, int]
"""Time on the monotonic clock, packets and bytes forward, packets and bytes backward."""


class Recorder:
    """Samples at an interval, as far as the interval is kept; samples tell their own time."""

    def __init__(self, interval_s: float | None = None) -> None:
        """Begin to sample at once, or with an interval of None never."""
        self._interval_s = interval_s
        self.next_s = math.inf if interval_s is None else 0.0
        self._times = array("d")
        self._numbers = array("q")

    def set_interval(self, interval_s: float | None) -> None:
        """Sample at another interval from now on; None: no longer."""
        self._interval_s = interval_s
        self.next_s = math.inf if interval_s is None else 0.0

    def sample(self, forward: Occupancy, backward: Occupancy) -> None:
        """Note both queues, which were looked at at the same time."""
        if self._interval_s is None:
            return
        self.next_s = max(self.next_s, forward.at_s - self._interval_s) + self._interval_s
        self._times.append(forward.at_s)
        self._numbers.extend((forward.packets, forward.bytes, backward.packets, backward.bytes))

    def clear(self) -> None:
        """Forget the samples."""
        del self._times[:]
        del self._numbers[:]

    def rows(self, begin: int, most: int) -> list[Row]:
        """Give at most so many samples from one on."""
        end = min(begin + most, len(self._times))
        numbers = [self._numbers[4 * begin + column : 4 * end : 4] for column in range(4)]
        return list(zip(self._times[begin:end], *numbers, strict=True))
