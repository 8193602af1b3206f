"""Data connections that are accepted on a port of their own: from the control peer only."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Self

from xftp.errors import DataConnectionError
from xftp.protocol.addresses import Endpoint

from .accepting import AcceptingChannel
from .listening import Listener, listen
from .sockets import Tuning
from .tls import DataTls


class PassiveChannel(AcceptingChannel):
    """Listens, and accepts the connections of one peer only.

    One listener takes all N connections: the port is listed N times (one port for the firewall).
    """

    def __init__(
        self,
        listener: socket.socket,
        peer_host: str,
        expected: int | None,
        limit: int,
        tuning: Tuning | None,
        tls: DataTls | None = None,
    ) -> None:
        super().__init__(peer_host, expected, limit, tuning, tls)
        self._listener = Listener(listener, self._arrived)

    @classmethod
    def listen(
        cls,
        host: str,
        peer_host: str,
        *,
        expected: int | None = None,
        limit: int = 1,
        tuning: Tuning | None = None,
        ports: Sequence[int] = (),
        tls: DataTls | None = None,
    ) -> Self:
        """Listen on `host`, on the first of `ports` that is free, or on any free port.

        host: literal address, that of the control connection; peer_host: who may connect;
        limit: connections that are accepted at most. Raises DataConnectionError.
        """
        try:
            listener = listen(host, limit, tuning, ports)
        except OSError as error:
            if tuning is not None:
                tuning.close()
            raise DataConnectionError(f"cannot listen on {host}: {error.strerror}") from error
        return cls(listener, peer_host, expected, limit, tuning, tls)

    @property
    def endpoint(self) -> Endpoint:
        return self._listener.endpoint

    def close(self) -> None:
        if not self._closed:
            self._stop_handshakes()
            self._listener.turn_away(self.limit)  # too late to be of use
            self._listener.close()
        super().close()
