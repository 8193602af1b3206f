"""When a way of a link is away, and what its delay is: outages and delay steps.

Everything here is a function of time; nothing reads a clock.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable

from mininet_topos.links import DelayStep, Event, Outage

MOST_PAUSES = 10_000
"""After so many outages in one transmission the link is away for good."""


class Schedule:
    """The events of one way, on the clock on which it started at `started_s`."""

    def __init__(self, events: Iterable[Event], *, delay_s: float, started_s: float) -> None:
        events = list(events)
        outages = [event for event in events if isinstance(event, Outage)]
        self._losing = [_Windows(outage, started_s) for outage in outages if not outage.holds]
        self._holding = [_Windows(outage, started_s) for outage in outages if outage.holds]
        steps = [event for event in events if isinstance(event, DelayStep)]
        steps.sort(key=lambda step: step.at_s)  # stable: of two at one time the later one counts
        self.holds = bool(self._holding)
        """Whether the transmitter ever waits."""
        self.is_quiet = not events
        """Whether nothing ever happens: the delay is always the same."""
        self._step_times = [started_s + step.at_s for step in steps]
        self._delays = [delay_s, *(step.delay_s for step in steps)]

    def delay_s(self, at_s: float) -> float:
        """Give the propagation delay of a packet whose transmission ends at a time."""
        if not self._step_times:
            return self._delays[0]
        return self._delays[bisect_right(self._step_times, at_s)]

    def loses(self, begin_s: float, end_s: float) -> bool:
        """Tell whether a transmission meets an outage that loses what it meets."""
        for windows in self._losing:
            away_s, _ = windows.ending_after(begin_s)
            if away_s <= begin_s or away_s < end_s:
                return True
        return False

    def held_until_s(self, at_s: float) -> float:
        """Give the first time, from a time on, at which a transmission may begin."""
        return self._after_pauses(at_s, 0.0) if self.holds else at_s

    def end_s(self, begin_s: float, lasts_s: float) -> float:
        """Give when a transmission ends that pauses in every outage that holds packets.

        math.inf: outages follow each other without end.
        """
        return self._after_pauses(begin_s, lasts_s) if self.holds else begin_s + lasts_s

    def _after_pauses(self, at_s: float, lasts_s: float) -> float:
        for _ in range(MOST_PAUSES):
            away_s, back_s = min(windows.ending_after(at_s) for windows in self._holding)
            if away_s > at_s:
                if away_s >= at_s + lasts_s:
                    return at_s + lasts_s
                lasts_s -= away_s - at_s
            at_s = back_s
        return math.inf


class _Windows:
    """The times of one outage, which may come again and again."""

    def __init__(self, outage: Outage, started_s: float) -> None:
        self._first_s = started_s + outage.at_s
        self._lasts_s = outage.lasts_s
        self._every_s = outage.every_s

    def ending_after(self, at_s: float) -> tuple[float, float]:
        """Give begin and end of the first one that ends after a time; math.inf: there is none."""
        if self._every_s is None:
            window = self._first_s, self._first_s + self._lasts_s
            return window if window[1] > at_s else (math.inf, math.inf)
        number = max(0, math.floor((at_s - self._first_s) / self._every_s))
        begin_s = self._first_s + number * self._every_s
        if begin_s + self._lasts_s <= at_s:
            begin_s = self._first_s + (number + 1) * self._every_s
        return begin_s, begin_s + self._lasts_s
