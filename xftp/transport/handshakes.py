"""The TLS handshakes of connections that were accepted: all at once, and none for ever."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from .connection import reset_socket
from .sockets import Tuning
from .tls import DataTls, TlsConnection, TlsFault

logger = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 30.0
"""How long a handshake may take: on a lossy satellite path a segment of it may be lost twice."""

SPARE_HANDSHAKES = 8
"""Handshakes at a time beyond the connections that may come; then the oldest is given up."""

MOST_FAILURES = 64
"""Handshakes that may fail in a row before no further one is begun: a signature costs 1 ms."""


class Handshakes:
    """Makes protected connections of accepted sockets; which are closed if that fails.

    most: connections that may come; came: is given each one, failed: why one did not become one.
    """

    def __init__(
        self,
        tls: DataTls,
        tuning: Tuning | None,
        most: int,
        came: Callable[[TlsConnection], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._tls = tls
        self._tuning = tuning
        self._most = most + SPARE_HANDSHAKES
        self._came = came
        self._failed = failed
        self._failures = 0
        self._under_way: dict[asyncio.Task[TlsConnection], socket.socket] = {}

    def begin(self, sock: socket.socket) -> None:
        """Agree on the keys over a non-blocking socket, within HANDSHAKE_TIMEOUT_S."""
        if self._failures >= MOST_FAILURES:
            sock.close()
            return
        if len(self._under_way) >= self._most:
            next(iter(self._under_way)).cancel()
        task = asyncio.create_task(self._protect(sock))
        self._under_way[task] = sock
        task.add_done_callback(self._ended)

    def stop(self) -> None:
        """Give up all that are under way."""
        for task in self._under_way:
            task.cancel()

    async def _protect(self, sock: socket.socket) -> TlsConnection:
        async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
            return await TlsConnection.agreed(sock, 0, self._tls, self._tuning)

    def _ended(self, task: asyncio.Task[TlsConnection]) -> None:
        sock = self._under_way.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            self._failures = 0
            self._came(task.result())
            return
        reset_socket(sock)
        self._failures += 1
        if isinstance(error, TimeoutError):
            error = TlsFault(errno.ETIMEDOUT, "the TLS handshake took too long")
        if isinstance(error, OSError):
            level = logging.WARNING if isinstance(error, TlsFault) else logging.INFO
            logger.log(level, "no TLS on a data connection: %s", error.strerror or error)
            self._failed(error)
        elif error is not None:
            raise error
