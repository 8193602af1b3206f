"""Whether a run was the one that was asked for: the links' packets and the hosts' programs in time.

The emulators count by how much packets left late. On a link of 560 ms a few milliseconds once in a
while change nothing that is measured there; on one of 40 ms they may. So a run counts if no packet
was later than a share of the link's round-trip time, if packets were on time on the whole and all
but a few of them within a millisecond, and if none was lost because the emulator did not read it.

The limit is low where a sender takes a delay for a full queue, as cubic's HyStart does, which then
leaves slow start for good. Where senders go by losses alone a pause, of the emulator or of the
whole machine, costs no more than its own length: the queue, which the emulator lets drain meanwhile
by its computed times, takes what comes in a burst after it, and no retransmission time-out, 0.2 s
at least, is as near as that. For those that have a rate, measured as bbr's or told as
xftp_rented's, the burst is to be short beside a round trip. That pauses are few is what the share
of late packets says.

The programs in the hosts have no such clock. But each sending host has a recorder that wants to
wake at fixed times, with the programs' own priority: how late it woke is how long a program may
have waited for a processor. What a sender has queued lasts for about a round trip. In one of twenty
samples it may have been longer: at the begin, when a lab's programs all start together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ..emulator.counters import LinkCounters
from ..links import LinkSpec

HYSTART_SHARE_OF_RTT = 1 / 8
HYSTART_LEAST_S = 0.004
HYSTART_MOST_S = 0.016
"""Linux's HyStart takes so much more than the least round-trip time for a queue (tcp_cubic.c): so
late may the latest packet of a link be, and a device be read, where senders mind delays."""

WORST_SHARE_OF_RTT = 0.2
"""The same where they do not, in round-trip times."""

WORST_BY_LOSS_S = 0.1
"""Where they go by losses alone nothing better is asked for: half of Linux's least time-out."""

MEAN_LATENESS_S = 0.0005
"""Lateness of all packets on the average."""

LATE_SHARE = 0.05
"""Of packets that were more than a millisecond late: as of the hosts' samples."""

STRICT_S = 0.001
"""Never asked to be better than this: the emulator's own measure of late."""

LATE_FEW = 10
"""Packets that may be so in any case: a burst of a transfer that has a hundred."""

HOSTS_SHARE_OF_RTT = 0.5
"""Lateness of 95% of the recorders' samples, in round-trip times of the longest link."""

HOSTS_STRICT_S = 0.1
"""Recorders are never asked to be better than this."""


Minds = Literal["delays", "rates", "losses"]
"""What senders go by: delays, a rate and the least RTT beside losses, losses alone."""


def worst_s(rtt_s: float, minds: Minds) -> float:
    """Give how late a packet may be where senders mind this."""
    if minds == "losses":
        return max(WORST_BY_LOSS_S, WORST_SHARE_OF_RTT * rtt_s)
    if minds == "rates":
        return max(STRICT_S, WORST_SHARE_OF_RTT * rtt_s)
    return min(max(HYSTART_LEAST_S, HYSTART_SHARE_OF_RTT * rtt_s), HYSTART_MOST_S)


def kept_up(
    spec: LinkSpec, counters: LinkCounters, path_rtt_s: float = 0.0, *, minds: Minds = "delays"
) -> bool:
    """Say whether a link's packets were on time.

    path_rtt_s: of the shortest path across it; minds: what the senders do.
    """
    limit_s = worst_s(max(spec.rtt_s, path_rtt_s), minds)
    return counters.most_unread_s <= limit_s and all(
        way.device_drops == 0
        and way.most_lateness_s <= limit_s
        and way.mean_lateness_s <= MEAN_LATENESS_S
        and way.late_packets <= max(LATE_FEW, LATE_SHARE * way.packets_out)
        for way in (counters.forward, counters.backward)
    )


def hosts_kept_up(late_s: float, specs: Iterable[LinkSpec], path_rtt_s: float = 0.0) -> bool:
    """Say whether the hosts' programs had a processor when they wanted one, by their recorders."""
    rtt_s = max((path_rtt_s, *(spec.rtt_s for spec in specs)))
    return late_s <= max(HOSTS_STRICT_S, HOSTS_SHARE_OF_RTT * rtt_s)


def worst(links: Mapping[str, Any], hosts_late_s: float = 0.0) -> str:
    """Say how late packets, by stored counters, and hosts were, for people."""
    ways = [link[direction] for link in links.values() for direction in ("forward", "backward")]
    latest_ms = 1000 * max((way["most_lateness_s"] for way in ways), default=0.0)
    mean_ms = 1000 * max((way["mean_lateness_s"] for way in ways), default=0.0)
    unread = sum(way["device_drops"] for way in ways)
    late, packets = (sum(way[name] for way in ways) for name in ("late_packets", "packets_out"))
    return (
        f"packets up to {latest_ms:.1f} ms late, {mean_ms:.2f} ms on the average, {late} of "
        f"{packets} by more than 1 ms, {unread} unread; "
        f"95% of the hosts' samples up to {1000 * hosts_late_s:.0f} ms"
    )
