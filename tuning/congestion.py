"""Congestion-control algorithms: what there is, choosing one for a socket, its parameters.

The kernel's own (cubic, reno, bbr …) are chosen by name like ours. Ours are BPF programs, which
root loads once (`python -m tuning load`); then every process may choose them. Parameters go by a
map that is keyed by the socket: set them before connect or listen, since an algorithm reads them
as the connection starts. Sockets accepted from a listener inherit the listener's algorithm and
parameters.

    with ParameterMap() as parameters:            # as root, or where the map's file is open to all
        choose(sock, "xftp_kack", Parameters(initial_window_segments=6, k=4), parameters)
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from .bpf import host, syscalls
from .bpf.host import CongestionError, available, is_loaded, load, loaded, names, unload
from .errors import check_integer, check_number

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "CongestionError",
    "ParameterMap",
    "Parameters",
    "allowed",
    "available",
    "choose",
    "chosen",
    "is_loaded",
    "load",
    "loaded",
    "names",
    "unload",
]

_TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", 13)

_NAME_BYTES = 16
"""TCP_CA_NAME_MAX of net/tcp.h, the final zero included."""

MAX_WINDOW_SEGMENTS = 65_535
"""Largest window that may be told: 94 MB at 1448 bytes, more than a receiver's window may be today
without raised ceilings."""

_SSTHRESH_FROM_RATE = 1
"""XFTP_SSTHRESH_FROM_RATE of bpf/common.h."""

_LAYOUT = struct.Struct("=8IQ")
"""struct xftp_parameters of bpf/common.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What an algorithm of ours is told about one socket; None leaves it its own value.

    Raises TuningError for what no algorithm can do.
    """

    initial_window_segments: int | None = None
    """The window before the first acknowledgment."""

    ssthresh_segments: int | None = None
    """Initial slow-start threshold."""

    k: int | None = None
    """xftp_incbyk: segments per RTT in congestion avoidance (Henderson 4.1.5).
    xftp_kack: segments per ACK in slow start (Marchese, equation 2)."""

    thr_segments: int | None = None
    """xftp_linthr: up to which window the increment is the count of ACKs (Marchese, equation 3)."""

    c: int | None = None
    """xftp_crate: segments per second squared (Henderson 4.1.4); 100 is as aggressive as a standard
    connection of 100 ms."""

    reference_rtt_s: float | None = None
    """xftp_hybla: the RTT of the connection that it imitates."""

    rate_bps: float | None = None
    """The link's rate, or this connection's part of it, headers included. xftp_rented sends at it;
    the others use it for `ssthresh_from_rate` only."""

    ssthresh_from_rate: bool = False
    """Let the initial slow-start threshold be rate x RTT of the handshake (Allman 2.4.5)."""

    def __post_init__(self) -> None:
        for name in ("initial_window_segments", "thr_segments"):
            _check_integer(name, getattr(self, name), 1, MAX_WINDOW_SEGMENTS, "segments")
        _check_integer(
            "ssthresh_segments", self.ssthresh_segments, 2, MAX_WINDOW_SEGMENTS, "segments"
        )
        _check_integer("k", self.k, 1, 1_000, "segments")
        _check_integer("c", self.c, 1, 1_000_000, "segments per second squared")
        if self.reference_rtt_s is not None:
            check_number("reference_rtt_s", self.reference_rtt_s, 1e-3, 10.0, "seconds")
        if self.rate_bps is not None:
            check_number("rate_bps", self.rate_bps, 1e3, 1e13, "bits per second")
        if self.ssthresh_from_rate and self.rate_bps is None:
            raise CongestionError("ssthresh_from_rate needs a rate: give rate_bps too")

    def told(self) -> frozenset[str]:
        """Name the fields that say something."""
        return frozenset(
            field.name for field in fields(self) if getattr(self, field.name) != field.default
        )

    def pack(self) -> bytes:
        """Give the value for the kernel's map."""
        return _LAYOUT.pack(
            self.initial_window_segments or 0,
            self.ssthresh_segments or 0,
            self.k or 0,
            self.thr_segments or 0,
            self.c or 0,
            round((self.reference_rtt_s or 0) * 1e6),
            _SSTHRESH_FROM_RATE if self.ssthresh_from_rate else 0,
            0,
            round((self.rate_bps or 0) / 8),
        )

    @classmethod
    def unpack(cls, value: bytes) -> Self:
        """Read a value of the kernel's map."""
        window, ssthresh, k, thr, c, reference_us, flags, _, rate = _LAYOUT.unpack(value)
        return cls(
            initial_window_segments=window or None,
            ssthresh_segments=ssthresh or None,
            k=k or None,
            thr_segments=thr or None,
            c=c or None,
            reference_rtt_s=reference_us / 1e6 or None,
            rate_bps=rate * 8 or None,
            ssthresh_from_rate=bool(flags & _SSTHRESH_FROM_RATE),
        )


_FIELDS = tuple(field.name for field in fields(Parameters))
_WHOLE = tuple(field.name for field in fields(Parameters) if "int" in str(field.type))


class Algorithm(NamedTuple):
    """One of ours."""

    name: str
    """As TCP_CONGESTION takes it."""

    summary: str
    """What it does, and whose it is."""

    own_parameters: frozenset[str] = frozenset()
    """Fields of `Parameters` that only some take; the initial window, ssthresh and rate all do."""


_COMMON_PARAMETERS = frozenset(
    {"initial_window_segments", "ssthresh_segments", "rate_bps", "ssthresh_from_rate"}
)

ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("xftp_reno97", "one segment per ACK, initial window 1: the baseline of 1997"),
        Algorithm("xftp_abc", "byte counting: grows by segments acknowledged (Allman 3.1)"),
        Algorithm(
            "xftp_crate",
            "Constant-Rate: min(c RTT²/cwnd, 1) per ACK (Henderson 4.1.4)",
            frozenset({"c"}),
        ),
        Algorithm(
            "xftp_incbyk",
            "Increase-by-K: min(K/cwnd, 1) per ACK (Henderson 4.1.5)",
            frozenset({"k"}),
        ),
        Algorithm(
            "xftp_kack",
            "K segments per ACK in slow start (Marchese, equation 2)",
            frozenset({"k"}),
        ),
        Algorithm(
            "xftp_linthr",
            "the n-th ACK adds n segments up to thr (Marchese, equation 3)",
            frozenset({"thr_segments"}),
        ),
        Algorithm("xftp_adalr", "TCP-ADaLR: growth scaled by the RTT (SFU thesis, chapter 5)"),
        Algorithm(
            "xftp_hybla",
            "Hybla: grows as a connection of 25 ms would (Caini and Firrincieli)",
            frozenset({"reference_rtt_s"}),
        ),
        Algorithm("xftp_rented", "for a link whose rate is known: starts at rate x RTT, paced"),
    )
}
"""By name."""


class ParameterMap:
    """The kernel's map of per-socket parameters.

    Open it before privileges are dropped and keep it: an open map needs none (Linux 5.19).
    Raises CongestionError.
    """

    def __init__(self, path: Path = host.PARAMETERS_PIN) -> None:
        try:
            self._descriptor = syscalls.open_pinned(path)
        except FileNotFoundError:
            raise CongestionError(
                "no algorithm of this package is loaded: run `python -m tuning load` as root"
            ) from None
        except PermissionError as error:
            raise CongestionError(
                f"{path} may not be opened by this user: open the map as root before dropping "
                f"privileges, or run `chmod o+x {host.BPF_FILE_SYSTEM}` as root"
            ) from error
        except OSError as error:
            raise CongestionError(f"{path} cannot be opened ({error})") from error
        try:
            self._check_layout()
        except BaseException:
            self.close()
            raise

    def _check_layout(self) -> None:
        expected = (syscalls.BPF_MAP_TYPE_SK_STORAGE, 4, _LAYOUT.size)
        try:
            found = syscalls.map_type_and_sizes(self._descriptor)
        except PermissionError:
            return  # before Linux 5.19 an unprivileged process may not ask
        if found != expected:
            raise CongestionError(
                "another version of this package is loaded: "
                "run `python -m tuning unload` and `python -m tuning load` as root"
            )

    def fileno(self) -> int:
        """Give the descriptor. Raises CongestionError once closed."""
        if self._descriptor < 0:
            raise CongestionError("the parameter map is closed")
        return self._descriptor

    def set(self, sock: socket.socket, parameters: Parameters) -> None:
        """Tell a socket's algorithm its parameters; before connect or listen. Raises
        CongestionError."""
        try:
            syscalls.update(self.fileno(), sock.fileno(), parameters.pack())
        except PermissionError as error:
            raise CongestionError(
                "this kernel lets only root set parameters: use Linux 5.19 or later, or "
                "run `sysctl kernel.unprivileged_bpf_disabled=0` as root"
            ) from error
        except OSError as error:
            raise CongestionError(f"the socket takes no parameters ({error.strerror})") from error

    def set_parameters(
        self, sock: socket.socket, name: str, parameters: Iterable[tuple[str, float]]
    ) -> None:
        """Tell a socket's algorithm what fields of `Parameters` are to be; others stay.

        A `tuning.sockopts.ParameterSetter`. Raises TuningError.
        """
        values: dict[str, Any] = {}
        for field, value in parameters:
            if field not in _FIELDS:
                raise CongestionError(
                    f"no algorithm has a parameter {field}: there are {', '.join(_FIELDS)}"
                )
            if field in _WHOLE and float(value).is_integer():
                value = int(value)
            values[field] = bool(value) if field == "ssthresh_from_rate" else value
        asked = Parameters(**values)
        _check_parameters(name, asked)
        self.set(sock, replace(self.get(sock) or Parameters(), **values))

    def set_initial_window(self, sock: socket.socket, segments: int) -> None:
        """Tell a socket its initial window; its other parameters stay.

        A `tuning.sockopts.InitialWindowSetter`. Raises TuningError.
        """
        name = chosen(sock)
        if name not in ALGORITHMS:
            raise CongestionError(
                f"{name} takes no initial window: choose one of {', '.join(ALGORITHMS)}"
            )
        told = self.get(sock) or Parameters()
        self.set(sock, replace(told, initial_window_segments=segments))

    def get(self, sock: socket.socket) -> Parameters | None:
        """Give what a socket was told or inherited, None if nothing. Raises CongestionError."""
        try:
            value = syscalls.lookup(self.fileno(), sock.fileno(), _LAYOUT.size)
        except OSError as error:
            raise CongestionError(f"the socket's parameters: {error.strerror}") from error
        return None if value is None else Parameters.unpack(value)

    def forget(self, sock: socket.socket) -> None:
        """Take a socket's parameters away. Raises CongestionError."""
        try:
            syscalls.delete(self.fileno(), sock.fileno())
        except OSError as error:
            raise CongestionError(f"the socket's parameters: {error.strerror}") from error

    def close(self) -> None:
        """Close the descriptor; the sockets keep what they were told."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def allowed() -> tuple[str, ...]:
    """Name the algorithms that a process without CAP_NET_ADMIN may choose. Raises
    CongestionError."""
    return host.words("tcp_allowed_congestion_control")


def chosen(sock: socket.socket) -> str:
    """Name the algorithm of a socket."""
    value = sock.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _NAME_BYTES)
    return value.split(b"\0", 1)[0].decode()


def choose(
    sock: socket.socket,
    name: str,
    parameters: Parameters | None = None,
    parameter_map: ParameterMap | None = None,
) -> None:
    """Choose a socket's algorithm, and tell it its parameters; before connect or listen.

    Without `parameter_map` the map is opened for this call. Raises CongestionError.
    """
    if parameters is not None and not parameters.told():
        parameters = None
    if parameters is not None:
        _check_parameters(name, parameters)
    try:
        # A name of 16 bytes or more would be cut silently.
        if not 0 < len(name.encode()) < _NAME_BYTES:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, name.encode())
    except FileNotFoundError:
        raise _unknown(name) from None
    except PermissionError as error:
        raise CongestionError(
            f"{name} may be chosen by root only: add it to net.ipv4.tcp_allowed_congestion_control"
        ) from error
    except OSError as error:
        raise CongestionError(f"{name} was refused ({error.strerror})") from error
    if parameters is None:
        return
    if parameter_map is not None:
        parameter_map.set(sock, parameters)
    else:
        with ParameterMap() as opened:
            opened.set(sock, parameters)


def _unknown(name: str) -> CongestionError:
    if name in ALGORITHMS:
        return CongestionError(f"{name} is not loaded: run `python -m tuning load` as root")
    there = ", ".join(sorted({*available(), *ALGORITHMS}))
    return CongestionError(f"there is no congestion control {name!r}: choose from {there}")


def _check_parameters(name: str, parameters: Parameters) -> None:
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        if name in available():
            raise CongestionError(
                f"{name} takes no parameters: choose one of {', '.join(ALGORITHMS)}"
            )
        raise _unknown(name)
    for field in sorted(parameters.told() - _COMMON_PARAMETERS - algorithm.own_parameters):
        raise CongestionError(f"{name} has no parameter {field}")


def _check_integer(name: str, value: int | None, low: int, high: int, unit: str) -> None:
    if value is not None:
        check_integer(name, value, low, high, unit)
