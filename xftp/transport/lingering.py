"""A refused upload, read to its end: so that an ordinary client gets to see why it was refused.

Many clients look at the control connection only when their data has gone. A connection that is
closed while data comes is reset by the kernel (RFC 2525 section 2.17), and all that they can tell
of it is the reset.
"""

from __future__ import annotations

import asyncio

from .connection import DataConnection

LINGER_S = 5.0
"""How long at most: on a slow link the rest of a file may take hours, and cost money."""

_ROOM_BYTES = 256 * 1024


class Lingering:
    """Takes a data connection over, and throws away what still comes until its end."""

    def __init__(self, connection: DataConnection, limit_s: float = LINGER_S) -> None:
        self._connection = connection
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(limit_s, self.end)
        self._loop.add_reader(connection.fileno(), self._read)

    def end(self) -> None:
        """Close the connection, by a reset unless its end was seen. May be called again."""
        if not self._connection.is_open:
            return
        self._timer.cancel()
        self._loop.remove_reader(self._connection.fileno())
        if self._connection.at_end:
            self._connection.close()
        else:
            self._connection.reset()

    def _read(self) -> None:
        try:
            # The socket itself: whatever protects the data, nobody is to read it.
            received = self._connection.sock.recv_into(self._room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # reset by the peer, which has heard enough
            self.end()
            return
        if not received:
            self._connection.at_end = True
            self.end()
