"""The package `tuning`, wired to the sockets of client and daemon.

The rest of xftp knows sockets' settings only as a value with `apply`; here they are made.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import tuning
from tuning import congestion
from tuning.congestion import ALGORITHMS, ParameterMap
from tuning.errors import TuningError
from tuning.sockopts import (
    MAX_BUFFER_BYTES,
    MAX_INITIAL_WINDOW_SEGMENTS,
    MAX_PACING_RATE_BPS,
    MIN_BUFFER_BYTES,
    MIN_PACING_RATE_BPS,
    SocketTuning,
)
from xftp.client.options import Direction
from xftp.errors import TuningRefused
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

RENTED = "xftp_rented"
"""The algorithm for a link whose rate is known; chosen by itself where it is loaded."""

FALLBACK_RTT_S = 0.1
"""Where the kernel cannot tell the round-trip time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a user asks of data sockets; None: nothing."""

    profile: str | None = None
    """Name of a link (tuning.profiles)."""

    rate_bps: float | None = None
    """Bits per second of the path, for all connections together."""

    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    congestion: str | None = None
    initial_window_segments: int | None = None

    def socket_tuning(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> SocketTuning:
        """Make the settings of each of N sockets. Raises TuningError."""
        explicit = SocketTuning(
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
            congestion=self.congestion,
            initial_window_segments=self.initial_window_segments,
        )
        return self._of_the_link(direction, connections, rtt_s).merged(explicit)

    def _of_the_link(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> SocketTuning:
        """Make what follows from the rate and the round-trip time, if they are known."""
        measured = self.profile in (None, tuning.AUTO)
        if measured and self.rate_bps is None:
            return SocketTuning()
        if measured:
            assert self.rate_bps is not None
            profile = tuning.Profile.measured(self.rate_bps, rtt_s or FALLBACK_RTT_S)
        else:
            profile = tuning.profiles.find(self.profile or "")
        if not measured and self.rate_bps is not None:
            profile = replace(profile, down_bps=self.rate_bps, up_bps=self.rate_bps)
        made = profile.tuning(connections, direction)
        if (self.congestion or RENTED) not in _loaded():
            # Nothing here takes an initial window, and the user did not ask for one in so many
            # words: it is not worth a complaint for every transfer.
            return replace(made, initial_window_segments=None)
        return made.merged(SocketTuning(congestion=self.congestion or RENTED))


def _loaded() -> frozenset[str]:
    """Name our own algorithms that this kernel has now."""
    return frozenset(ALGORITHMS) & frozenset(congestion.available())


class ObservedTuner(tuning.Tuner):
    """Applies settings to sockets, and tells the report what they came to."""

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        """Tell what a connected socket has now."""
        try:
            got, info = tuning.granted(sock), tuning.tcp_info.tcp_info(sock)
        except OSError:  # the connection is gone; what was seen before stays
            return {}
        return {
            "congestion": got.congestion,
            "send_buffer_bytes": got.send_buffer_bytes,
            "receive_buffer_bytes": got.receive_buffer_bytes,
            "initial_window_segments": got.initial_window_segments,
            "pacing_rate_bps": got.pacing_rate_bps,
            "min_rtt_s": info.min_rtt_s if info else None,
            "delivery_rate_bps": info.delivery_rate_bps if info else None,
        }


def open_parameters() -> ParameterMap | None:
    """Open the map of per-socket parameters; None if no algorithm of ours is loaded."""
    try:
        return ParameterMap()
    except TuningError:
        return None


def tuner(settings: SocketTuning, parameters: ParameterMap | None) -> ObservedTuner:
    """Make what applies `settings` to sockets."""
    if parameters is None:
        return ObservedTuner(settings)
    return ObservedTuner(
        settings,
        set_parameters=parameters.set_parameters,
        set_initial_window=parameters.set_initial_window,
    )


# -- the client ---------------------------------------------------------------------------------


class ClientTuning:
    """Makes the settings of both sides' data sockets for the client (a TuningMaker)."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._parameters = open_parameters()

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> tuple[Tuning, MultOptions]:
        """Give the setting of each socket of this side, and what to ask of the other."""
        settings = self._wish.socket_tuning(direction, connections, rtt_s)
        rate = settings.pacing_rate_bps
        return tuner(settings, self._parameters), MultOptions(
            congestion=settings.congestion,
            initial_window_segments=settings.initial_window_segments,
            rate_bps=None if rate is None else round(rate * connections),
            send_buffer_bytes=settings.send_buffer_bytes,
            receive_buffer_bytes=settings.receive_buffer_bytes,
        )

    def check(self, connections: int, notice: Callable[[str], None], *, strict: bool) -> None:
        """Try the settings on a socket that goes nowhere, and tell what is not granted.

        Raises TuningRefused for the first difference if `strict`, or for what cannot be meant.
        """
        try:
            settings = self._wish.socket_tuning("download", connections, None)
        except TuningError as error:
            raise TuningRefused(str(error)) from error
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            probe = tuner(settings, self._parameters)
            probe.apply(sock)
        for difference in probe.differences:
            if strict:
                raise TuningRefused(str(difference))
            notice(str(difference))


# -- the daemon ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that a client may ask of the daemon's sockets."""

    algorithms: tuple[str, ...] = ()
    """Congestion-control algorithms that may be asked for; empty: all that there are."""

    buffer_bytes: int = MAX_BUFFER_BYTES
    """Send and receive buffer of one connection."""

    initial_window_segments: int = MAX_INITIAL_WINDOW_SEGMENTS
    """Initial window of one connection."""

    rate_bps: float | None = None
    """Rate of all connections of a transfer together; None: no limit."""


class DaemonTuning:
    """Decides what clients get (a Tuner of xftp.server.settings)."""

    keys = ("Congestion", "InitialWindow", "Rate", "SendBuffer", "ReceiveBuffer")

    def __init__(self, defaults: Wish, limits: Limits) -> None:
        """Take what holds when nothing is asked, and the limits.

        The map of parameters is opened now: afterwards the daemon may drop its privileges.
        """
        self._defaults = defaults
        self._limits = limits
        self._parameters = open_parameters()

    def grant(self, asked: MultOptions) -> MultOptions:
        """Reduce what a client asks to the limits, and to what the kernel gives."""
        limits = self._limits
        granted = MultOptions(
            congestion=asked.congestion if self._may_use(asked.congestion) else None,
            initial_window_segments=_at_most(
                asked.initial_window_segments, limits.initial_window_segments
            ),
            rate_bps=_at_most(asked.rate_bps, int(limits.rate_bps) if limits.rate_bps else None),
            send_buffer_bytes=_at_most(asked.send_buffer_bytes, limits.buffer_bytes),
            receive_buffer_bytes=_at_most(asked.receive_buffer_bytes, limits.buffer_bytes),
        )
        return self._as_the_kernel_gives(granted)

    def tuning(self, granted: MultOptions, connections: int) -> Tuning:
        """Make the setting of each of N data sockets."""
        return tuner(self._settings(granted, connections), self._parameters)

    def _may_use(self, name: str | None) -> bool:
        allowed = self._limits.algorithms or congestion.available()
        return name is None or name in allowed

    def _settings(self, granted: MultOptions, connections: int) -> SocketTuning:
        usual = self._defaults.socket_tuning("download", connections, None)
        rate = granted.rate_bps
        return usual.merged(
            SocketTuning(
                congestion=granted.congestion,
                initial_window_segments=granted.initial_window_segments,
                pacing_rate_bps=None if rate is None else _pacing(rate / connections),
                send_buffer_bytes=_at_least(granted.send_buffer_bytes, MIN_BUFFER_BYTES),
                receive_buffer_bytes=_at_least(granted.receive_buffer_bytes, MIN_BUFFER_BYTES),
            )
        )

    def _as_the_kernel_gives(self, granted: MultOptions) -> MultOptions:
        """Try it on a socket that goes nowhere, and take back what is not given."""
        probe = tuner(self._settings(granted, 1), self._parameters)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            probe.apply(sock)
        for difference in probe.differences:
            if difference.option == "pacing_rate_bps":
                granted = replace(granted, rate_bps=None)
            elif getattr(granted, difference.option, None) is not None:
                has = difference.granted if difference.option.endswith("_bytes") else None
                granted = replace(granted, **{difference.option: cast(Any, has)})
        return granted


def _pacing(rate_bps: float) -> float:
    """Keep a rate within what a socket can be told."""
    return min(max(rate_bps, MIN_PACING_RATE_BPS), MAX_PACING_RATE_BPS)


def _at_most(asked: int | None, limit: int | None) -> int | None:
    return asked if asked is None or limit is None else min(asked, limit)


def _at_least(asked: int | None, least: int) -> int | None:
    return asked if asked is None else max(asked, least)
