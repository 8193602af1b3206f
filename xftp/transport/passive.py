"""Data connections that are accepted: from the control peer only, all on one port."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Sequence
from typing import Self

from xftp.errors import DataConnectionError
from xftp.protocol.addresses import Endpoint

from .channels import MOST_CONNECTIONS, DataChannel
from .connection import DataConnection
from .handshakes import Handshakes
from .sockets import Tuning, family_of, new_socket, plain_address
from .tls import DataTls, TlsConnection

logger = logging.getLogger(__name__)

REFUSED_S = 5.0
"""How long a connection is waited for after one that TLS refused: it may be another's, or the
peer's way to say that it cannot do better."""

_ACCEPT_AGAIN_S = 0.1
_ACCEPTS_PER_TURN = 64


class PassiveChannel(DataChannel):
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
        super().__init__(expected, limit, tuning, tls)
        self._handshakes: Handshakes | None = None
        if tls is not None:
            self._handshakes = Handshakes(tls, tuning, limit, self._protected, self._refused)
        self._has_given_up = False
        self._listener = listener
        self._peer_host = plain_address(peer_host)
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._watch()

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
            listener = _listen(host, limit, tuning, ports)
        except OSError as error:
            if tuning is not None:
                tuning.close()
            raise DataConnectionError(f"cannot listen on {host}: {error.strerror}") from error
        return cls(listener, peer_host, expected, limit, tuning, tls)

    @property
    def endpoint(self) -> Endpoint:
        """The address to tell the peer."""
        host, port, *_ = self._listener.getsockname()
        return Endpoint(plain_address(host), port)

    @property
    def may_bring_more(self) -> bool:
        if self._closed or self._has_given_up:
            return False
        return len(self.connections) < (self.expected or self.limit)

    def close(self) -> None:
        if not self._closed:
            self._loop.remove_reader(self._listener.fileno())
            for timer in self._timers:
                timer.cancel()
            if self._handshakes is not None:
                self._handshakes.stop()
            self._turn_away()
            self._listener.close()
        super().close()

    def _watch(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _turn_away(self) -> None:
        """Close politely what came too late to be of use: with the listener it would be reset."""
        with contextlib.suppress(OSError):
            for _ in range(self.limit):
                self._listener.accept()[0].close()

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):  # others have their turn, however many come
            if self._closed:
                return
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of descriptors: the connection stays in the backlog until some are free.
                logger.warning("cannot accept a data connection: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._timers = [self._loop.call_later(_ACCEPT_AGAIN_S, self._watch)]
                return
            self._arrived(sock, plain_address(address[0]))

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


def _listen(host: str, backlog: int, tuning: Tuning | None, ports: Sequence[int]) -> socket.socket:
    """Bind to the first free port of `ports`, or to any free one."""
    for port in ports or (0,):
        sock = new_socket(family_of(host), tuning)
        try:
            # A port of a range is used again while its last connections are in TIME_WAIT.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(max(backlog, 16))
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no free port in the passive range")
