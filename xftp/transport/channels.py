"""Where data connections come from: dialled (`active`) or accepted (`passive`).

Either way they come one by one, in any order, before or while the transfer runs; a transfer starts
with the first and takes the others in as they arrive. One that never arrives costs nothing.

Where both ends agreed to it (`replaces`), the side that dials replaces a lost connection, the side
that listens takes the new one in, and what counts is how many are alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable

from xftp.errors import DataConnectionError, DataTlsError
from xftp.protocol.repeating import ENDURANCE

from .connection import DataConnection
from .sockets import Tuning
from .tls import DataTls, TlsFault

OPEN_TIMEOUT_S = 60.0
"""How long a data connection may take to be made. The kernel sends SYN again after 1, 3, 7, 15
and 31 s; on a lossy satellite path several of them may be lost."""

MOST_CONNECTIONS = 4096
"""Connections that one transfer takes in one after the other, those that were lost included."""


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
