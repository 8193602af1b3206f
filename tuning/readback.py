"""What the kernel gave a socket, read back, and why it is not what was asked.

Constants that Python's socket module lacks have the numbers of asm-generic/socket.h and
linux/tcp.h, which hold on every architecture but alpha, mips, parisc and sparc.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

LINUX = sys.platform == "linux"
"""Everything but the buffers, the segment size and the keepalives is Linux's own."""

SO_SNDBUFFORCE = 32
"""As SO_SNDBUF, past net.core.wmem_max; needs CAP_NET_ADMIN (socket(7), Linux 2.6.14)."""

SO_RCVBUFFORCE = 33
"""As SO_RCVBUF, past net.core.rmem_max; needs CAP_NET_ADMIN (socket(7), Linux 2.6.14)."""

SO_MAX_PACING_RATE = 47
"""Payload bytes per second, an unsigned long since Linux 4.20; TCP paces itself since 4.13."""

_FRAME_BYTES = 1500
_PAYLOAD_BYTES = {socket.AF_INET: 1500 - 20 - 32, socket.AF_INET6: 1500 - 40 - 32}
"""Of a full segment in a packet of that size: IP header, then TCP's with time stamps (RFC 7323)."""

COUNTS_HEADERS = frozenset({"xftp_rented"})
"""Algorithms that take SO_MAX_PACING_RATE for the link's rate and allow for headers themselves."""

TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", 13)
TCP_INFO = getattr(socket, "TCP_INFO", 11)
TCP_FASTOPEN = getattr(socket, "TCP_FASTOPEN", 23)
TCP_FASTOPEN_CONNECT = 30
"""Put the SYN off until the first write (linux/tcp.h, Linux 4.11)."""

TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
TCP_QUICKACK = getattr(socket, "TCP_QUICKACK", 12)
TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", 18)
TCP_WINDOW_CLAMP = getattr(socket, "TCP_WINDOW_CLAMP", 10)
TCP_KEEPIDLE = getattr(socket, "TCP_KEEPIDLE", 4)

_ESTABLISHED, _CLOSE, _CLOSE_WAIT, _LISTEN = 1, 7, 8, 10
"""States of a TCP socket: net/tcp_states.h."""

CONGESTION_NAME_ROOM = 16
"""TCP_CA_NAME_MAX of net/tcp.h: 15 characters and a zero."""

PACING_RATE = struct.Struct("@L")
"""SO_MAX_PACING_RATE on the wire to the kernel: an unsigned long."""

_NO_PACING_LIMIT = 2 ** (8 * PACING_RATE.size) - 1

_FAST_OPEN_CLIENT, _FAST_OPEN_SERVER = 1, 2
"""Bits of net.ipv4.tcp_fastopen (kernel documentation, ip-sysctl)."""

_SYSCTLS = Path("/proc/sys")

LOAD = "python -m tuning load"
"""What root types to have the algorithms of this package; messages name no other way."""

NO_INITIAL_WINDOW = f"it needs a loaded algorithm that takes it, or a route's initcwnd: {LOAD}"
"""Why nobody grants an initial window, and what mends it."""

_MAX_OPTION_BYTES = 40
"""TCP options that a segment may carry; they lessen its payload (RFC 9293 section 3.1)."""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Probes on an idle connection: tcp(7)."""

    idle_s: int
    """TCP_KEEPIDLE: silence before the first probe, 1 to 32,767 s."""

    interval_s: int
    """TCP_KEEPINTVL: between probes, 1 to 32,767 s."""

    count: int
    """TCP_KEEPCNT: this many without an answer end the connection, 1 to 127."""


class Granted(NamedTuple):
    """What a socket has now; None where the kernel cannot tell."""

    send_buffer_bytes: int
    """Half of what SO_SNDBUF reads: the kernel doubles what is set (socket(7))."""

    receive_buffer_bytes: int
    """Half of what SO_RCVBUF reads."""

    congestion: str | None
    """Name of the congestion algorithm."""

    initial_window_segments: int | None
    """Congestion window before any data was acknowledged; None before and after that."""

    pacing_rate_bps: int | None
    """SO_MAX_PACING_RATE in bits per second: of payload (`pacing_bytes_per_s`); None: no limit."""

    notsent_lowat_bytes: int | None
    """TCP_NOTSENT_LOWAT; 0: the sysctl net.ipv4.tcp_notsent_lowat applies."""

    window_clamp_bytes: int | None
    """TCP_WINDOW_CLAMP; 0: none."""

    max_segment_bytes: int
    """TCP_MAXSEG: what was set, and once connected the payload of a segment."""

    user_timeout_ms: int | None
    """TCP_USER_TIMEOUT; 0: the system's own."""

    keepalive: Keepalive | None
    """None: no keepalive probes."""

    quick_ack: bool | None
    """TCP_QUICKACK at this moment; the kernel changes it as it goes."""

    fast_open: bool | None
    """Whether the socket may connect, or be connected to, with data in the SYN."""


class Difference(NamedTuple):
    """A wish that the kernel did not grant as asked."""

    option: str
    """The field of `SocketTuning`."""

    asked: object
    """Its value there."""

    granted: object
    """What the socket has instead; None where nothing is known of it."""

    reason: str
    """Why, and the command that mends it where there is one."""

    def __str__(self) -> str:
        got = "was refused" if self.granted is None else f"got {self.granted}"
        return f"{self.option}: asked for {self.asked}, {got}: {self.reason}"


def granted(sock: socket.socket) -> Granted:
    """Read back what the kernel gave a TCP socket. Raises OSError if it is closed or not TCP."""
    return Granted(
        send_buffer_bytes=sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2,
        receive_buffer_bytes=sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2,
        congestion=_congestion(sock),
        initial_window_segments=_initial_window(sock),
        pacing_rate_bps=_pacing_rate(sock),
        notsent_lowat_bytes=_linux_integer(sock, TCP_NOTSENT_LOWAT),
        window_clamp_bytes=_linux_integer(sock, TCP_WINDOW_CLAMP),
        max_segment_bytes=sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG),
        user_timeout_ms=_linux_integer(sock, TCP_USER_TIMEOUT),
        keepalive=_keepalive(sock),
        quick_ack=bool(_linux_integer(sock, TCP_QUICKACK)) if LINUX else None,
        fast_open=_fast_open(sock),
    )


def agrees(sock: socket.socket, option: str, asked: Any, got: Any, connected: bool) -> bool:
    """Tell whether what a socket has is what was asked of it.

    connected: the socket left its closed or listening state; two options then have a bound set
    by the peer, which is no refusal.
    """
    match option:
        case "congestion_parameters" | "quick_ack":
            return True  # cannot be read back; a hint that the kernel changes as it goes
        case "initial_window_segments":
            return got is None or bool(got == asked)
        case "pacing_rate_bps":
            return bool(got == pacing_bytes_per_s(sock, asked) * 8)
        case "window_clamp_bytes" if connected and got is not None:
            return bool(0 < got <= asked)
        case "max_segment_bytes" if connected:
            return bool(asked - _MAX_OPTION_BYTES <= got <= asked)
        case _:
            return bool(got == asked)


def pacing_bytes_per_s(sock: socket.socket, rate_bps: float) -> int:
    """Give a rate on the link, headers included, in the unit of SO_MAX_PACING_RATE.

    TCP's own pacing counts payload only: tcp_update_skb_after_send (net/ipv4/tcp_output.c) divides
    skb->len by the rate before any header is in front. Told R, it sent 1.00 R of payload, and
    1.034 R with headers. So it is told R x 1448/1500 over IPv4, R x 1428/1500 over IPv6: the
    payload of a full packet of 1500 bytes with time stamps. The MTU is not known before the
    handshake: with 9000 bytes 3% of the link stay unused, and as much where a qdisc `fq` does the
    pacing, which counts the headers itself.
    """
    if _congestion(sock) in COUNTS_HEADERS:
        return int(rate_bps / 8)
    return int(rate_bps / 8 * _PAYLOAD_BYTES[sock.family] / _FRAME_BYTES)


def explain(option: str, asked: object, got: object, error: OSError | None = None) -> str:
    """Give the reason for a difference, and the command that mends it where there is one."""
    if not LINUX:
        return "only Linux has this option"
    if option == "send_buffer_bytes":
        return _explain_buffer("net.core.wmem_max", asked, got)
    if option == "receive_buffer_bytes":
        return _explain_buffer("net.core.rmem_max", asked, got)
    if option == "congestion":
        return _explain_congestion(str(asked), error)
    if option == "initial_window_segments":
        return "the congestion algorithm in use does not take an initial window"
    if option == "max_segment_bytes":
        return "the path or the peer allows only this"
    if option == "fast_open":
        return _explain_fast_open(error)
    if error is not None and error.errno:
        return f"the kernel refuses: {os.strerror(error.errno)}"
    return "the kernel gave something else"


def sysctl(name: str) -> str | None:
    """Read a sysctl of this network namespace; None where there is none."""
    try:
        return (_SYSCTLS / name.replace(".", "/")).read_text().strip()
    except OSError:
        return None


def is_connected(sock: socket.socket) -> bool:
    """Tell whether a socket is neither closed nor listening."""
    return _state(sock) not in (None, _CLOSE, _LISTEN)


# -- reading back -----------------------------------------------------------------------------


def _state(sock: socket.socket) -> int | None:
    """Give tcpi_state, the first byte of struct tcp_info; None where the kernel cannot tell."""
    if not LINUX:
        return None
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 1)[0]
    except OSError:
        return None


def _linux_integer(sock: socket.socket, option: int) -> int | None:
    return sock.getsockopt(socket.IPPROTO_TCP, option) if LINUX else None


def _congestion(sock: socket.socket) -> str | None:
    if not LINUX:
        return None
    name = sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, CONGESTION_NAME_ROOM)
    return name.partition(b"\0")[0].decode("ascii", "replace")


def _initial_window(sock: socket.socket) -> int | None:
    """Give the congestion window while it still is the initial one.

    The SYN of the side that connected counts as one byte acknowledged (`TcpInfo.bytes_acked`).
    """
    # A receiver may find that its peer has sent everything and closed already.
    if _state(sock) not in (_ESTABLISHED, _CLOSE_WAIT):
        return None
    from .tcp_info import tcp_info  # long to load, and not needed to connect

    info = tcp_info(sock)
    if info is None:
        return None
    return None if info.bytes_acked is None or info.bytes_acked > 1 else info.snd_cwnd_segments


def _pacing_rate(sock: socket.socket) -> int | None:
    if not LINUX:
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, PACING_RATE.size)
    if len(raw) < PACING_RATE.size:  # 32 bits before Linux 4.20
        rate = int.from_bytes(raw, sys.byteorder)
        return None if rate == 2**32 - 1 else rate * 8
    rate = PACING_RATE.unpack(raw)[0]
    return None if rate == _NO_PACING_LIMIT else rate * 8


def _keepalive(sock: socket.socket) -> Keepalive | None:
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        return None
    return Keepalive(
        idle_s=sock.getsockopt(socket.IPPROTO_TCP, TCP_KEEPIDLE),
        interval_s=sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
        count=sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
    )


def _fast_open(sock: socket.socket) -> bool | None:
    """A listener needs a queue for it and the system's leave; any other socket its own flag."""
    if not LINUX:
        return None
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        queue = sock.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN)
        return bool(queue) and bool(_fast_open_modes() & _FAST_OPEN_SERVER)
    return bool(sock.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT))


def _fast_open_modes() -> int:
    value = sysctl("net.ipv4.tcp_fastopen")
    return int(value, 0) if value else 0


# -- reasons ----------------------------------------------------------------------------------


def _explain_buffer(ceiling_name: str, asked: Any, got: Any) -> str:
    if got is not None and got > asked:
        return "the kernel gives no smaller buffer"
    ceiling = sysctl(ceiling_name) or got
    return f"{ceiling_name} is {ceiling}: sysctl -w {ceiling_name}={asked}"


def _explain_congestion(name: str, error: OSError | None) -> str:
    if error is not None and error.errno == errno.EPERM:
        variable = "net.ipv4.tcp_allowed_congestion_control"
        allowed = sysctl(variable) or ""
        return f'only root may choose it: sysctl -w {variable}="{f"{allowed} {name}".strip()}"'
    if error is not None and error.errno == errno.ENOENT:
        available = sysctl("net.ipv4.tcp_available_congestion_control") or "none"
        command = LOAD if name.startswith("xftp_") else f"modprobe tcp_{name}"
        return f"the kernel has only {', '.join(available.split())}: {command}"
    return f"the kernel refuses: {error.strerror}" if error else "it was changed since"


def _explain_fast_open(error: OSError | None) -> str:
    modes = _fast_open_modes()
    if modes & (_FAST_OPEN_CLIENT | _FAST_OPEN_SERVER) != _FAST_OPEN_CLIENT | _FAST_OPEN_SERVER:
        return f"net.ipv4.tcp_fastopen is {modes}: sysctl -w net.ipv4.tcp_fastopen=3"
    return f"the kernel refuses: {error.strerror}" if error else "it was not set before connect"
