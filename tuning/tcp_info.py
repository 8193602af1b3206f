"""Decode struct tcp_info (linux/tcp.h), as long as the running kernel makes it.

The structure only ever grows at its end. `TcpInfo` declares its fields in the kernel's order;
the declaration is the layout. What the kernel is too old to know is None.
"""

from __future__ import annotations

import enum
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import TuningError

BASE_BYTES = 104
"""Up to tcpi_total_retrans: what every kernel since Linux 2.6 gives."""

_ROOM_BYTES = 1024
"""What is asked for; the kernel gives the shorter of this and its own structure."""

_TCP_INFO = getattr(socket, "TCP_INFO", 11)

_INFINITE_SSTHRESH = 0x7FFFFFFF
"""TCP_INFINITE_SSTHRESH of net/tcp.h: no loss has set a threshold yet."""

_NO_LIMIT = 2**64 - 1
"""A rate of ~0UL: not limited."""

_NO_SAMPLE = 2**32 - 1
"""A minimum RTT of ~0U: not measured yet."""


class TcpState(enum.IntEnum):
    """States of a TCP socket: net/tcp_states.h."""

    UNKNOWN = 0
    ESTABLISHED = 1
    SYN_SENT = 2
    SYN_RECV = 3
    FIN_WAIT1 = 4
    FIN_WAIT2 = 5
    TIME_WAIT = 6
    CLOSE = 7
    CLOSE_WAIT = 8
    LAST_ACK = 9
    LISTEN = 10
    CLOSING = 11
    NEW_SYN_RECV = 12
    BOUND_INACTIVE = 13

    @classmethod
    def _missing_(cls, value: object) -> TcpState:
        return cls.UNKNOWN


class RecoveryState(enum.IntEnum):
    """What a sender is doing about loss: enum tcp_ca_state of linux/tcp.h."""

    OPEN = 0
    DISORDER = 1
    CWR = 2
    RECOVERY = 3
    LOSS = 4
    UNKNOWN = 255

    @classmethod
    def _missing_(cls, value: object) -> RecoveryState:
        return cls.UNKNOWN


class TcpOption(enum.IntFlag):
    """What the two ends agreed on: TCPI_OPT_* of linux/tcp.h."""

    TIMESTAMPS = 1
    SACK = 2
    WINDOW_SCALING = 4
    ECN = 8
    ECN_SEEN = 16
    SYN_DATA = 32
    USEC_TIMESTAMPS = 64
    FAST_OPEN_CHILD = 128


def _from_us(value: int) -> float:
    return value / 1e6


def _from_ms(value: int) -> float:
    return value / 1e3


def _min_rtt(value: int) -> float | None:
    return None if value == _NO_SAMPLE else value / 1e6


def _threshold(value: int) -> int | None:
    return None if value >= _INFINITE_SSTHRESH else value


def _rate(value: int) -> int | None:
    return None if value == _NO_LIMIT else value * 8


def _as(code: str, convert: Callable[[int], Any] = int) -> dict[str, Any]:
    """Describe a field: its struct code, and what becomes of its value."""
    return {"code": code, "convert": convert}


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpInfo:
    """What the kernel knows of a TCP connection, in seconds, bytes, segments, bits per second."""

    state: TcpState = field(metadata=_as("B", TcpState))
    """Where the connection is in its life."""

    recovery: RecoveryState = field(metadata=_as("B", RecoveryState))
    """tcpi_ca_state: what the sender does about loss now."""

    retransmits: int = field(metadata=_as("B"))
    """Time-outs in a row without an answer."""

    probes: int = field(metadata=_as("B"))
    """Window or keepalive probes in a row without an answer."""

    backoff: int = field(metadata=_as("B"))
    """How often the time-out has been doubled now."""

    options: TcpOption = field(metadata=_as("B", TcpOption))
    """What the two ends agreed on."""

    window_scales: int = field(metadata=_as("B"))
    """Both shift counts as the kernel packs them: see `snd_wscale` and `rcv_wscale`."""

    flags: int = field(metadata=_as("B"))
    """Packed as the kernel does: see `delivery_rate_app_limited`, `fast_open_client_fail`."""

    rto_s: float = field(metadata=_as("I", _from_us))
    """Retransmission time-out."""

    ato_s: float = field(metadata=_as("I", _from_us))
    """Delayed-acknowledgment time-out."""

    snd_mss_bytes: int = field(metadata=_as("I"))
    """Payload of a segment sent now."""

    rcv_mss_bytes: int = field(metadata=_as("I"))
    """Payload of the segments received, as estimated."""

    unacked_segments: int = field(metadata=_as("I"))
    """Sent and not acknowledged; on a listener, connections waiting for accept."""

    sacked_segments: int = field(metadata=_as("I"))
    """Acknowledged out of order; on a listener, the backlog's limit."""

    lost_segments: int = field(metadata=_as("I"))
    """Thought lost and not acknowledged since."""

    retrans_segments: int = field(metadata=_as("I"))
    """Sent again and not acknowledged yet."""

    fackets: int = field(metadata=_as("I"))
    """Always 0 since Linux 4.15."""

    last_data_sent_s: float = field(metadata=_as("I", _from_ms))
    """How long ago data was sent."""

    last_ack_sent_s: float = field(metadata=_as("I", _from_ms))
    """Never filled in by the kernel."""

    last_data_recv_s: float = field(metadata=_as("I", _from_ms))
    """How long ago data was received."""

    last_ack_recv_s: float = field(metadata=_as("I", _from_ms))
    """How long ago an acknowledgment was received."""

    pmtu_bytes: int = field(metadata=_as("I"))
    """Largest packet of the path."""

    rcv_ssthresh_bytes: int = field(metadata=_as("I"))
    """How far the advertised window may grow now."""

    rtt_s: float = field(metadata=_as("I", _from_us))
    """Smoothed round-trip time; 0 before the first sample."""

    rttvar_s: float = field(metadata=_as("I", _from_us))
    """Mean deviation of the round-trip time."""

    snd_ssthresh_segments: int | None = field(metadata=_as("I", _threshold))
    """Slow-start threshold; None: not set by a loss yet."""

    snd_cwnd_segments: int = field(metadata=_as("I"))
    """Congestion window."""

    advmss_bytes: int = field(metadata=_as("I"))
    """The segment size told to the peer."""

    reordering_segments: int = field(metadata=_as("I"))
    """How far segments may overtake each other before one is thought lost."""

    rcv_rtt_s: float = field(metadata=_as("I", _from_us))
    """Round-trip time as the receiver sees it; 0 before it is measured."""

    rcv_space_bytes: int = field(metadata=_as("I"))
    """What the application took per round trip; the receive buffer is grown by it."""

    total_retrans_segments: int = field(metadata=_as("I"))
    """Sent again since the connection began."""

    pacing_rate_bps: int | None = field(default=None, metadata=_as("Q", _rate))
    """How fast segments are let out now (Linux 3.15); None also without a limit."""

    max_pacing_rate_bps: int | None = field(default=None, metadata=_as("Q", _rate))
    """SO_MAX_PACING_RATE (Linux 3.15); None also without a limit."""

    bytes_acked: int | None = field(default=None, metadata=_as("Q"))
    """RFC 4898 tcpEStatsAppHCThruOctetsAcked (Linux 4.1); the SYN that was sent counts as one."""

    bytes_received: int | None = field(default=None, metadata=_as("Q"))
    """RFC 4898 tcpEStatsAppHCThruOctetsReceived (Linux 4.1)."""

    segs_out: int | None = field(default=None, metadata=_as("I"))
    """All segments sent (Linux 4.2)."""

    segs_in: int | None = field(default=None, metadata=_as("I"))
    """All segments received (Linux 4.2)."""

    notsent_bytes: int | None = field(default=None, metadata=_as("I"))
    """Written by the application and never sent yet (Linux 4.6)."""

    min_rtt_s: float | None = field(default=None, metadata=_as("I", _min_rtt))
    """Smallest round-trip time of the last minutes (Linux 4.6); None also before a sample."""

    data_segs_in: int | None = field(default=None, metadata=_as("I"))
    """Segments with data received (Linux 4.6)."""

    data_segs_out: int | None = field(default=None, metadata=_as("I"))
    """Segments with data sent (Linux 4.6)."""

    delivery_rate_bps: int | None = field(default=None, metadata=_as("Q", _rate))
    """What arrived at the peer per time, the last sample (Linux 4.9)."""

    busy_s: float | None = field(default=None, metadata=_as("Q", _from_us))
    """Time with data to send or unacknowledged (Linux 4.10)."""

    rwnd_limited_s: float | None = field(default=None, metadata=_as("Q", _from_us))
    """The part of it in which the peer's window was the limit (Linux 4.10)."""

    sndbuf_limited_s: float | None = field(default=None, metadata=_as("Q", _from_us))
    """The part of it in which the send buffer was the limit (Linux 4.10)."""

    delivered_segments: int | None = field(default=None, metadata=_as("I"))
    """Segments that arrived, the SYN among them (Linux 4.18)."""

    delivered_ce_segments: int | None = field(default=None, metadata=_as("I"))
    """Segments that arrived with a congestion mark (Linux 4.18)."""

    bytes_sent: int | None = field(default=None, metadata=_as("Q"))
    """RFC 4898 tcpEStatsPerfHCDataOctetsOut, repetitions included (Linux 4.19)."""

    bytes_retrans: int | None = field(default=None, metadata=_as("Q"))
    """RFC 4898 tcpEStatsPerfOctetsRetrans (Linux 4.19)."""

    dsack_dups: int | None = field(default=None, metadata=_as("I"))
    """RFC 4898 tcpEStatsStackDSACKDups: repetitions that were needless (Linux 4.19)."""

    reord_seen: int | None = field(default=None, metadata=_as("I"))
    """How often reordering was seen (Linux 4.19)."""

    rcv_ooopack_segments: int | None = field(default=None, metadata=_as("I"))
    """Segments received out of order (Linux 5.4)."""

    snd_wnd_bytes: int | None = field(default=None, metadata=_as("I"))
    """The peer's advertised window, scaled (Linux 5.4)."""

    rcv_wnd_bytes: int | None = field(default=None, metadata=_as("I"))
    """The window advertised to the peer, scaled (Linux 6.2)."""

    rehash: int | None = field(default=None, metadata=_as("I"))
    """How often another path was tried after time-outs (Linux 6.2)."""

    total_rto: int | None = field(default=None, metadata=_as("H"))
    """Retransmission time-outs (Linux 6.7)."""

    total_rto_recoveries: int | None = field(default=None, metadata=_as("H"))
    """Recoveries begun by a time-out (Linux 6.7)."""

    total_rto_s: float | None = field(default=None, metadata=_as("I", _from_ms))
    """Time spent in such recoveries (Linux 6.7)."""

    received_ce_segments: int | None = field(default=None, metadata=_as("I"))
    """Segments received with a congestion mark (Linux 6.18, as are the following)."""

    delivered_e1_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes delivered marked ECT(1), by accurate ECN."""

    delivered_e0_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes delivered marked ECT(0)."""

    delivered_ce_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes delivered marked CE."""

    received_e1_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes received marked ECT(1)."""

    received_e0_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes received marked ECT(0)."""

    received_ce_bytes: int | None = field(default=None, metadata=_as("I"))
    """Bytes received marked CE."""

    accecn_fail_mode: int | None = field(default=None, metadata=_as("H"))
    """Why accurate ECN was given up; 0: it was not."""

    accecn_opt_seen: int | None = field(default=None, metadata=_as("H"))
    """Whether the peer's accurate ECN option was seen."""

    @property
    def snd_wscale(self) -> int:
        """Shift count of the windows that the peer advertises (RFC 7323 section 2)."""
        return self.window_scales & 15 if sys.byteorder == "little" else self.window_scales >> 4

    @property
    def rcv_wscale(self) -> int:
        """Shift count of the windows advertised to the peer."""
        return self.window_scales >> 4 if sys.byteorder == "little" else self.window_scales & 15

    @property
    def delivery_rate_app_limited(self) -> bool:
        """Whether the delivery rate was limited by the application, not by the path."""
        return bool(self.flags & (1 if sys.byteorder == "little" else 0x80))

    @property
    def fast_open_client_fail(self) -> int:
        """Why fast open was not used: enum tcp_fastopen_client_fail of linux/tcp.h."""
        return self.flags >> (1 if sys.byteorder == "little" else 5) & 3


def _layout() -> list[tuple[str, struct.Struct, int, Callable[[int], Any]]]:
    """Give name, codec, offset and conversion of every field; the structure has no holes."""
    rows, offset = [], 0
    for declared in fields(TcpInfo):
        codec = struct.Struct("=" + declared.metadata["code"])
        rows.append((declared.name, codec, offset, declared.metadata["convert"]))
        offset += codec.size
    return rows


_LAYOUT = _layout()

KNOWN_BYTES = _LAYOUT[-1][2] + _LAYOUT[-1][1].size
"""The length of the structure as far as this module knows it (Linux 6.18)."""


def decode(raw: bytes) -> TcpInfo:
    """Decode what TCP_INFO gave; fields beyond its end are None.

    Raises TuningError below `BASE_BYTES`, which no kernel of today gives.
    """
    if len(raw) < BASE_BYTES:
        raise TuningError(f"a tcp_info has at least {BASE_BYTES} bytes, not {len(raw)}")
    return TcpInfo(
        **{
            name: convert(codec.unpack_from(raw, offset)[0])
            for name, codec, offset, convert in _LAYOUT
            if offset + codec.size <= len(raw)
        }
    )


def tcp_info(sock: socket.socket) -> TcpInfo | None:
    """Ask the kernel for the state of a TCP socket; None where it cannot tell."""
    if sys.platform != "linux":
        return None
    try:
        return decode(sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _ROOM_BYTES))
    except OSError:
        return None
