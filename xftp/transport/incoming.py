"""One connection of a receiver of records: the record that it has begun, and what it tells."""

from __future__ import annotations

from xftp.protocol.receipts import ALL_HELD, format_receipt

from .connection import DataConnection
from .gathering import Gathering
from .sockets import repeat_soon

REPEAT_S = 0.05
"""A receipt that is not acknowledged for a round-trip time and this long is sent again: more than
the 40 ms for which Linux puts an acknowledgment off."""

RECEIPT_RTTS = 0.5
"""Round-trip times between two receipts of a connection at least."""


class Incoming:
    """A connection of a RecordReceiver."""

    def __init__(self, connection: DataConnection, now: float) -> None:
        self.connection = connection
        self.gathering = Gathering(connection, now)
        self.rest = b""
        """A record that has only partly arrived."""
        self.is_finished = False
        self._told = 0
        self._told_at = 0.0
        self._to_tell = b""

    def persist(self) -> None:
        """Let receipts that are lost be repeated soon: the first one that gets through after an
        outage sets the sender's kernel going. Raises OSError if the connection is broken."""
        repeat_soon(self.connection.sock, REPEAT_S)

    def tell(self, now: float, *, all_held: bool, again: bool = False) -> None:
        """Tell the sender what arrived, twice in a round trip at most, or that it was all.

        again: even if that has been told, unless the kernel is about to repeat it anyway. Raises
        OSError if the connection is broken.
        """
        received = ALL_HELD if all_held else self.connection.bytes_received
        again = again and not self.connection.unacknowledged()
        if not self._to_tell and (again or received > self._told):
            state = self.connection.state()
            pause_s = RECEIPT_RTTS * (state.rtt_s if state else 0)
            if not (all_held or again) and now - self._told_at < pause_s:
                return
            self._told, self._told_at = received, now
            self._to_tell = format_receipt(received)
        if self._to_tell:
            self._to_tell = self._to_tell[self.connection.say(self._to_tell) :]
