"""The kernel's switches that recreate an old TCP in a network namespace.

Sysctls of the namespace say how its TCP behaves; attributes of its routes say what they cannot:
initial windows, the advertised window, the segment size, the least retransmission time-out and
whether ACKs are delayed. What no switch reaches is told by `deviations`, for the results.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pyroute2 import IPRoute

from mininet_topos.errors import TopologyError
from mininet_topos.host_settings import allowed_congestion_control, available_congestion_control
from mininet_topos.namespaces import netlink, read_sysctls, write_sysctls

MAIN_TABLE = 254  # RT_TABLE_MAIN of linux/rtnetlink.h
_RTAX_RTO_MIN = 13  # the same

_SYSCTLS = {
    "sack": "tcp_sack",
    "dsack": "tcp_dsack",
    "timestamps": "tcp_timestamps",
    "window_scaling": "tcp_window_scaling",
    "ecn": "tcp_ecn",
    "recovery": "tcp_recovery",
    "early_retrans": "tcp_early_retrans",
    "frto": "tcp_frto",
    "no_metrics_save": "tcp_no_metrics_save",
    "slow_start_after_idle": "tcp_slow_start_after_idle",
    "moderate_rcvbuf": "tcp_moderate_rcvbuf",
    "adv_win_scale": "tcp_adv_win_scale",
    "reordering": "tcp_reordering",
    "autocorking": "tcp_autocorking",
    "limit_output_bytes": "tcp_limit_output_bytes",
    "receive_buffer_bytes": "tcp_rmem",
    "send_buffer_bytes": "tcp_wmem",
    "congestion_control": "tcp_congestion_control",
}
"""Field → setting of net.ipv4."""

_COUNTS = ("initial_window_segments", "initial_receive_window_segments", "mss_bytes")
_LEAST_MSS_BYTES = 48  # TCP_MIN_SND_MSS of the kernel
_MOST_SEGMENTS = 65535
_LEAST_BUFFER_BYTES = 4096
_USUAL_BUFFER_BYTES = 131072  # the kernel's default
_MOST_WINDOW_BYTES = 1 << 30  # RFC 7323: 65535 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings:
    """How TCP behaves in a namespace; None leaves a thing as the kernel has it."""

    sack: bool | None = None
    """Selective acknowledgments (RFC 2018). Without them Linux is NewReno (RFC 6582)."""

    dsack: bool | None = None
    """Reports of duplicates (RFC 2883)."""

    timestamps: bool | None = None
    """RFC 7323; costs 12 bytes of every segment."""

    window_scaling: bool | None = None
    """RFC 7323; without it no window is above 65,535 bytes."""

    ecn: int | None = None
    """0: never; 1: asked for; 2: when asked."""

    recovery: int | None = None
    """Bits of RACK (RFC 8985): 1 on, 2 static reordering window, 4 no dupthresh."""

    early_retrans: int | None = None
    """Tail loss probes: 0 off, 3 on."""

    frto: int | None = None
    """Detection of spurious time-outs (RFC 5682): 0 off, 2 on."""

    no_metrics_save: bool | None = None
    """True: a connection learns nothing from those before it, such as ssthresh."""

    slow_start_after_idle: bool | None = None
    """RFC 5681 section 4.1."""

    moderate_rcvbuf: bool | None = None
    """Receive buffers that grow by themselves."""

    adv_win_scale: int | None = None
    """What of a receive buffer is window; kernels of 2023 and later find it out themselves."""

    reordering: int | None = None
    """Duplicate ACKs that mean loss; RFC 5681: 3."""

    autocorking: bool | None = None
    """Small writes wait for the ones before them to leave."""

    limit_output_bytes: int | None = None
    """What one socket may have in the queues below TCP."""

    receive_buffer_bytes: tuple[int, int, int] | None = None
    """Least, default, greatest."""

    send_buffer_bytes: tuple[int, int, int] | None = None
    """Least, default, greatest."""

    congestion_control: str | None = None
    """What sockets use that choose nothing themselves."""

    initial_window_segments: int | None = None
    """Segments before the first ACK; Linux: 10. BPF algorithms may set their own afterwards."""

    initial_receive_window_segments: int | None = None
    """Of mss_bytes each: what a receiver offers at first."""

    window_bytes: int | None = None
    """The largest window that a receiver advertises. Exact where programs set no SO_RCVBUF; the
    receive buffer is then made large enough, and does not grow."""

    mss_bytes: int | None = None
    """The largest segment that a receiver accepts, TCP options included."""

    rto_min_s: float | None = None
    """The least retransmission time-out; Linux: 0.2 s, RFC 6298: 1 s."""

    quick_ack: bool | None = None
    """True: an ACK for every segment. Otherwise Linux delays them as it thinks best."""

    notes: tuple[str, ...] = ()
    """More deviations that whoever chose the settings knows of."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST_SEGMENTS:
                raise TopologyError(f"{name} is {value}: 1 to {_MOST_SEGMENTS} can be")
        if self.mss_bytes is not None and self.mss_bytes < _LEAST_MSS_BYTES:
            raise TopologyError(f"segments of {self.mss_bytes} bytes are below {_LEAST_MSS_BYTES}")
        if self.window_bytes is not None and not 1 <= self.window_bytes <= _MOST_WINDOW_BYTES:
            raise TopologyError(f"TCP has no window of {self.window_bytes} bytes")
        if self.rto_min_s is not None and not 0 < self.rto_min_s <= 120:  # TCP_RTO_MAX
            raise TopologyError(f"a time-out of at least {self.rto_min_s} s is not within 120 s")
        if self.window_bytes is not None and self.moderate_rcvbuf:
            raise TopologyError("a receive buffer that grows by itself has no largest window")
        for name in ("receive_buffer_bytes", "send_buffer_bytes"):
            sizes = getattr(self, name)
            if sizes is not None and not (len(sizes) == 3 and 0 < sizes[0] <= sizes[1] <= sizes[2]):
                raise TopologyError(f"{name} is {sizes}: least, default, greatest are needed")

    def sysctls(self) -> dict[str, str]:
        """Give the settings of the namespace, congestion control last."""
        values = {name: getattr(self, name) for name in _SYSCTLS}
        if self.window_bytes is not None:
            # A buffer that grows would raise the window's limit, and one that is small lower it.
            values["moderate_rcvbuf"] = False
            if self.receive_buffer_bytes is None:
                enough = max(_USUAL_BUFFER_BYTES, 4 * self.window_bytes)
                values["receive_buffer_bytes"] = (_LEAST_BUFFER_BYTES, enough, enough)
        return {
            f"net.ipv4.{_SYSCTLS[name]}": _text(value)
            for name, value in values.items()
            if value is not None
        }

    def route_metrics(self) -> dict[str, int]:
        """Give the attributes of routes: RTAX_* of linux/rtnetlink.h, in lower case."""
        metrics: dict[str, int | None] = {
            "initcwnd": self.initial_window_segments,
            "initrwnd": self.initial_receive_window_segments,
            "window": self.window_bytes,
            "advmss": self.mss_bytes,
            "rto_min": None if self.rto_min_s is None else round(self.rto_min_s * 1000),
            "quickack": None if self.quick_ack is None else int(self.quick_ack),
        }
        if self.rto_min_s is not None:
            metrics["lock"] = 1 << _RTAX_RTO_MIN  # The kernel minds it only where it is locked.
        return {name: value for name, value in metrics.items() if value is not None}

    def apply(self, pid: int) -> None:
        """Set everything in a process's network namespace, whose routes are there already.

        Raises TopologyError for what this kernel does not accept.
        """
        sysctls = self.sysctls()
        with _choosable(self.congestion_control):
            write_sysctls(pid, sysctls)
        told = read_sysctls(pid, tuple(sysctls))
        for name, value in sysctls.items():
            if told.get(name) != value:
                raise TopologyError(f"{name} is {told.get(name)!r} and not {value!r}, as asked for")
        if metrics := self.route_metrics():
            with netlink(pid, "the attributes of the routes") as kernel:
                set_route_metrics(kernel, metrics)

    def deviations(self, kernel: str | None = None) -> tuple[str, ...]:
        """Say what the switches cannot recreate of the stack asked for; kernel: as `uname -r`."""
        return (*_deviations(self, _version(kernel or platform.release())), *self.notes)

    def to_json(self) -> dict[str, Any]:
        """Give what was set, without what was left alone."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


def nineties(*, sack: bool, **changes: Any) -> TcpSettings:
    """Give a BSD stack of the 1990s: Reno's successor NewReno, or SACK.

    With SACK Linux finds losses by RACK, which waits a quarter of a round trip if fewer than
    `reordering` segments were acknowledged after a hole. Labs do not reorder, so it need not wait;
    and when its timer enters recovery, Linux 6.18 now and then does not ask a BPF algorithm for the
    threshold but takes a stale word for it, and for an ACK the window is without a bound.

    changes: fields that differ, such as window_bytes=24576 or congestion_control="xftp_reno97".
    """
    settings: dict[str, Any] = {
        "sack": sack,
        "dsack": False,
        "timestamps": False,
        "window_scaling": True,
        "ecn": 0,
        "recovery": 0,
        "early_retrans": 0,
        "frto": 0,
        "no_metrics_save": True,
        "reordering": 1 if sack else 3,
        "congestion_control": "reno",
        "initial_window_segments": 1,
        "mss_bytes": 512,
        "rto_min_s": 1.0,
    }
    return TcpSettings(**{**settings, **changes})


def set_route_metrics(kernel: IPRoute, metrics: dict[str, int]) -> None:
    """Give attributes to every unicast route of a namespace's main table.

    Raises TopologyError if the kernel does not tell them back.
    """
    wanted = {f"RTAX_{name.upper()}": value for name, value in metrics.items()}
    for route in _unicast_routes(kernel):
        kernel.route("replace", **_identity(route), metrics=metrics)
    for route in _unicast_routes(kernel):
        told = route.get_attr("RTA_METRICS")
        have = dict(told["attrs"]) if told is not None else {}
        missing = [name for name, value in wanted.items() if have.get(name) != value]
        if missing:
            raise TopologyError(f"this kernel does not take {', '.join(missing)} of a route")


def _unicast_routes(kernel: IPRoute) -> list[Any]:
    return list(kernel.get_routes(family=2, table=MAIN_TABLE, type=1))  # AF_INET, RTN_UNICAST


def _identity(route: Any) -> dict[str, Any]:
    """Give what names a route, so that replacing it changes its attributes only."""
    length = route["dst_len"]
    values = {
        "dst": f"{route.get_attr('RTA_DST')}/{length}" if length else "default",
        "oif": route.get_attr("RTA_OIF"),
        "gateway": route.get_attr("RTA_GATEWAY"),
        "prefsrc": route.get_attr("RTA_PREFSRC"),
        "priority": route.get_attr("RTA_PRIORITY"),
        "scope": route["scope"],
        "proto": route["proto"],
    }
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def _choosable(name: str | None) -> Iterator[None]:
    """Let namespaces take an algorithm as their default while the block runs.

    Raises TopologyError for one that the kernel does not have.
    """
    if name is None:
        yield
        return
    available = available_congestion_control()
    if name not in available:
        raise TopologyError(
            f"the kernel has no {name}, only {', '.join(available)}: python -m tuning load"
        )
    with allowed_congestion_control(name):
        yield


def _text(value: bool | int | str | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _version(release: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _deviations(settings: TcpSettings, kernel: tuple[int, int]) -> Iterator[str]:
    if settings.sack is False:
        yield (
            "without SACK Linux recovers as NewReno (RFC 6582): plain Reno, which leaves fast "
            "recovery at the first partial ACK, is not in the kernel"
        )
    elif settings.recovery is not None and not settings.recovery & 1 and kernel >= (6, 17):
        yield (
            "losses are found by RACK (RFC 8985): since Linux 6.17 tcp_recovery=0 does not bring "
            "back the rule of RFC 6675"
        )
        if settings.reordering == 1:
            yield (
                "a hole is a loss at the first selective acknowledgment beyond it, not at the "
                "third: where fewer come, RACK would only wait a quarter of a round trip"
            )
    if settings.sack is not None:
        yield (
            "in recovery the window shrinks by proportional rate reduction (RFC 6937), not by "
            "one half at once"
        )
    if settings.quick_ack is not True and settings.initial_window_segments is not None:
        yield (
            "the receiver acknowledges every segment at the start of a connection and after "
            "losses, and delays other ACKs by 40 to 200 ms; BSD's timer of 200 ms ran always"
        )
    if settings.congestion_control == "reno":
        yield "slow start counts the segments acknowledged and not the ACKs (RFC 3465)"
    if settings.rto_min_s is not None:
        yield (
            "the first time-out is 1 s (RFC 6298) and timers have 1 to 4 ms resolution; old stacks "
            "began with 3 s or more and had ticks of 500 ms"
        )
