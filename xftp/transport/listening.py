"""A listener: bound to a port that is free, and read without keeping others waiting."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sequence

from xftp.protocol.addresses import Endpoint

from .sockets import Tuning, family_of, new_socket, plain_address, socket_address

logger = logging.getLogger(__name__)

_ACCEPT_AGAIN_S = 0.1
_ACCEPTS_PER_TURN = 64

Arrived = Callable[[socket.socket, str], None]
"""Takes an accepted socket, and the plain address that it comes from."""


class Listener:
    """Accepts connections in the event loop until it is closed."""

    def __init__(self, sock: socket.socket, arrived: Arrived) -> None:
        """Begin to accept on a socket that listens, which is this one's from now on."""
        self._sock = sock
        self._arrived = arrived
        self._again: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._watch()

    @property
    def endpoint(self) -> Endpoint:
        """The address where it listens."""
        host, port, *_ = self._sock.getsockname()
        return Endpoint(plain_address(host), port)

    def turn_away(self, limit: int) -> None:
        """Close up to `limit` that wait politely: with the listener they would be reset."""
        with contextlib.suppress(OSError):
            for _ in range(limit):
                self._sock.accept()[0].close()

    def close(self) -> None:
        """Listen no more; may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._sock.fileno())
        if self._again is not None:
            self._again.cancel()
        self._sock.close()  # resets what waits to be accepted

    def _watch(self) -> None:
        self._loop.add_reader(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):  # others have their turn, however many come
            if self._is_closed:
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of descriptors: the connection stays in the backlog until some are free.
                logger.warning("cannot accept a data connection: %s", error)
                self._loop.remove_reader(self._sock.fileno())
                self._again = self._loop.call_later(_ACCEPT_AGAIN_S, self._watch)
                return
            self._arrived(sock, plain_address(address[0]))


def listen(
    host: str, backlog: int, tuning: Tuning | None, ports: Sequence[int] = ()
) -> socket.socket:
    """Listen on the first free port of `ports`, or on any free one. Raises OSError."""
    for port in ports or (0,):
        sock = new_socket(family_of(host), tuning)
        try:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # A port of a range is used again while its last connections are in TIME_WAIT.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(socket_address(host, port))
            sock.listen(max(backlog, 16))
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no free port in the range")
