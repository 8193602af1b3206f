"""The package `tuning`, wired to the sockets of client and daemon.

The rest of xftp knows sockets' settings only as a value with `apply`; here they are made.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, cast

from tuning import congestion, profiles
from tuning.congestion import ALGORITHMS
from tuning.errors import TuningError
from tuning.planning import MAX_CONNECTIONS
from tuning.sockopts import (
    MAX_BUFFER_BYTES,
    MAX_INITIAL_WINDOW_SEGMENTS,
    MAX_PACING_RATE_BPS,
    MIN_BUFFER_BYTES,
    MIN_PACING_RATE_BPS,
    Difference,
    SocketTuning,
)
from xftp.client.options import Direction
from xftp.errors import TuningRefused
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

from .observed import CurrentParameters, ObservedTuner, tuner

RENTED = "xftp_rented"
"""The algorithm for a link whose rate is known; chosen by itself where it is loaded. It starts at
rate x RTT of its own handshake, so it is told no initial window."""


SHORT_RTT_S = 0.02
"""Below this round-trip time buffers are left to the system, which grows them soon enough."""

_AUTO_NEEDS_RATE = "the profile auto needs the rate of the link, as --rate 50mbit"


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

    def explicit(self) -> SocketTuning:
        """Make the settings that were asked for in so many words. Raises TuningError."""
        return SocketTuning(
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
            congestion=self.congestion,
            initial_window_segments=self.initial_window_segments,
        )

    def socket_tuning(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> SocketTuning:
        """Make the settings of each of N sockets of this machine. Raises TuningError."""
        made = self._of_the_link(direction, connections, rtt_s)
        name = self.congestion or (RENTED if made.pacing_rate_bps is not None else None)
        if name == RENTED or name not in loaded():
            # What takes no initial window is not worth a complaint for every transfer.
            made = replace(made, initial_window_segments=None)
        if name == RENTED and name in loaded():
            made = replace(made, congestion=RENTED)
        return made.merged(self.explicit())

    def request(self, direction: Direction, connections: int, rtt_s: float | None) -> MultOptions:
        """Make what is asked of the other side, which has algorithms of its own.

        Raises TuningError.
        """
        link = self._of_the_link(direction, connections, rtt_s)
        if self.congestion in (None, RENTED) or self.congestion not in ALGORITHMS:
            link = replace(link, initial_window_segments=None)
        made = link.merged(self.explicit())
        rate_bps = made.pacing_rate_bps
        return MultOptions(
            congestion=made.congestion,
            initial_window_segments=made.initial_window_segments,
            rate_bps=None if rate_bps is None else round(rate_bps * connections),
            send_buffer_bytes=made.send_buffer_bytes,
            receive_buffer_bytes=made.receive_buffer_bytes,
        )

    def _of_the_link(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> SocketTuning:
        """Make what follows from the rate and the round-trip time, as far as they are known."""
        connections = min(connections, MAX_CONNECTIONS)
        rate_bps = self.rate_bps
        if rate_bps is not None:
            rate_bps = max(rate_bps, MIN_PACING_RATE_BPS * connections)
        if self.profile not in (None, profiles.AUTO):
            profile = profiles.find(self.profile or "")
            if rate_bps is not None:
                profile = replace(profile, down_bps=rate_bps, up_bps=rate_bps, rated=True)
        elif rate_bps is None:
            return SocketTuning()
        elif not rtt_s or rtt_s < SHORT_RTT_S:
            # Buffers that are too small cost more than those that grow by themselves.
            return SocketTuning(pacing_rate_bps=_pacing(rate_bps / connections))
        else:
            profile = profiles.Profile.measured(rate_bps, rtt_s)
        return profile.tuning(connections, direction)


def available() -> frozenset[str]:
    """Name the algorithms that this kernel has now; none where that cannot be told."""
    try:
        return frozenset(congestion.available())
    except TuningError:
        return frozenset()


def loaded() -> frozenset[str]:
    """Name our own algorithms that this kernel has now."""
    return frozenset(ALGORITHMS) & available()


def _refused(probe: ObservedTuner) -> tuple[Difference, ...]:
    """Try settings on a socket that goes nowhere; give what is not granted."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        probe.apply(sock)
    return probe.differences


# -- the client ---------------------------------------------------------------------------------


class ClientTuning:
    """Makes the settings of both sides' data sockets for the client (a TuningMaker).

    notice: told once of each setting that this machine does not grant; strict: TuningRefused is
    raised instead; remembers: whether the rate of a path may be known from earlier transfers.
    """

    def __init__(
        self,
        wish: Wish,
        notice: Callable[[str], None] | None = None,
        *,
        strict: bool = False,
        remembers: bool = False,
    ) -> None:
        self._wish = wish
        self._notice = notice
        self._strict = strict
        self._remembers = remembers
        self._told: set[str] = set()
        self._parameters = CurrentParameters()

    def __call__(
        self,
        direction: Direction,
        connections: int,
        rtt_s: float | None,
        peer_host: str | None = None,
    ) -> tuple[Tuning, MultOptions]:
        """Give the setting of each socket of this side, and what to ask of the other.

        Raises TuningRefused.
        """
        self._tell_if_rate_is_missing()
        return self.make(direction, connections, rtt_s, peer_host)

    def make(
        self,
        direction: Direction,
        connections: int,
        rtt_s: float | None,
        peer_host: str | None = None,
    ) -> tuple[Tuning, MultOptions]:
        """Do the same where a rate that the user did not tell is supposed besides."""
        try:
            settings = self._wish.socket_tuning(direction, connections, rtt_s)
            asked = self._wish.request(direction, connections, rtt_s)
        except TuningError as error:
            raise TuningRefused(str(error)) from error
        self._try(settings, peer_host)
        return tuner(settings, self._parameters.get(), peer_host), asked

    def check(self) -> None:
        """Try what does not depend on the path, before anything is connected.

        Raises TuningRefused.
        """
        if not self._remembers:
            self._tell_if_rate_is_missing()
        try:
            self._try(self._wish.explicit())
        except TuningError as error:
            raise TuningRefused(str(error)) from error

    def _tell_if_rate_is_missing(self) -> None:
        if self._wish.profile == profiles.AUTO and self._wish.rate_bps is None:
            also = "; none is remembered of this path" if self._remembers else ""
            self._tell(f"{_AUTO_NEEDS_RATE}{also}")

    def _try(self, settings: SocketTuning, peer_host: str | None = None) -> None:
        """Tell what a socket that goes nowhere is not granted."""
        if settings == SocketTuning():
            return
        probe = tuner(settings, self._parameters.get(), peer_host, is_trial=True)
        for difference in _refused(probe):
            self._tell(str(difference))

    def _tell(self, sentence: str) -> None:
        if self._strict:
            raise TuningRefused(sentence)
        if self._notice is not None and sentence not in self._told:
            self._told.add(sentence)
            self._notice(sentence)


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

        The map of parameters is opened now, and what connections will need is loaded: afterwards
        the daemon may drop its privileges.
        """
        for module in ("tuning.initial_window", "tuning.tcp_info"):
            import_module(module)
        self._defaults = defaults
        self._limits = limits
        self._parameters = CurrentParameters()

    def problems(self) -> tuple[str, ...]:
        """Tell what of the operator's own settings this machine does not grant."""
        probe = tuner(self._settings(MultOptions(), 1), self._parameters.get(), is_trial=True)
        found = [str(difference) for difference in _refused(probe)]
        if self._defaults.profile == profiles.AUTO and self._defaults.rate_bps is None:
            found.append(_AUTO_NEEDS_RATE)
        missing = sorted(set(self._limits.algorithms) - available())
        if missing:
            found.append(f"this kernel has no congestion control {', '.join(missing)} to allow")
        return tuple(found)

    def grant(self, asked: MultOptions, peer_host: str | None = None) -> MultOptions:
        """Bring what a client asks within the limits, and to what the kernel gives."""
        limits = self._limits
        granted = MultOptions(
            congestion=self._algorithm(asked),
            initial_window_segments=_at_most(
                asked.initial_window_segments, limits.initial_window_segments
            ),
            rate_bps=self._rate(asked),
            send_buffer_bytes=self._buffer(asked.send_buffer_bytes),
            receive_buffer_bytes=self._buffer(asked.receive_buffer_bytes),
        )
        return self._as_the_kernel_gives(granted, peer_host)

    def tuning(
        self, granted: MultOptions, connections: int, peer_host: str | None = None
    ) -> Tuning:
        """Make the setting of each of N data sockets to a client."""
        return tuner(self._settings(granted, connections), self._parameters.get(), peer_host)

    def _algorithm(self, asked: MultOptions) -> str | None:
        """Choose what was asked if it is allowed, else what suits a link of known rate."""
        if asked.congestion is not None and self._may_use(asked.congestion):
            return asked.congestion
        rate_decides = asked.rate_bps is not None and self._defaults.congestion is None
        return RENTED if rate_decides and RENTED in loaded() and self._may_use(RENTED) else None

    def _may_use(self, name: str) -> bool:
        return name in (self._limits.algorithms or available())

    def _rate(self, asked: MultOptions) -> int | None:
        """Reduce a rate to the limit, and raise it to what each socket can be told."""
        if asked.rate_bps is None:
            return None
        rate_bps = min(asked.rate_bps, self._limits.rate_bps or asked.rate_bps)
        connections = min(asked.connections or 1, MAX_CONNECTIONS)
        return round(_pacing(rate_bps / connections) * connections)

    def _buffer(self, asked: int | None) -> int | None:
        return (
            None if asked is None else max(min(asked, self._limits.buffer_bytes), MIN_BUFFER_BYTES)
        )

    def _settings(self, granted: MultOptions, connections: int) -> SocketTuning:
        usual = self._defaults.socket_tuning("download", connections, None)
        rate = granted.rate_bps
        return usual.merged(
            SocketTuning(
                congestion=granted.congestion,
                initial_window_segments=granted.initial_window_segments,
                pacing_rate_bps=None if rate is None else _pacing(rate / connections),
                send_buffer_bytes=granted.send_buffer_bytes,
                receive_buffer_bytes=granted.receive_buffer_bytes,
            )
        )

    def _as_the_kernel_gives(self, granted: MultOptions, peer_host: str | None) -> MultOptions:
        """Try it on a socket that goes nowhere, and take back what is not given."""
        settings = self._settings(granted, 1)
        probe = tuner(settings, self._parameters.get(), peer_host, is_trial=True)
        for difference in _refused(probe):
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
