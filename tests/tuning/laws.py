"""Compare the windows that were seen with those that a law gives."""

from __future__ import annotations

from collections.abc import Callable

from tuning.tcp_info import TcpInfo

from .transfers import Observed

Step = Callable[[float, int, TcpInfo], float]
"""The window, the number of this ACK counted from one, what is known then, to the new window."""

BACKLOG_ACKS = 4
"""TCP_INFO counts an ACK as it comes in, moments before it has its effect."""

EXACT_SHARE = 0.75


def check_law(seen: Observed, step: Step, tolerance: float = 0.0) -> None:
    """Follow the law ACK by ACK; every sample must agree, most of them without any backlog.

    TCP_INFO is one consistent picture of the window and of the ACKs that came in, so timing plays
    no part. `tolerance` is a share of the growth; a segment either way is always forgiven.
    """
    windows = [float(seen.first.snd_cwnd_segments)]
    exact = 0
    for _, info in seen.samples:
        acks = seen.acks(info)
        while len(windows) <= acks:
            windows.append(step(windows[-1], len(windows), info))
        slack = tolerance * (windows[acks] - windows[0]) + 1
        least = int(windows[max(acks - BACKLOG_ACKS, 0)])
        found = info.snd_cwnd_segments
        assert least - slack <= found <= int(windows[acks]) + slack, (
            f"after {acks} ACKs the window is {found}, not {windows[acks]:.1f}"
        )
        exact += abs(found - int(windows[acks])) <= slack
    assert exact >= EXACT_SHARE * len(seen.samples)
    assert not seen.last.total_retrans_segments
