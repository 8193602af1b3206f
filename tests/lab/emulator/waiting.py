"""Waiting for conditions instead of time."""

from __future__ import annotations

import time
from collections.abc import Callable

from mininet_topos.emulator.counters import LinkCounters
from mininet_topos.emulator.link import EmulatedLink


def until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    """Wait for a condition."""
    end_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.005)


def wait_for_the_end(link: EmulatedLink, packets: int) -> LinkCounters:
    """Wait until so many packets entered forward and all have met their fate."""

    def is_over() -> bool:
        forward = link.counters().forward
        return forward.packets_in >= packets and forward.in_flight == 0

    until(is_over)
    return link.counters()
