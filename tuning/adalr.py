"""TCP-ADaLR's receive window, done by the receiving end.

The thesis (TCP-ADaLR, M.A.Sc. thesis, Simon Fraser University, section 5.2.2) lets the sender send
beyond the window that it was offered. A kernel's sender may not; where both ends are ours, the
receiver offers the larger window instead:

    SocketTuning(window_clamp_bytes=receive_window_bytes(65_535, rtt_s=0.52, segment_bytes=1460))

The sender's part is the algorithm xftp_adalr (tuning/bpf/xftp_adalr.c).
"""

from __future__ import annotations

from .errors import check_integer, check_number

DEVIATION_GAIN = 0.25
"""rtt_dev_gain: the gain of the RTT's deviation in TCP's timer (table 7.4, RFC 6298 section 2)."""

LONG_RHO = 15
"""Below it, that is below an RTT of 250 ms, the window stays (algorithm 5.3)."""


def scaling(rtt_s: float) -> float:
    """Give rho = 60 RTT / 1 s, within 1 and 60 (equation 5.1)."""
    check_number("rtt_s", rtt_s, 1e-6, 60.0, "seconds")
    return min(max(60 * rtt_s, 1.0), 60.0)


def receive_window_bytes(offered_bytes: int, rtt_s: float, segment_bytes: int) -> int:
    """Give the window that the receiver is to offer: offered + gain x rho x segment.

    offered_bytes: what it would offer; that of algorithm 5.3 without losses, in both phases. Raises
    TuningError.
    """
    check_integer("offered_bytes", offered_bytes, 1, 2**30, "bytes")
    check_integer("segment_bytes", segment_bytes, 1, 65_535, "bytes")
    rho = scaling(rtt_s)
    if rho < LONG_RHO:
        return offered_bytes
    return round(offered_bytes + DEVIATION_GAIN * rho * segment_bytes)
