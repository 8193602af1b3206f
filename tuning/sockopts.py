"""How one side's TCP sockets are to be set, and the setting of them.

    tuning = SocketTuning(receive_buffer_bytes=4_000_000, congestion="cubic")
    for difference in tuning.apply(sock):      # before connect or listen
        print(difference)                      # receive_buffer_bytes: asked for 4000000, got …

A wish that the kernel refuses never raises: it comes back as a `Difference`, with the reason and
the command that mends it. `granted(sock)` and `SocketTuning.differences(sock)` read the socket
again at any later time.

The initial window and the parameters of an algorithm are no socket options: a BPF program or a
route grants them. They are set by callables that the caller passes in, so that this module needs
neither. They are called after the algorithm is chosen, the parameters' first; each keeps what the
other set.
"""

from __future__ import annotations

import contextlib
import errno
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from . import readback as kernel
from .errors import TuningError, check_integer, check_number
from .readback import Difference, Granted, Keepalive, granted

__all__ = ["Difference", "Granted", "Keepalive", "SocketTuning", "Tuner", "granted"]

Parameters = tuple[tuple[str, float], ...]
"""Names and values of an algorithm's parameters."""

InitialWindowSetter = Callable[[socket.socket, int], None]
"""Give a socket, not connected yet, its initial window in segments.

Raises OSError or TuningError where it cannot; the message becomes the reason of a `Difference`.
"""

ParameterSetter = Callable[[socket.socket, str, Parameters], None]
"""Give a socket the parameters of the algorithm of that name. Raises as InitialWindowSetter."""

MIN_BUFFER_BYTES = 2304
"""Half of SOCK_MIN_SNDBUF (net/sock.h): one small packet and its bookkeeping."""

MAX_BUFFER_BYTES = 2**30 - 1
"""INT_MAX / 2, where the kernel cuts, and the largest window there is (RFC 7323 section 2.3)."""

MAX_INITIAL_WINDOW_SEGMENTS = 1000
"""1.4 MB at once; what a link of more can take is better spread over several connections."""

MIN_PACING_RATE_BPS = 1e3
MAX_PACING_RATE_BPS = 1e13

MIN_CLAMP_BYTES = 1152
"""Half of SOCK_MIN_RCVBUF (net/sock.h), the smallest clamp the kernel takes."""

MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES = 88, 32767
"""TCP_MIN_MSS and MAX_TCP_WINDOW of net/tcp.h."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""TCP_CA_NAME_MAX of net/tcp.h is 16, with the final zero."""

_FAST_OPEN_QUEUE = 16
"""Connections whose SYN carried data that may wait for their handshake to end (RFC 7413 5.1)."""

_SET_BY_OTHERS = ("congestion_parameters", "initial_window_segments")
"""Their setters' own words are the best reason."""

_CALLER_ERRORS = (errno.EBADF, errno.ENOTSOCK)
"""Not a refused wish but a socket that is closed or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketTuning:
    """The options of a TCP socket; what is None is left as the system has it.

    Raises TuningError for a value that cannot be meant. On a listener the values are inherited
    by the sockets accepted from it.
    """

    send_buffer_bytes: int | None = None
    """SO_SNDBUF, socket(7): what may wait unacknowledged or unsent. Ends automatic growth."""

    receive_buffer_bytes: int | None = None
    """SO_RCVBUF, socket(7): bounds the advertised window. Ends automatic growth."""

    congestion: str | None = None
    """TCP_CONGESTION, tcp(7): name of the congestion algorithm, at most 15 characters."""

    congestion_parameters: Parameters = ()
    """Parameters of that algorithm, for algorithms that take some (`ParameterSetter`)."""

    initial_window_segments: int | None = None
    """Congestion window at the start, 1 to 1000 (RFC 6928, Allman 1997 3.1); 10 on Linux."""

    pacing_rate_bps: float | None = None
    """SO_MAX_PACING_RATE, by `readback.pacing_bytes_per_s`: bits per second on the link, headers
    included, never exceeded by this socket."""

    notsent_lowat_bytes: int | None = None
    """TCP_NOTSENT_LOWAT, tcp(7): not writable while this much waits unsent."""

    window_clamp_bytes: int | None = None
    """TCP_WINDOW_CLAMP, tcp(7): bounds the advertised window below the receive buffer's."""

    max_segment_bytes: int | None = None
    """TCP_MAXSEG, tcp(7): largest payload of a segment, 88 to 32,767, told to the peer."""

    user_timeout_ms: int | None = None
    """TCP_USER_TIMEOUT, tcp(7): unacknowledged for longer ends the connection (RFC 5482)."""

    keepalive: Keepalive | None = None
    """SO_KEEPALIVE, socket(7), with its three times of tcp(7)."""

    quick_ack: bool | None = None
    """TCP_QUICKACK, tcp(7): acknowledge at once; only a hint, which the kernel drops in time."""

    fast_open: bool | None = None
    """TCP_FASTOPEN and TCP_FASTOPEN_CONNECT (RFC 7413): data in the SYN.

    The SYN then waits for the first write: only where the side that connects writes first.
    """

    def __post_init__(self) -> None:
        """Check every value."""
        top = MAX_BUFFER_BYTES
        for name, low, high, unit in (
            ("send_buffer_bytes", MIN_BUFFER_BYTES, top, "bytes"),
            ("receive_buffer_bytes", MIN_BUFFER_BYTES, top, "bytes"),
            ("initial_window_segments", 1, MAX_INITIAL_WINDOW_SEGMENTS, "segments"),
            ("notsent_lowat_bytes", 1, top, "bytes"),
            ("window_clamp_bytes", MIN_CLAMP_BYTES, top, "bytes"),
            ("max_segment_bytes", MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES, "bytes"),
            ("user_timeout_ms", 1, 2**31 - 1, "milliseconds"),
        ):
            value = getattr(self, name)
            if value is not None:
                check_integer(name, value, low, high, unit)
        if self.pacing_rate_bps is not None:
            check_number(
                "pacing_rate_bps",
                self.pacing_rate_bps,
                MIN_PACING_RATE_BPS,
                MAX_PACING_RATE_BPS,
                "bits per second",
            )
        if self.keepalive is not None:
            check_integer("keepalive idle_s", self.keepalive.idle_s, 1, 32767, "seconds")
            check_integer("keepalive interval_s", self.keepalive.interval_s, 1, 32767, "seconds")
            check_integer("keepalive count", self.keepalive.count, 1, 127, "probes")
        self._check_congestion()

    def _check_congestion(self) -> None:
        if self.congestion is not None and not _NAME.fullmatch(self.congestion):
            raise TuningError(
                f"{self.congestion!r} cannot be a congestion algorithm: its name has 1 to 15"
                " letters, digits, dots, dashes and underscores"
            )
        if self.congestion_parameters and self.congestion is None:
            raise TuningError("congestion parameters need the name of a congestion algorithm")
        names = [name for name, _ in self.congestion_parameters]
        if len(set(names)) < len(names):
            raise TuningError(f"a congestion parameter is given twice: {', '.join(names)}")
        for name, value in self.congestion_parameters:
            check_number(f"the congestion parameter {name!r}", value, -1e18, 1e18, "its unit")

    def merged(self, other: SocketTuning) -> SocketTuning:
        """Give these values with those that `other` has in place of theirs.

        Parameters stay only with their algorithm.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if other.congestion not in (None, self.congestion):
            values["congestion_parameters"] = ()
        asked = {f.name: getattr(other, f.name) for f in fields(other)}
        return SocketTuning(
            **values | {name: v for name, v in asked.items() if v not in (None, ())}
        )

    def apply(
        self,
        sock: socket.socket,
        *,
        set_parameters: ParameterSetter | None = None,
        set_initial_window: InitialWindowSetter | None = None,
    ) -> tuple[Difference, ...]:
        """Set the options of a socket before connect or listen; give what was not granted.

        A socket that was accepted may be set too, before data is sent: its windows were offered
        with the buffers that the listener had. Raises OSError only where `sock` is closed or no
        socket.
        """
        hooks: tuple[tuple[str, Setter], ...] = (
            ("congestion", _set_congestion),
            (
                "congestion_parameters",
                partial(_set_parameters, set_parameters, self.congestion or ""),
            ),
            ("initial_window_segments", set_initial_window or _no_initial_window),
        )
        refused: dict[str, Difference] = {}
        for name, setter in (*hooks, *_SETTERS):
            value = getattr(self, name)
            if value is None or value == ():
                continue
            if name == "congestion_parameters" and "congestion" in refused:
                refused[name] = Difference(name, value, None, f"{self.congestion} was refused")
                continue
            try:
                setter(sock, value)
            except (OSError, TuningError) as error:
                if isinstance(error, OSError) and error.errno in _CALLER_ERRORS:
                    raise
                refused[name] = _refusal(sock, name, value, error)
        if self.congestion and "congestion" not in refused and kernel.is_connected(sock):
            _begin_again(sock, self.congestion)
        later = (d for d in self.differences(sock) if d.option not in refused)
        return (*refused.values(), *later)

    def differences(self, sock: socket.socket) -> tuple[Difference, ...]:
        """Read a socket back and give what is not as asked.

        The initial window can be read from the handshake to the first acknowledgment of data.
        Parameters cannot be read; only `apply` tells whether they were taken.
        """
        got = granted(sock)
        connected = kernel.is_connected(sock)
        found = []
        for name in Granted._fields:
            asked = getattr(self, name)
            has = getattr(got, name)
            if asked is not None and not kernel.agrees(sock, name, asked, has, connected):
                found.append(Difference(name, asked, has, kernel.explain(name, asked, has)))
        return tuple(found)


class Tuner:
    """Apply one `SocketTuning` to many sockets, and remember what was not granted.

    For code that makes the sockets itself and only calls `apply(sock)`. Not a value: one per
    transfer.
    """

    def __init__(
        self,
        tuning: SocketTuning,
        *,
        set_parameters: ParameterSetter | None = None,
        set_initial_window: InitialWindowSetter | None = None,
    ) -> None:
        self.tuning = tuning
        self._set_parameters = set_parameters
        self._set_initial_window = set_initial_window
        self._differences: dict[tuple[str, object], Difference] = {}

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What was not granted so far; what several sockets share is given once."""
        return tuple(self._differences.values())

    def apply(self, sock: socket.socket) -> None:
        """Set the options of a socket before connect or listen."""
        found = self.tuning.apply(
            sock,
            set_parameters=self._set_parameters,
            set_initial_window=self._set_initial_window,
        )
        self._remember(found)

    def check(self, sock: socket.socket) -> None:
        """Read a socket back once it is connected, when more can be known."""
        self._remember(self.tuning.differences(sock))

    def _remember(self, found: tuple[Difference, ...]) -> None:
        for difference in found:
            self._differences.setdefault((difference.option, difference.granted), difference)


# -- setting ----------------------------------------------------------------------------------

Setter = Callable[[socket.socket, Any], None]


def _refusal(
    sock: socket.socket, name: str, asked: object, error: OSError | TuningError
) -> Difference:
    has = getattr(granted(sock), name, None)
    if isinstance(error, TuningError) or name in _SET_BY_OTHERS:
        return Difference(name, asked, has, str(error))
    return Difference(name, asked, has, kernel.explain(name, asked, has, error))


def _linux_only() -> None:
    """Elsewhere the numbers of Linux mean something else."""
    if not kernel.LINUX:
        raise TuningError("only Linux has this option")


def _set_congestion(sock: socket.socket, name: str) -> None:
    _linux_only()
    sock.setsockopt(socket.IPPROTO_TCP, kernel.TCP_CONGESTION, name.encode("ascii"))


def _begin_again(sock: socket.socket, name: str) -> None:
    """Let the algorithm of a connection see what was set after it was chosen: it looks once."""
    for each in ("reno", name):
        with contextlib.suppress(OSError):  # what was refused is told by reading back
            sock.setsockopt(socket.IPPROTO_TCP, kernel.TCP_CONGESTION, each.encode("ascii"))


def _set_parameters(
    setter: ParameterSetter | None, congestion: str, sock: socket.socket, parameters: Parameters
) -> None:
    if setter is None:
        raise TuningError(f"parameters need a loaded algorithm that takes them: {kernel.LOAD}")
    setter(sock, congestion, parameters)


def _no_initial_window(sock: socket.socket, segments: int) -> None:
    raise TuningError(kernel.NO_INITIAL_WINDOW)


def _set_buffer(forced: int, ordinary: int, sock: socket.socket, size_bytes: int) -> None:
    """Set a buffer past the system's ceiling if this process may, else up to it.

    SO_SNDBUF and SO_RCVBUF never fail: they cut silently, which reading back shows.
    """
    if kernel.LINUX:
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, size_bytes)
        except OSError as error:
            if error.errno in _CALLER_ERRORS:
                raise
        else:
            return
    sock.setsockopt(socket.SOL_SOCKET, ordinary, size_bytes)


def _set_pacing_rate(sock: socket.socket, rate_bps: float) -> None:
    _linux_only()
    raw = kernel.PACING_RATE.pack(kernel.pacing_bytes_per_s(sock, rate_bps))
    sock.setsockopt(socket.SOL_SOCKET, kernel.SO_MAX_PACING_RATE, raw)


def _set_linux_integer(option: int, sock: socket.socket, value: int) -> None:
    _linux_only()
    sock.setsockopt(socket.IPPROTO_TCP, option, int(value))


def _set_segment_size(sock: socket.socket, size_bytes: int) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, size_bytes)


def _set_keepalive(sock: socket.socket, keepalive: Keepalive) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, kernel.TCP_KEEPIDLE, keepalive.idle_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, keepalive.interval_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, keepalive.count)


def _set_fast_open(sock: socket.socket, wanted: bool) -> None:
    """Set both sides' options: whether this socket will connect or listen is not known yet."""
    _linux_only()
    queue = _FAST_OPEN_QUEUE if wanted else 0
    sock.setsockopt(socket.IPPROTO_TCP, kernel.TCP_FASTOPEN, queue)
    sock.setsockopt(socket.IPPROTO_TCP, kernel.TCP_FASTOPEN_CONNECT, int(wanted))


_SETTERS: tuple[tuple[str, Setter], ...] = (
    (
        "send_buffer_bytes",
        partial(_set_buffer, kernel.SO_SNDBUFFORCE, socket.SO_SNDBUF),
    ),
    (
        "receive_buffer_bytes",
        partial(_set_buffer, kernel.SO_RCVBUFFORCE, socket.SO_RCVBUF),
    ),
    ("pacing_rate_bps", _set_pacing_rate),
    ("notsent_lowat_bytes", partial(_set_linux_integer, kernel.TCP_NOTSENT_LOWAT)),
    ("window_clamp_bytes", partial(_set_linux_integer, kernel.TCP_WINDOW_CLAMP)),
    ("max_segment_bytes", _set_segment_size),
    ("user_timeout_ms", partial(_set_linux_integer, kernel.TCP_USER_TIMEOUT)),
    ("keepalive", _set_keepalive),
    ("quick_ack", partial(_set_linux_integer, kernel.TCP_QUICKACK)),
    ("fast_open", _set_fast_open),
)
"""How each option is set, in this order, after the algorithm and what depends on it."""
