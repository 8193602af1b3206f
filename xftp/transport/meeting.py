"""Data connections that both ends dial at once: the way that gets through first is used.

A sender that dials may send a round trip sooner than one that listens and has yet to hear that the
handshake is over. But many receivers cannot be dialled, so both ways are tried (docs/protocol.md,
Both). The sender decides: it uses the way by which a connection is made first, and resets what
comes by the other. The receiver goes by where it hears something.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Sequence

from .channels import OPEN_TIMEOUT_S, DataChannel
from .connection import DataConnection


class MeetingChannel(DataChannel):
    """Several channels, of which one will be used; after the choice it does as that one does.

    TLS is for channels that do not meet: its handshakes need more than the round trip gained.
    """

    def __init__(self, ways: Sequence[DataChannel], *, decides: bool) -> None:
        """Wait for connections by all `ways`; decides: whether this side sends the data.

        The channels are this one's from now on. Nobody may have subscribed to them.
        """
        super().__init__(None, ways[0].limit)
        self._ways = list(ways)
        self._chosen: DataChannel | None = None
        self._decides = decides
        self._listened_to: set[DataConnection] = set()
        self._reset: set[DataConnection] = set()
        self._loop = asyncio.get_running_loop()
        for way in self._ways:
            way.on_change = self._look
        self._look()

    @property
    def replaces(self) -> bool:
        return self._ways[0].replaces

    @replaces.setter
    def replaces(self, agreed: bool) -> None:
        for way in self._ways:
            way.replaces = agreed

    @property
    def may_bring_more(self) -> bool:
        return any(way.may_bring_more for way in self._ways)

    @property
    def dials(self) -> bool:
        return self._chosen is not None and self._chosen.dials

    def subscribe(
        self,
        on_connection: Callable[[DataConnection], None],
        on_settled: Callable[[], None],
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """Hand over what comes, after `wait_for_first`."""
        for way in self._ways:
            way.subscribe(on_connection, on_settled, make_room)

    def replenish(self, good: int) -> None:
        for way in self._ways:
            way.replenish(good)

    def gained(self) -> None:
        for way in self._ways:
            way.gained()

    def keep(self, connections: Iterable[DataConnection]) -> None:
        for way in self._ways:
            way.keep(connections)

    async def wait_for_first(self, timeout_s: float = OPEN_TIMEOUT_S) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._chosen is None and (self.may_bring_more or self._listened_to):
                    self._changed.clear()
                    await self._changed.wait()
        if self._chosen is None:
            self._choose(self._best())
        await self._ways[0].wait_for_first(0.0)

    def close(self) -> None:
        self._closed = True
        self._listen_no_more()
        for way in self._ways:
            if way is self._chosen:
                way.close()
            else:
                way.discard()
        self._changed.set()

    def _look(self) -> None:
        """See what has come by either way."""
        if self._chosen is not None or self._closed:
            return
        for way in self._ways:
            if self._decides and way.connections:
                self._choose(way)
                return
            for connection in way.connections:
                self._listen_to(connection, way)
        self._changed.set()

    def _listen_to(self, connection: DataConnection, way: DataChannel) -> None:
        """Choose `way` as soon as the peer says something by this connection of it."""
        if connection in self._listened_to or connection in self._reset:
            return

        def heard() -> None:
            try:
                connection.sock.recv(1, socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # the other end has chosen another way
                self._stop_listening(connection)
                self._reset.add(connection)
                self._changed.set()
            else:
                self._choose(way)

        self._listened_to.add(connection)
        self._loop.add_reader(connection.sock, heard)

    def _stop_listening(self, connection: DataConnection) -> None:
        self._listened_to.remove(connection)
        self._loop.remove_reader(connection.sock)

    def _listen_no_more(self) -> None:
        for connection in list(self._listened_to):
            self._stop_listening(connection)

    def _best(self) -> DataChannel:
        """Give the way that promises most, when nothing was heard by any."""
        return max(
            self._ways,
            key=lambda way: (len(set(way.connections) - self._reset), len(way.failures)),
        )

    def _choose(self, chosen: DataChannel) -> None:
        self._chosen = chosen
        self._listen_no_more()
        for way in self._ways:
            way.on_change = None
            if way is not chosen:
                way.discard()
        self._ways = [chosen]
        self.expected, self.limit = chosen.expected, chosen.limit
        self.connections, self.failures = chosen.connections, chosen.failures
        self._changed.set()
