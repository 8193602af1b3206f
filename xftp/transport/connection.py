"""One data connection, as the data path sees it: send some, receive some, never wait."""

from __future__ import annotations

import contextlib
import os
import socket
import struct

from .sockets import SocketState, Tuning, is_reset, socket_state, unacknowledged_bytes

_LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with time 0: close sends RST, so that the peer cannot take it for the end of file."""


class DataConnection:
    """A connected, non-blocking TCP socket.

    number: which connection of the transfer it is, from 0, in the order they came.
    """

    def __init__(self, sock: socket.socket, number: int, tuning: Tuning | None = None) -> None:
        self.number = number
        self.observed: dict[str, object] = {}
        """What the socket had, by `Tuning.observe`, from the beginning to the end."""
        self.bytes_sent = 0
        self.bytes_received = 0
        self.at_end = False
        self.moved_at = 0.0
        """When the peer last showed a sign of life, by the clock of the event loop."""
        self._tuning = tuning
        self._sock = sock
        self._last_state: SocketState | None = None
        self._observe()

    def fileno(self) -> int:
        """Give the descriptor for the event loop to watch."""
        return self._sock.fileno()

    @property
    def is_open(self) -> bool:
        """Whether neither `close` nor `reset` was called."""
        return self._sock.fileno() >= 0

    @property
    def sock(self) -> socket.socket:
        """The socket, for options and for `sendfile`."""
        return self._sock

    def send(self, data: memoryview) -> int:
        """Send what fits now; 0 if nothing does. Raises OSError if the connection is broken."""
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        self.bytes_sent += sent
        return sent

    def receive_into(self, room: memoryview) -> int | None:
        """Receive what is there: 0 at the end of the stream, None if there is nothing yet.

        Raises OSError if the connection is broken.
        """
        try:
            received = self._sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return None
        self.at_end = received == 0
        self.bytes_received += received
        return received

    def receive(self, limit: int = 4096) -> bytes | None:
        """Receive what the peer says beside the data: b"" at the end, None if there is nothing.

        Raises OSError if the connection is broken.
        """
        try:
            return self._sock.recv(limit)
        except (BlockingIOError, InterruptedError):
            return None

    def say(self, data: bytes) -> int:
        """Send something beside the data, as far as it goes now. Raises OSError if it is broken."""
        try:
            return self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def flush(self) -> bool:
        """Pass on what `send` took and the socket did not; tell whether nothing is left."""
        return True

    @property
    def holds_received(self) -> bool:
        """Whether there may be something to receive that the event loop cannot see."""
        return False

    @property
    def takes_files(self) -> bool:
        """Whether the socket may be given the bytes of a file directly (`sendfile`)."""
        return True

    def finish_sending(self) -> bool:
        """Tell the peer that no more comes; False: what was sent before has to go first."""
        self._sock.shutdown(socket.SHUT_WR)
        return True

    def unacknowledged(self) -> int:
        """Count the bytes sent that the peer's kernel has not acknowledged."""
        return unacknowledged_bytes(self._sock)

    def acknowledged(self) -> int:
        """Count the bytes that the peer's kernel has acknowledged."""
        return self.bytes_sent - self.unacknowledged()

    def problem(self) -> OSError | None:
        """Give the error that broke the connection, once; None if there is none."""
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(code, os.strerror(code)) if code else None

    def is_reset(self) -> bool:
        """Tell whether the peer has reset the connection, though there may be data to receive."""
        return is_reset(self._sock)

    def state(self) -> SocketState | None:
        """Give what the kernel knows of the connection; of a closed one, what it last knew."""
        if self._sock.fileno() >= 0:
            self._last_state = socket_state(self._sock)
        return self._last_state

    def close(self) -> None:
        """Close, and remember the kernel's last word for the report."""
        self._remember()
        self._sock.close()

    def reset(self) -> None:
        """Close so that the peer sees a reset and not an end of file."""
        self._remember()
        reset_socket(self._sock)

    def _remember(self) -> None:
        if self._sock.fileno() >= 0:
            self.state()
            self._observe()

    def _observe(self) -> None:
        """Add what is known now; what was known only at the beginning stays."""
        if self._tuning is not None:
            now = self._tuning.observe(self._sock)
            self.observed |= {name: value for name, value in now.items() if value is not None}


def reset_socket(sock: socket.socket) -> None:
    """Close a socket so that the peer, if there is one, sees a reset and not an end of file."""
    with contextlib.suppress(OSError):  # the socket may already be dead, which is as good
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    sock.close()
