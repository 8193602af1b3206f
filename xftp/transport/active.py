"""Data connections that are dialled, and dialled again where lost ones are replaced."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from xftp.protocol.addresses import Endpoint

from .channels import MOST_CONNECTIONS, OPEN_TIMEOUT_S, DataChannel
from .connection import DataConnection, reset_socket
from .sockets import Tuning, begin_to_connect, family_of, new_socket, socket_address
from .tls import DataTls, TlsConnection

logger = logging.getLogger(__name__)

MOST_OPENINGS = 3
"""How often all connections are dialled if each is cut before one has been made, as a handshake
of TLS may be. A peer that wants none of them does that too."""

_CUT = frozenset({errno.ECONNRESET, errno.EPIPE})


class ActiveChannel(DataChannel):
    """Dials all endpoints at once."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        local_host: str | None = None,
        tuning: Tuning | None = None,
        tls: DataTls | None = None,
        timeout_s: float = OPEN_TIMEOUT_S,
        call: bytes = b"",
    ) -> None:
        """Start to connect to every one of `endpoints`, from `local_host` if given.

        call: what each connection begins with, before anything else; a hundred bytes at most. With
        a call the peer may not have been heard of yet: what fails then is dialled once more as soon
        as `confirm` tells that it is there.
        """
        super().__init__(len(endpoints), len(endpoints), tuning, tls)
        self._endpoints = deque(endpoints)
        self._local_host = local_host
        self._call = call
        self._redial_s = 0.0
        self._openings = 1
        self._dials: set[asyncio.Task[DataConnection]] = set()
        self._early: set[asyncio.Task[DataConnection]] = set()
        self._is_confirmed = not call
        self._put_off = 0
        for endpoint in endpoints:
            self._start_dial(endpoint, 0.0, timeout_s)

    @property
    def dials(self) -> bool:
        return self.replaces

    def confirm(self) -> None:
        """Note that the peer listens, and dial anew what it was too early for."""
        self._is_confirmed = True
        put_off, self._put_off = self._put_off, 0
        for _ in range(put_off):
            self._dial_anew()

    def replenish(self, good: int) -> None:
        missing = min(self.limit - good, MOST_CONNECTIONS - len(self.connections))
        for _ in range(missing - len(self._dials) if self.replaces and not self._closed else 0):
            self._endpoints.rotate(-1)
            self._start_dial(self._endpoints[0], self._next_pause(), self.endurance.dial_s)

    def gained(self) -> None:
        self._redial_s = 0.0

    def keep(self, connections: Iterable[DataConnection]) -> None:
        super().keep(connections)
        self._stop_dialling()

    def _next_pause(self) -> float:
        """Give the seconds before the next try: the same for as many as there are connections."""
        endurance = self.endurance
        longer = self._redial_s * 2 ** (1 / self.limit)
        self._redial_s = min(max(longer, endurance.first_redial_s), endurance.last_redial_s)
        return self._redial_s

    def _start_dial(self, endpoint: Endpoint, pause_s: float, timeout_s: float) -> None:
        task = asyncio.create_task(self._dial(endpoint, pause_s, timeout_s))
        self._dials.add(task)
        if not self._is_confirmed:
            self._early.add(task)
        task.add_done_callback(self._dialled)

    def _stop_dialling(self) -> None:
        for task in self._dials:
            task.cancel()

    @property
    def may_bring_more(self) -> bool:
        return not self._closed and bool(self._dials or self._put_off)

    def close(self) -> None:
        super().close()
        self._stop_dialling()

    async def _dial(self, endpoint: Endpoint, pause_s: float, timeout_s: float) -> DataConnection:
        if pause_s:
            await asyncio.sleep(pause_s)
        local_host = self._local_host
        sock = new_socket(family_of(endpoint.host), self._tuning)
        try:
            if local_host is not None and family_of(local_host) == sock.family:
                sock.bind(socket_address(local_host, 0))
            async with asyncio.timeout(timeout_s):
                where = socket_address(endpoint.host, endpoint.port)
                if not begin_to_connect(sock, where):
                    await asyncio.get_running_loop().sock_connect(sock, where)
                sock.send(self._call)  # the first bytes of a connection find room in its buffer
                if self.tls is not None:
                    return await TlsConnection.agreed(sock, 0, self.tls, self._tuning)
            return DataConnection(sock, 0, self._tuning)
        except BaseException:
            reset_socket(sock)  # if it was just made, its end must not look like an empty file
            raise

    def _dialled(self, task: asyncio.Task[DataConnection]) -> None:
        was_early = task in self._early
        self._dials.discard(task)
        self._early.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            if self._closed:
                task.result().reset()
            else:
                self._came(task.result())
            return
        if isinstance(error, TimeoutError):
            error = OSError(errno.ETIMEDOUT, "the connection timed out")
        if not isinstance(error, OSError):
            raise error
        logger.info("a data connection failed: %s", error)
        if was_early and not self._closed:
            if self._is_confirmed:
                self._dial_anew()
            else:
                self._put_off += 1
            return
        if len(self.failures) < self.limit:
            self.failures.append(error)
        if error.errno in _CUT and not self._dials and not self.connections:
            self._open_again()
        self._tell()

    def _dial_anew(self) -> None:
        """Dial once more, without a pause."""
        self._endpoints.rotate(-1)
        self._start_dial(self._endpoints[0], 0.0, OPEN_TIMEOUT_S)

    def _open_again(self) -> None:
        """Dial all again that were cut before the first had been made."""
        if self._openings < MOST_OPENINGS:
            self._openings += 1
            self.replenish(0)
