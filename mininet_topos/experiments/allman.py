"""What the rows of Allman's thesis share: the T1 over ACTS, its stack, its units."""

from __future__ import annotations

from ..tcp_settings import TcpSettings, nineties
from .flows import Sockets

KB, MB = 1024, 1024 * 1024

RATE_BYTES_PER_S = 192_000
"""T1: 1.536 Mbit/s (section 2.2.1)."""

RTT_S = 0.56
SEGMENT_BYTES = 512
HEADER_BYTES = 40
"""IPv4 and TCP without options: the 8% of the text."""

GOODPUT_BYTES_PER_S = RATE_BYTES_PER_S * SEGMENT_BYTES / (SEGMENT_BYTES + HEADER_BYTES)
"""What the channel carries of payload: 178,087 bytes/s."""

PIPE_SEGMENTS = RATE_BYTES_PER_S * RTT_S / (SEGMENT_BYTES + HEADER_BYTES)
"""Segments on their way when the channel is full: 195."""

RECEIVE_BUFFER_BYTES = 4 * MB
"""Room for any window of these texts, the kernel's overhead of small segments included."""

RENO97 = Sockets(congestion="xftp_reno97")
"""One segment per ACK, initial window 1."""

SIZES = {30 * KB: "30 KB", 100 * KB: "100 KB", 200 * KB: "200 KB", MB: "1 MB", 5 * MB: "5 MB"}
"""The files of chapter 3."""


def stack(window_bytes: int, *, sack: bool = False) -> TcpSettings:
    """Give the hosts' TCP with the window that a receiver advertises.

    A buffer that grows by itself would take the window with it, so it is large and fixed.
    """
    return nineties(
        sack=sack,
        window_bytes=window_bytes,
        moderate_rcvbuf=False,
        receive_buffer_bytes=(4096, RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES),
    )


def transfer_s(size_bytes: float, rate_bytes_per_s: float = GOODPUT_BYTES_PER_S) -> float:
    """Give about how long a scenario takes: twelve round trips of control and slow start."""
    return 20 * RTT_S + size_bytes / rate_bytes_per_s
