"""Where data connections come from: dialled (active) or accepted (passive).

Either way they come one by one, in any order, before or while the transfer runs; a transfer starts
with the first and takes the others in as they arrive. One that never arrives costs nothing.

Where both ends agreed to it (`replaces`), the side that dials replaces a lost connection, the side
that listens takes the new one in, and what counts is how many are alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from xftp.errors import DataConnectionError, DataTlsError
from xftp.protocol.addresses import Endpoint
from xftp.protocol.repeating import ENDURANCE

from .connection import DataConnection, reset_socket
from .handshakes import Handshakes
from .sockets import Tuning, family_of, new_socket, plain_address
from .tls import DataTls, TlsConnection, TlsFault

logger = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 60.0
"""How long a data connection may take to be made. The kernel sends SYN again after 1, 3, 7, 15
and 31 s; on a lossy satellite path several of them may be lost."""

MOST_CONNECTIONS = 4096
"""Connections that one transfer takes in one after the other, those that were lost included."""

REFUSED_S = 5.0
"""How long a connection is waited for after one that TLS refused: it may be another's, or the
peer's way to say that it cannot do better."""

_ACCEPT_AGAIN_S = 0.1
_ACCEPTS_PER_TURN = 64


class DataChannel:
    """The data connections of one transfer: those that came, and whether more may come.

    expected: how many will come if all goes well; None if the peer did not say; tls: how they are
    protected; None: not; replaces: whether the two ends agreed that a lost connection is replaced.
    """

    replaces = False
    endurance = ENDURANCE

    def __init__(
        self,
        expected: int | None,
        limit: int,
        tuning: Tuning | None = None,
        tls: DataTls | None = None,
    ) -> None:
        self.expected = expected
        self.limit = limit
        self.tls = tls
        self._tuning = tuning
        self.connections: list[DataConnection] = []
        self.failures: list[OSError] = []
        self._waiting: list[DataConnection] = []
        self._on_connection: Callable[[DataConnection], None] | None = None
        self._on_settled: Callable[[], None] | None = None
        self._make_room: Callable[[], bool] = lambda: False
        self._kept: list[DataConnection] = []
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def may_bring_more(self) -> bool:
        """Whether another connection may still come."""
        raise NotImplementedError

    @property
    def alive(self) -> int:
        """How many connections are open."""
        return sum(connection.is_open for connection in self.connections)

    @property
    def dials(self) -> bool:
        """Whether it is this side that replaces a lost connection."""
        return False

    def subscribe(
        self,
        on_connection: Callable[[DataConnection], None],
        on_settled: Callable[[], None],
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """Hand over the connections that came and every later one.

        on_settled: called each time it becomes known that no further one will come; make_room:
        asked to give up a connection that shows no sign of life when one too many comes.
        """
        self._on_connection, self._on_settled = on_connection, on_settled
        self._make_room = make_room
        waiting, self._waiting = self._waiting, []
        for connection in waiting:
            on_connection(connection)

    def replenish(self, good: int) -> None:
        """Dial again what is missing; `good`: connections that are alive as far as is known."""

    def gained(self) -> None:
        """Note that the transfer goes on, so that the next lost connection is replaced soon."""

    def keep(self, connections: Iterable[DataConnection]) -> None:
        """Leave connections that are not used any more open until `close`; dial none again.

        The peer does not know yet that all is there, and must not take their end for a loss.
        """
        self._kept += connections
        self._on_connection, self._make_room = None, lambda: False

    async def wait_for_first(self, timeout_s: float = OPEN_TIMEOUT_S) -> None:
        """Wait until a connection is there.

        Raises DataConnectionError if none comes.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.connections and self.may_bring_more:
                    self._changed.clear()
                    await self._changed.wait()
        if not self.connections:
            reason = f": {_reason(self.failures[0])}" if self.failures else ""
            is_tls = any(isinstance(each, TlsFault) for each in self.failures)
            kind = DataTlsError if is_tls else DataConnectionError
            raise kind(f"no data connection could be opened{reason}")

    def close(self) -> None:
        """Take no further connections, and close those that no transfer took over."""
        self._closed = True
        for connection in self._waiting:
            connection.close()
        self._waiting.clear()
        for connection in self._kept:
            connection.close()
        self._kept.clear()
        self._changed.set()
        if self._tuning is not None:
            self._tuning.close()

    def _came(self, connection: DataConnection) -> None:
        connection.number = len(self.connections)
        self.connections.append(connection)
        if self._on_connection is not None:
            self._on_connection(connection)
        else:
            self._waiting.append(connection)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        if self._on_settled is not None and not self.may_bring_more:
            self._on_settled()


def _reason(error: OSError) -> str:
    return str(error.strerror) if isinstance(error, TlsFault) else os.strerror(error.errno or 0)


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
    ) -> None:
        """Start to connect to every one of `endpoints`, from `local_host` if given."""
        super().__init__(len(endpoints), len(endpoints), tuning, tls)
        self._endpoints = deque(endpoints)
        self._local_host = local_host
        self._redial_s = 0.0
        self._dials: set[asyncio.Task[DataConnection]] = set()
        for endpoint in endpoints:
            self._start_dial(endpoint, 0.0, timeout_s)

    @property
    def dials(self) -> bool:
        return self.replaces

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
        task.add_done_callback(self._dialled)

    def _stop_dialling(self) -> None:
        for task in self._dials:
            task.cancel()

    @property
    def may_bring_more(self) -> bool:
        return not self._closed and bool(self._dials)

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
                sock.bind((local_host, 0))
            async with asyncio.timeout(timeout_s):
                await asyncio.get_running_loop().sock_connect(sock, (endpoint.host, endpoint.port))
                if self.tls is not None:
                    return await TlsConnection.agreed(sock, 0, self.tls, self._tuning)
            return DataConnection(sock, 0, self._tuning)
        except BaseException:
            reset_socket(sock)  # if it was just made, its end must not look like an empty file
            raise

    def _dialled(self, task: asyncio.Task[DataConnection]) -> None:
        self._dials.discard(task)
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
        if len(self.failures) < self.limit:
            self.failures.append(error)
        self._tell()
