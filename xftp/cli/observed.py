"""Settings of sockets with their means: what applies them, and what tells what came of it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuning.bpf import host
from tuning.congestion import ParameterMap
from tuning.errors import TuningError
from tuning.sockopts import SocketTuning, Tuner, granted

if TYPE_CHECKING:
    from tuning.initial_window import InitialWindow

logger = logging.getLogger(__name__)


class ObservedTuner(Tuner):
    """Applies settings to sockets, and tells the report what they came to.

    initial_window: how sockets get theirs; None: not at all.
    """

    def __init__(
        self,
        settings: SocketTuning,
        parameters: ParameterMap | None = None,
        initial_window: InitialWindow | None = None,
    ) -> None:
        super().__init__(
            settings,
            set_parameters=parameters.set_parameters if parameters is not None else None,
            set_initial_window=initial_window.set if initial_window is not None else None,
        )
        self._initial_window = initial_window

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        """Tell what a connected socket has now."""
        from tuning.tcp_info import tcp_info  # long to load, and not needed to connect

        try:
            got, info = granted(sock), tcp_info(sock)
        except OSError:  # the connection is gone; what was seen before stays
            return {}
        return {
            "congestion": got.congestion,
            "send_buffer_bytes": got.send_buffer_bytes,
            "receive_buffer_bytes": got.receive_buffer_bytes,
            "initial_window_segments": got.initial_window_segments,
            "pacing_rate_bps": got.pacing_rate_bps,
            "min_rtt_s": info.min_rtt_s if info else None,
            "delivery_rate_bps": info.delivery_rate_bps or None if info else None,
        }

    def close(self) -> None:
        """Put back the route that gave the initial window, if there was one."""
        if self._initial_window is None:
            return
        try:
            self._initial_window.close()
        except (OSError, TuningError) as error:
            logger.warning("%s", error)


class CurrentParameters:
    """The map of per-socket parameters of the algorithms that are loaded now.

    Opened at once, as the process may drop its privileges later; opened again when they have been
    loaded anew, since the old map then tells nobody anything.
    """

    def __init__(self) -> None:
        self._map: ParameterMap | None = None
        self._pin: int | None = None
        self.get()

    def get(self) -> ParameterMap | None:
        """Give the map; None if no algorithm of ours was ever loaded."""
        try:
            pin = host.PARAMETERS_PIN.stat().st_ino
            if pin != self._pin:
                # Sockets that are just being set may use the old map: it is left open.
                self._map, self._pin = ParameterMap(), pin
        except (OSError, TuningError):
            pass
        return self._map


def tuner(
    settings: SocketTuning,
    parameters: ParameterMap | None,
    peer_host: str | None = None,
    *,
    is_trial: bool = False,
) -> ObservedTuner:
    """Make what applies `settings` to the sockets of one transfer with `peer_host`.

    is_trial: for sockets that go nowhere; nothing else of this machine is changed.
    """
    window = None
    if settings.initial_window_segments is not None:
        from tuning.initial_window import InitialWindow  # seldom asked for

        window = InitialWindow(parameters, peer_host, is_trial=is_trial)
    return ObservedTuner(settings, parameters, window)
