"""Whether an emulated link was the link that was asked for, by its emulator's own counters.

The emulator counts packets that left more than a millisecond late. On a link of 560 ms a few
milliseconds once in a while change nothing that is measured there; on one of 40 ms they may. So a
run counts if no packet was later than a share of the link's round-trip time, if packets were on
time on the whole, and if none was lost because the emulator did not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..emulator.counters import LinkCounters
from ..links import LinkSpec

WORST_SHARE_OF_RTT = 0.05
"""Lateness of the latest packet, in round-trip times of its link."""

MEAN_LATENESS_S = 0.0005
"""Lateness of all packets on the average."""

STRICT_S = 0.001
"""Never asked to be better than this: the emulator's own measure of late."""


def kept_up(spec: LinkSpec, counters: LinkCounters, path_rtt_s: float = 0.0) -> bool:
    """Say whether a link's packets were on time; path_rtt_s: of the shortest path across it."""
    worst_s = max(STRICT_S, WORST_SHARE_OF_RTT * max(spec.rtt_s, path_rtt_s))
    return all(
        way.device_drops == 0
        and way.most_lateness_s <= worst_s
        and way.mean_lateness_s <= MEAN_LATENESS_S
        for way in (counters.forward, counters.backward)
    )


def worst(links: Mapping[str, Any]) -> str:
    """Say how late the packets of stored counters were, for people."""
    ways = [link[direction] for link in links.values() for direction in ("forward", "backward")]
    latest_ms = 1000 * max((way["most_lateness_s"] for way in ways), default=0.0)
    mean_ms = 1000 * max((way["mean_lateness_s"] for way in ways), default=0.0)
    unread = sum(way["device_drops"] for way in ways)
    return f"up to {latest_ms:.1f} ms late, {mean_ms:.2f} ms on the average, {unread} unread"
