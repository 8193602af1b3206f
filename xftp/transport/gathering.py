"""How much has to be there until a receiver is woken: fewer turns of the loop, each with more."""

from __future__ import annotations

import contextlib

from xftp.protocol.records import RECORD_BYTES

from .connection import DataConnection
from .sockets import set_least_readable

GATHER_RTTS = 0.25
LEAST_GATHER_S = 0.002
MOST_GATHER_S = 0.02
"""What arrives within a quarter of a round trip, within these bounds, may wait to be read: so much
of the window at most is not free meanwhile."""

MOST_GATHERED_BYTES = 64 * 1024
"""Beyond this larger reads gain little."""

LEAST_GATHERED_BYTES = 2 * RECORD_BYTES
"""Less is not worth waiting for."""


class Gathering:
    """Keeps the low-water mark of one connection (SO_RCVLOWAT, socket(7)) at its rate."""

    def __init__(self, connection: DataConnection, now: float) -> None:
        self._connection = connection
        self._since = now
        self._received_before = connection.bytes_received
        self.mark_bytes = 1
        """Without so much to read nobody is woken, but by the end or an error."""

    def update(self, now: float) -> None:
        """Follow the rate since the last call; where nothing came, all is read that is there."""
        elapsed_s = now - self._since
        if elapsed_s <= 0:
            return
        rate = (self._connection.bytes_received - self._received_before) / elapsed_s
        self._since, self._received_before = now, self._connection.bytes_received
        wanted = int(min(rate * self._gather_s(), MOST_GATHERED_BYTES))
        if wanted < LEAST_GATHERED_BYTES:
            wanted = 1
        if wanted == 1 or not self.mark_bytes / 2 < wanted < self.mark_bytes * 2:
            self._set(wanted)

    def end(self) -> None:
        """Wake for every byte from now on."""
        self._set(1)

    def _gather_s(self) -> float:
        state = self._connection.state()
        rtt_s = state.rtt_s if state else 0.0
        return min(max(GATHER_RTTS * rtt_s, LEAST_GATHER_S), MOST_GATHER_S)

    def _set(self, mark_bytes: int) -> None:
        if mark_bytes == self.mark_bytes:
            return
        with contextlib.suppress(OSError):  # a broken one is found out where it is read
            set_least_readable(self._connection.sock, mark_bytes)
            self.mark_bytes = mark_bytes
