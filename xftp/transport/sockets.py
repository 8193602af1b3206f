"""Sockets: made, tuned before connect or listen, and asked how they fare."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

_SIOCOUTQ = 0x5411
"""ioctl: bytes in the send queue that the peer has not acknowledged (tcp(7); TIOCOUTQ)."""

_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
"""Only this many unsent bytes make a socket unwritable (Linux 3.12; tcp(7))."""

_TCP_INFO_HEAD = struct.Struct("=8B24I")
"""The part of struct tcp_info (linux/tcp.h) that has not changed since Linux 2.6."""

_STATE, _RTT, _TOTAL_RETRANS = 0, 8 + 15, 8 + 23
_TCP_ESTABLISHED = 1
_TCP_CLOSE = 7


class Tuning(Protocol):
    """How the data sockets of one side are to be set."""

    def apply(self, sock: socket.socket) -> None:
        """Set the options of `sock`, before it connects or listens."""

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        """Tell what a connected socket has now, for the report; None stands for unknown."""


@dataclass(frozen=True, slots=True)
class SocketState:
    """What the kernel knows of a TCP connection."""

    established: bool
    """Neither side has closed its half."""

    rtt_s: float
    """Smoothed round-trip time in seconds."""

    retransmits: int
    """Segments sent again so far."""


def is_ipv6(host: str) -> bool:
    """Tell whether a literal address is IPv6."""
    return ":" in host


def family_of(host: str) -> socket.AddressFamily:
    """Give the address family of a literal address."""
    return socket.AF_INET6 if is_ipv6(host) else socket.AF_INET


def plain_address(host: str) -> str:
    """Give an address as IPv4 where it is an IPv4-mapped IPv6 one, and without its scope."""
    host = host.partition("%")[0]
    return host[7:] if host.lower().startswith("::ffff:") and "." in host else host


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


def set_unsent_limit(sock: socket.socket, limit_bytes: int) -> None:
    """Call `sock` writable only while fewer than `limit_bytes` wait in it unsent (Linux)."""
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, limit_bytes)


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
    if sys.platform != "linux":
        return 0
    answer = fcntl.ioctl(sock.fileno(), _SIOCOUTQ, b"\0\0\0\0")
    return int(struct.unpack("=i", answer)[0])


def socket_state(sock: socket.socket) -> SocketState | None:
    """Ask the kernel for the state of a connection; None where it cannot tell."""
    if sys.platform != "linux":
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_HEAD.size)
    except OSError:
        return None
    if len(raw) < _TCP_INFO_HEAD.size:
        return None
    info = _TCP_INFO_HEAD.unpack(raw)
    return SocketState(
        established=info[_STATE] == _TCP_ESTABLISHED,
        rtt_s=info[_RTT] / 1e6,
        retransmits=info[_TOTAL_RETRANS],
    )
