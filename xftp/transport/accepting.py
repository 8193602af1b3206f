"""Data connections that are accepted, wherever they come in: from the control peer only."""

from __future__ import annotations

import asyncio
import logging
import socket

from xftp.protocol.addresses import Endpoint

from .channels import MOST_CONNECTIONS, DataChannel
from .connection import DataConnection
from .handshakes import Handshakes
from .sockets import Tuning, plain_address
from .tls import DataTls, TlsConnection

logger = logging.getLogger(__name__)

REFUSED_S = 5.0
"""How long a connection is waited for after one that TLS refused: it may be another's, or the
peer's way to say that it cannot do better."""


class AcceptingChannel(DataChannel):
    """Takes the connections of one peer; subclasses know where they come in."""

    def __init__(
        self,
        peer_host: str,
        expected: int | None,
        limit: int,
        tuning: Tuning | None,
        tls: DataTls | None = None,
    ) -> None:
        super().__init__(expected, limit, tuning, tls)
        self._handshakes: Handshakes | None = None
        if tls is not None:
            self._handshakes = Handshakes(tls, tuning, limit, self._protected, self._refused)
        self._has_given_up = False
        self._peer_host = plain_address(peer_host)
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def endpoint(self) -> Endpoint:
        """The address to tell the peer."""
        raise NotImplementedError

    @property
    def may_bring_more(self) -> bool:
        if self._closed or self._has_given_up:
            return False
        return len(self.connections) < (self.expected or self.limit)

    def close(self) -> None:
        if not self._closed:
            self._stop_handshakes()
            for timer in self._timers:
                timer.cancel()
        super().close()

    def _stop_handshakes(self) -> None:
        """Begin and end no more of them."""
        if self._handshakes is not None:
            self._handshakes.stop()

    def _arrived(self, sock: socket.socket, host: str) -> None:
        """Take a connection from `host`, or close it: a stranger's takes no place."""
        if self._closed:
            sock.close()
        elif host != self._peer_host:
            logger.warning("refused a data connection from %s", host)
            sock.close()
        elif self._handshakes is not None:  # it takes a place once it has shown whose it is
            sock.setblocking(False)
            self._handshakes.begin(sock)
        elif self._is_full() and not self._make_room():
            sock.close()
        else:
            sock.setblocking(False)
            self._came(DataConnection(sock, 0, self._tuning))

    def _protected(self, connection: TlsConnection) -> None:
        if self._closed or (self._is_full() and not self._make_room()):
            connection.reset()
        else:
            self._came(connection)

    def _refused(self, error: OSError) -> None:
        """Note why a handshake failed. Without another connection that is the end, but not yet."""
        if len(self.failures) < self.limit:
            self.failures.append(error)
        if not self._closed and not self.connections:
            self._timers.append(self._loop.call_later(REFUSED_S, self._give_up))

    def _give_up(self) -> None:
        if not self.connections:
            self._has_given_up = True
            self._tell()

    def _is_full(self) -> bool:
        if not self.replaces:
            return len(self.connections) >= self.limit
        return self.alive >= self.limit or len(self.connections) >= MOST_CONNECTIONS
