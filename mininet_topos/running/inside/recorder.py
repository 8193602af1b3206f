"""Records the TCP connections of a host over time: recorder.py INTERVAL FLOW=FIRST-LAST …

A connection belongs to the flow in whose range of ports its local or its remote port is. Each
sample of each flow is a line `[flow, t, acked, cwnd, retransmits, connections]`: the monotonic
clock, which all hosts of a machine share, and sums over the flow's connections, closed ones
included: acknowledged bytes, congestion windows in segments (open ones only), segments sent again.
The kernel tells by NETLINK_SOCK_DIAG (sock_diag(7)).
"""

from __future__ import annotations

import json
import math
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroute2 import DiagSocket

from .common import report, say

_WITH_TCP_INFO = 1 << 1  # INET_DIAG_INFO of linux/inet_diag.h, less one
_CONNECTIONS = 0xFFF & ~(1 << 10)  # all states of net/tcp_states.h but LISTEN


@dataclass
class Sums:
    """One flow's connections, by the cookies the kernel gives them."""

    acked: dict[int, int] = field(default_factory=dict)
    retransmits: dict[int, int] = field(default_factory=dict)
    windows: dict[int, int] = field(default_factory=dict)

    def begin_sample(self) -> None:
        """Forget the windows: they count while a connection is there."""
        self.windows.clear()

    def add(self, cookie: int, info: Mapping[str, Any]) -> None:
        """Take in what the kernel says of a connection."""
        self.acked[cookie] = info.get("tcpi_bytes_acked", 0)
        self.retransmits[cookie] = info.get("tcpi_total_retrans", 0)
        self.windows[cookie] = info.get("tcpi_snd_cwnd", 0)

    def row(self, t_s: float) -> list[float]:
        """Give time, acknowledged bytes, windows, retransmits, connections."""
        return [
            t_s,
            sum(self.acked.values()),
            sum(self.windows.values()),
            sum(self.retransmits.values()),
            len(self.windows),
        ]


def sample(
    flows: Mapping[str, tuple[int, int]],
    sums: Mapping[str, Sums],
    found: Iterable[Mapping[str, Any]],
) -> None:
    """Sort the kernel's answer into the flows."""
    for each in sums.values():
        each.begin_sample()
    for one in found:
        info = dict(one["attrs"]).get("INET_DIAG_INFO")
        if info is None:
            continue
        for name, (first, last) in flows.items():
            if first <= one["idiag_sport"] <= last or first <= one["idiag_dport"] <= last:
                sums[name].add(one["idiag_cookie"], info)


def parse(arguments: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Read FLOW=FIRST-LAST."""
    flows = {}
    for argument in arguments:
        name, _, ports = argument.partition("=")
        first, _, last = ports.partition("-")
        flows[name] = (int(first), int(last))
    return flows


def percentile(values: Sequence[float], percent: float) -> float:
    """Give the value that so many percent of them do not exceed."""
    return sorted(values)[math.ceil(percent / 100 * len(values)) - 1]


def main() -> int:
    """Record until SIGTERM, which is waited for instead of sleeping."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    interval_s = float(sys.argv[1])
    flows = parse(sys.argv[2:])
    sums = {name: Sums() for name in flows}
    late_s: list[float] = []
    with DiagSocket() as diagnostics:
        say("ready")
        next_s = time.monotonic()
        ended = False
        while not ended:
            now_s = time.monotonic()
            found = diagnostics.get_sock_stats(
                family=socket.AF_INET, states=_CONNECTIONS, extensions=_WITH_TCP_INFO
            )
            sample(flows, sums, found)
            for name, each in sums.items():
                if each.windows:
                    say(json.dumps([name, *each.row(now_s)]))
            late_s.append(now_s - next_s)
            next_s += interval_s
            wait_s = max(0.0, next_s - time.monotonic())
            ended = signal.sigtimedwait({signal.SIGTERM}, wait_s) is not None
    report({"samples": len(late_s), "latest_s": max(late_s), "late_95_s": percentile(late_s, 95)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
