"""The initial window of a socket by whichever means there is: a BPF program, or else a route."""

from __future__ import annotations

import socket

from .congestion import ALGORITHMS, ParameterMap, chosen
from .errors import TuningError
from .readback import LOAD, NO_INITIAL_WINDOW
from .routes import RouteWindow, may_change_routes


class InitialWindow:
    """Grants sockets their initial window, for one transfer with one host.

    An algorithm of this package is told it through `parameters`; any other takes it from the route
    to `host`, if this process may change that. Where both are None nothing is granted. What was
    changed is put back by `close`.
    """

    def __init__(
        self, parameters: ParameterMap | None, host: str | None, *, is_trial: bool = False
    ) -> None:
        """Choose the means; is_trial: nothing but the socket itself is changed."""
        self._parameters = parameters
        self._route = RouteWindow(host) if host is not None else None
        self._is_trial = is_trial

    def set(self, sock: socket.socket, segments: int) -> None:
        """Give a socket, before connect or listen, its initial window (`InitialWindowSetter`).

        Raises TuningError.
        """
        is_ours = chosen(sock) in ALGORITHMS
        by_route = self._may_use_route and not is_ours
        if by_route:
            self._set_route(segments)
        elif self._parameters is not None:
            self._parameters.set_initial_window(sock, segments)
        else:
            # An algorithm of ours begins with its own window, whatever the route says.
            raise TuningError(NO_INITIAL_WINDOW)

    def _set_route(self, segments: int) -> None:
        if self._route is None:
            return
        try:
            if self._is_trial:
                self._route.check(segments)
            else:
                self._route.set(segments)
        except TuningError as error:
            instead = f"choose one of {', '.join(ALGORITHMS)}"
            if self._parameters is None:
                instead = LOAD
            raise TuningError(f"{error}: {instead}") from error

    @property
    def _may_use_route(self) -> bool:
        # In a trial the host may not be known yet: then a route may do it.
        return may_change_routes() and (self._route is not None or self._is_trial)

    def close(self) -> None:
        """Put the route back. May be called again. Raises TuningError, OSError."""
        if self._route is not None:
            self._route.close()
