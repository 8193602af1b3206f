"""Sockets: made, tuned before connect or listen, and asked how they fare."""

from __future__ import annotations

import errno
import fcntl
import functools
import math
import os
import re
import socket
import struct
import sys
from collections.abc import Mapping
from typing import NamedTuple, Protocol

_MADE = (0, errno.EISCONN)
"""What connect(2) says of a socket that is connected."""

_SIOCOUTQ = 0x5411
"""ioctl: bytes in the send queue that the peer has not acknowledged (tcp(7); TIOCOUTQ)."""

_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
"""Only this many unsent bytes make a socket unwritable (Linux 3.12; tcp(7))."""

_TCP_THIN_LINEAR_TIMEOUTS, _TCP_RTO_MIN_US = 16, 45
"""linux/tcp.h, of Linux 2.6.34 and 6.16."""

_TCP_INFO_HEAD = struct.Struct("=8B24I")
"""The part of struct tcp_info (linux/tcp.h) that has not changed since Linux 2.6."""

_STATE, _RECOVERY, _TIMEOUTS, _SND_MSS, _UNACKED, _SACKED = 0, 1, 2, 8 + 2, 8 + 4, 8 + 5
_LAST_SENT, _LAST_ACK, _RTT, _RTTVAR, _TOTAL_RETRANS = 8 + 9, 8 + 12, 8 + 15, 8 + 16, 8 + 23
_TCP_CA_RECOVERY = 3
"""From this value of tcpi_ca_state on, the kernel sends lost segments again."""
_TCP_ESTABLISHED = 1
_TCP_CLOSE = 7

_DELIVERY_RATE = struct.Struct("=160xQ")
"""tcpi_delivery_rate of struct tcp_info (Linux 4.9)."""


SocketAddress = tuple[str, int] | tuple[str, int, int, int]
"""What the socket module takes and gives for IPv4 and for IPv6."""


class Tuning(Protocol):
    """How the data sockets of one side are to be set."""

    def apply(self, sock: socket.socket) -> None:
        """Set the options of `sock`, before it connects or listens."""

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        """Tell what a connected socket has now, for the report; None stands for unknown."""

    def close(self) -> None:
        """Put back what was changed of this machine for these sockets; may be called again.

        Called once no further socket is needed and their data has moved.
        """


class SocketState(NamedTuple):
    """What the kernel knows of a TCP connection."""

    established: bool
    """Neither side has closed its half."""

    rtt_s: float
    """Smoothed round-trip time in seconds."""

    retransmits: int
    """Segments sent again so far."""

    rtt_deviation_s: float = 0.0
    """RTTVAR, the smoothed deviation of the round-trip time in seconds (RFC 6298)."""

    timeouts: int = 0
    """Retransmission time-outs since the last acknowledgment."""

    delivery_rate_bytes_per_s: int = 0
    """At which the peer acknowledged data lately; 0: not known."""

    sacked_bytes: int = 0
    """About so many bytes are at the peer, behind one that is not (SACK, RFC 2018)."""

    unanswered_s: float = 0.0
    """Since data was last sent, new or again, if some of it is not acknowledged; else 0."""

    unheard_s: float = 0.0
    """Since the last segment of the peer: every one acknowledges."""

    is_mending: bool = False
    """Lost segments are being sent again."""


def is_ipv6(host: str) -> bool:
    """Tell whether a literal address is IPv6."""
    return ":" in host


def family_of(host: str) -> socket.AddressFamily:
    """Give the address family of a literal address."""
    return socket.AF_INET6 if is_ipv6(host) else socket.AF_INET


def plain_address(host: str) -> str:
    """Give an address as IPv4 where it is an IPv4-mapped IPv6 one, and without its zone."""
    host = host.partition("%")[0]
    return host[7:] if host.lower().startswith("::ffff:") and "." in host else host


def zoned_address(address: SocketAddress) -> str:
    """Give the host of a socket's address like `plain_address`, but with its zone, as a number.

    Only link-local addresses have one, and without it there is no way to them (RFC 4007).
    """
    host, zone = plain_address(address[0]), address[3] if len(address) > 3 else 0
    return f"{host}%{zone}" if zone else host


def socket_address(host: str, port: int) -> SocketAddress:
    """Give what bind and connect take, of an address that may have a zone. Raises OSError."""
    host, _, zone = host.partition("%")
    if not zone:
        return host, port
    return host, port, 0, int(zone) if zone.isdecimal() else socket.if_nametoindex(zone)


def new_socket(family: socket.AddressFamily, tuning: Tuning | None) -> socket.socket:
    """Make a non-blocking TCP socket with `tuning` applied."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if tuning is not None:
            tuning.apply(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def begin_to_connect(sock: socket.socket, address: SocketAddress) -> bool:
    """Connect a non-blocking socket; tell whether it is connected already. Raises OSError.

    Else the event loop is to wait: for what has begun, as uvloop forgets the zone of an address.
    """
    code = sock.connect_ex(address)
    if code not in (*_MADE, errno.EINPROGRESS, errno.EALREADY):
        raise OSError(code, os.strerror(code))
    return code in _MADE


def set_unsent_limit(sock: socket.socket, limit_bytes: int) -> None:
    """Call `sock` writable only while fewer than `limit_bytes` wait in it unsent (Linux)."""
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, limit_bytes)


def set_least_readable(sock: socket.socket, least_bytes: int) -> None:
    """Call `sock` readable only once so many bytes are there, or its end, or an error (Linux).

    Nothing happens on kernels before 4.18, which tell nobody when less is enough again.
    """
    if sys.platform == "linux" and _kernel_is_since(4, 18):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least_bytes)


@functools.cache
def _kernel_is_since(major: int, minor: int) -> bool:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return found is not None and (int(found[1]), int(found[2])) >= (major, minor)


def is_reset(sock: socket.socket) -> bool:
    """Tell whether the peer has reset a connection: no more comes than what was received."""
    if sys.platform != "linux":
        return False
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[_STATE] == _TCP_CLOSE
    except OSError:
        return False


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Count the bytes sent that the peer has not acknowledged; 0 where that cannot be asked."""
    if sys.platform != "linux" or sock.fileno() < 0:
        return 0
    answer = fcntl.ioctl(sock.fileno(), _SIOCOUTQ, b"\0\0\0\0")
    return int(struct.unpack("=i", answer)[0])


def socket_state(sock: socket.socket) -> SocketState | None:
    """Ask the kernel for the state of a connection; None where it cannot tell, or of a closed one.

    Other than a socket, what uvloop gives for one raises ValueError when it was closed.
    """
    if sys.platform != "linux" or sock.fileno() < 0:
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _DELIVERY_RATE.size)
    except OSError:
        return None
    if len(raw) < _TCP_INFO_HEAD.size:
        return None
    info = _TCP_INFO_HEAD.unpack_from(raw)
    knows_rate = len(raw) >= _DELIVERY_RATE.size
    return SocketState(
        established=info[_STATE] == _TCP_ESTABLISHED,
        rtt_s=info[_RTT] / 1e6,
        retransmits=info[_TOTAL_RETRANS],
        rtt_deviation_s=info[_RTTVAR] / 1e6,
        timeouts=info[_TIMEOUTS],
        delivery_rate_bytes_per_s=_DELIVERY_RATE.unpack_from(raw)[0] if knows_rate else 0,
        sacked_bytes=info[_SACKED] * info[_SND_MSS],
        unanswered_s=info[_LAST_SENT] / 1e3 if info[_UNACKED] else 0.0,
        unheard_s=info[_LAST_ACK] / 1e3,
        is_mending=info[_RECOVERY] >= _TCP_CA_RECOVERY,
    )


CONTROL_IDLE_S = 60.0
"""After which a control connection is probed. Translators forget idle connections: RFC 5382 lets
them after two hours, many do after five minutes, and a transfer may take longer than either."""

CONTROL_PROBES = 20
"""Probes without an answer, 30 s apart, before it is lost: ten minutes."""


def probe_when_idle(sock: socket.socket, idle_s: float, probes: int) -> None:
    """Let the kernel find out that the peer of an idle connection is gone (tcp(7), TCP_KEEPIDLE).

    After `idle_s` it probes `probes` times, half of `idle_s` apart; without an answer the
    connection ends with ETIMEDOUT. Nothing is probed while sent data waits for acknowledgment.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform != "linux":
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, math.ceil(idle_s)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, math.ceil(idle_s / 2)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, probes))


def keep_alive(sock: socket.socket) -> None:
    """Let an idle control connection be probed, so that nothing on the way forgets it."""
    probe_when_idle(sock, CONTROL_IDLE_S, CONTROL_PROBES)


def send_small_at_once(sock: socket.socket) -> None:
    """Send what does not fill a segment, now and later, without waiting for acknowledgments.

    Nagle's algorithm (RFC 9293 section 3.7.4) holds the end of a file back for a round trip.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def repeat_soon(sock: socket.socket, least_s: float) -> None:
    """Let the kernel repeat soon, and steadily, what a socket that says little has sent in vain.

    The time-out is the round-trip time and `least_s`, not 0.2 s, and it is not doubled the first
    six times while fewer than four segments wait (ip-sysctl, tcp_thin_linear_timeouts). A kernel
    that lacks one of the two does as it does for all.
    """
    if sys.platform != "linux":
        return
    options = ((_TCP_THIN_LINEAR_TIMEOUTS, 1), (_TCP_RTO_MIN_US, round(least_s * 1e6)))
    for option, value in options:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        except OSError as error:
            if error.errno != errno.ENOPROTOOPT:
                raise


def give_up_after(sock: socket.socket, seconds: float) -> None:
    """Let the kernel end a connection whose data is not acknowledged for so long (RFC 5482)."""
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(seconds * 1000))
