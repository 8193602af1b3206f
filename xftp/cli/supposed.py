"""The settings of data sockets on a path whose rate is supposed from earlier transfers.

Nobody asked for them, so nothing is complained about, and nothing is set that could hold a transfer
back: of the buffers only the receiver's, and only where this machine grants it in full, as one that
is cut to a ceiling is smaller than what the system grows by itself; a rate only for an algorithm
that starts with it.
"""

from __future__ import annotations

import socket
from dataclasses import replace

from tuning.errors import TuningError
from tuning.sockopts import SocketTuning
from xftp.client.options import Direction, TuningMaker
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

from .observed import CurrentParameters, tuner
from .tuning import RENTED, Wish, loaded


class SupposedTuning:
    """Makes the settings of both sides (a TuningMaker) for a rate in bits per second."""

    def __init__(self, wish: Wish, made: TuningMaker, rate_bps: float) -> None:
        """Take what the user wishes, the maker for just that, and the rate."""
        self._wish = wish
        self._made = made
        self._supposed = replace(wish, rate_bps=rate_bps)
        self._parameters = CurrentParameters()

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None, peer_host: str
    ) -> tuple[Tuning, MultOptions]:
        """Give the setting of each socket of this side, and what to ask of the other."""
        own, asked = self._made(direction, connections, rtt_s, peer_host)
        try:
            full = self._supposed.socket_tuning(direction, connections, rtt_s)
            request = self._supposed.request(direction, connections, rtt_s)
        except TuningError:  # a rate beyond what sockets can be told: as if it were not known
            return own, asked
        if direction == "download":
            asked = replace(asked, rate_bps=request.rate_bps)
            supposed = SocketTuning(receive_buffer_bytes=full.receive_buffer_bytes)
        elif RENTED in loaded():
            supposed = SocketTuning(congestion=RENTED, pacing_rate_bps=full.pacing_rate_bps)
        else:
            return own, asked
        if not self._is_granted(supposed, peer_host):
            return own, asked
        own.close()
        explicit = self._wish.socket_tuning(direction, connections, rtt_s)
        return tuner(supposed.merged(explicit), self._parameters.get(), peer_host), asked

    def _is_granted(self, settings: SocketTuning, peer_host: str) -> bool:
        """Try settings on a socket that goes nowhere."""
        probe = tuner(settings, self._parameters.get(), peer_host, is_trial=True)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            probe.apply(sock)
        return not probe.differences


def may_suppose(wish: Wish) -> bool:
    """Tell whether a rate may be supposed: the user gave neither that nor a link, nor a window."""
    return (
        wish.rate_bps is None
        and wish.profile in (None, "auto")
        and wish.congestion is None
        and wish.initial_window_segments is None
    )
