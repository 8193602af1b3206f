"""Plain streams over one connection: what every FTP program speaks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from xftp.errors import LocalFileError, TransferAborted, file_error

from .channels import DataChannel
from .checkpoints import Checkpoints
from .connection import DataConnection
from .disk import Patience
from .files import SourceFile
from .ratelimit import RateLimit
from .transfer import Progress, Sender, Transfer

SENDFILE_BYTES = 4 * 1024 * 1024
"""What one `sendfile` is asked to move; the socket takes less."""

BLOCK_BYTES = 512 * 1024
"""The buffer of a plain stream."""

_DISK_ERRORS = (errno.EIO, errno.EINVAL, errno.ENOMEM, errno.EOVERFLOW)
"""What `sendfile` says of the file; everything else it says of the socket (sendfile(2))."""


class PlainSender(Sender):
    """Sends the bytes of `source` from `offset` on as a plain stream, by `sendfile` if it may."""

    def __init__(
        self,
        channel: DataChannel,
        source: SourceFile,
        offset: int = 0,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        self._source = source
        self._at = offset
        self._piece = min(SENDFILE_BYTES, limit.batch_bytes) if limit else SENDFILE_BYTES
        self._block = self._waiting = memoryview(b"")

    def _start(self, connection: DataConnection) -> None:
        send = self._send if connection.takes_files else self._send_copied
        self._when_writable(connection, send, connection)

    def _send(self, connection: DataConnection) -> None:
        size = min(self._piece, self._source.size - self._at)
        if size <= 0:
            self._finish(connection)
        elif self._source.is_cached(self._at + size - 1):
            self._sent(connection, self._sendfile(connection, size))
        else:
            self._loop.remove_writer(connection.fileno())
            self._in_thread(
                lambda: self._sendfile(connection, size),
                lambda sent: self._sent_late(connection, sent),
            )

    def _sendfile(self, connection: DataConnection, size: int) -> int | OSError:
        """Move up to `size` bytes; in a thread, since the disk may make it wait."""
        try:
            sent = os.sendfile(connection.fileno(), self._source.fileno(), self._at, size)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise file_error(error, self._source.name) from error
            return error
        if sent == 0:
            raise LocalFileError(f"{self._source.name}: the file became shorter while it was read")
        return sent

    def _sent_late(self, connection: DataConnection, sent: int | OSError) -> None:
        self._start(connection)
        self._sent(connection, sent)

    def _sent(self, connection: DataConnection, sent: int | OSError) -> None:
        if isinstance(sent, OSError):
            self._broken(connection, sent)
            return
        connection.bytes_sent += sent
        self._went_on(connection, sent)

    def _send_copied(self, connection: DataConnection) -> None:
        """Send by way of a buffer, where the bytes have to be seen on their way."""
        try:
            if not connection.flush():
                return
            sent = connection.send(self._waiting)
        except OSError as error:
            self._broken(connection, error)
            return
        if sent:
            self._waiting = self._waiting[sent:]
            self._went_on(connection, sent)
        elif not self._waiting:
            self._fill(connection)

    def _fill(self, connection: DataConnection) -> None:
        """Read the next block, which is sent as soon as the socket takes more."""
        size = min(self._piece, self._source.size - self._at, BLOCK_BYTES)
        if size <= 0:
            self._finish(connection)
            return
        if not self._block:
            self._block = memoryview(bytearray(BLOCK_BYTES))
        block, at = self._block[:size], self._at
        if self._source.read_cached([block], at, size):
            self._waiting = block
            self._send_copied(connection)
        else:
            self._loop.remove_writer(connection.fileno())
            self._in_thread(
                lambda: self._source.read([block], at, size),
                lambda _: self._filled(connection, block),
            )

    def _filled(self, connection: DataConnection, block: memoryview) -> None:
        self._waiting = block
        self._start(connection)

    def _went_on(self, connection: DataConnection, sent: int) -> None:
        self._at += sent
        self._moved(connection, sent)
        pause_s = self._limit.spend(sent, self._loop.time()) if self._limit else 0.0
        if pause_s:
            self._loop.remove_writer(connection.fileno())
            self._later(pause_s, self._start, connection)

    def _drained(self, connection: DataConnection) -> None:
        self._done()


class StreamSender(Sender):
    """Sends what `produce` gives as a plain stream: a pipe, a converted file, a listing.

    produce: called in a thread; gives the next bytes, b"" at the end, None if there is nothing
    yet (it is asked again).
    """

    def __init__(
        self,
        channel: DataChannel,
        produce: Callable[[], bytes | None],
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        self._produce = produce
        self._produced_bytes = 0
        self._waiting = memoryview(b"")

    def _start(self, connection: DataConnection) -> None:
        if len(self._connections) == 1:
            self._ask(connection)
        # A listing after MPSV goes over the first connection; the others just end with it.

    def _ask(self, connection: DataConnection) -> None:
        self._in_thread(self._produce, lambda data: self._produced(connection, data))

    def _produced(self, connection: DataConnection, data: bytes | None) -> None:
        if data is None:
            self._moved_at = self._loop.time()  # a slow pipe on this side is no stalled peer
            self._ask(connection)
        elif not data:
            self._finish(connection)
        else:
            self._waiting, self._produced_bytes = memoryview(data), len(data)
            self._when_writable(connection, self._send, connection)

    def _send(self, connection: DataConnection) -> None:
        try:
            sent = connection.send(self._waiting) if self._waiting else 0
            gone = connection.flush()
        except OSError as error:
            self._broken(connection, error)
            return
        self._moved(connection, sent)
        self._waiting = self._waiting[sent:]
        if self._waiting or not gone:
            return
        self._loop.remove_writer(connection.fileno())
        pause_s = 0.0
        if self._limit is not None:
            pause_s = self._limit.spend(self._produced_bytes, self._loop.time())
        if pause_s:
            self._later(pause_s, self._ask, connection)
        else:
            self._ask(connection)

    def _drained(self, connection: DataConnection) -> None:
        self._done()


class PlainReceiver(Transfer):
    """Receives a plain stream, in order, into `consume`.

    consume: called with each piece and its offset from the start of the stream; in a thread,
    unless `patience`, that of the file it writes to, allows it at once.
    size: bytes announced; fewer are a failure, None if nothing was announced.
    checkpoint: called in a thread from time to time, to see on the disk, and note, what came.
    """

    def __init__(
        self,
        channel: DataChannel,
        consume: Callable[[memoryview, int], object],
        size: int | None = None,
        *,
        patience: Patience | None = None,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
        checkpoint: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        self.size = size
        self._checkpoint = checkpoint
        self._checkpoints = Checkpoints(self._loop.time())
        self._patience = patience
        self._consume = consume
        self._received = 0
        self._free = [memoryview(bytearray(BLOCK_BYTES)) for _ in range(2)]
        self._filling: memoryview | None = None
        self._filled = 0
        self._writing = False
        self._ended = False
        self._is_pausing = False
        self._read_bytes = min(BLOCK_BYTES, limit.batch_bytes) if limit else BLOCK_BYTES

    def _start(self, connection: DataConnection) -> None:
        if len(self._connections) == 1:
            self._resume(connection)
        # A listing after MPSV comes over the first connection; the others just end with it.

    def _resume(self, connection: DataConnection) -> None:
        if not (self._ended or self._is_full or self._is_pausing):
            self._when_readable(connection, self._receive, connection)

    def _end_pause(self, connection: DataConnection) -> None:
        self._is_pausing = False
        self._resume(connection)

    def _receive(self, connection: DataConnection) -> None:
        if self._filling is None:
            self._filling, self._filled = self._free.pop(), 0
        room = self._filling[self._filled : self._filled + self._read_bytes]
        try:
            received = connection.receive_into(room)
        except OSError as error:
            self._broken(connection, error)
            return
        if received is None:
            return
        self._ended = received == 0
        self._filled += received
        self._moved_at = self._loop.time()
        pause_s = self._limit.spend(received, self._moved_at) if self._limit else 0.0
        if not self._writing:
            self._write(connection)
        if self._ended or pause_s or self._is_full:
            self._stop_reading(connection)
        if pause_s:
            self._is_pausing = True
            self._later(pause_s, self._end_pause, connection)

    @property
    def _is_full(self) -> bool:
        return self._filling is not None and self._filled == BLOCK_BYTES

    def _write(self, connection: DataConnection) -> None:
        """Hand over what was received; while a thread has it, the other buffer fills."""
        if self._filling is None or not self._filled:
            if self._ended:
                self._end()
            return
        buffer, size, at = self._filling, self._filled, self._received
        self._filling, self._filled = None, 0
        self._received += size

        def work() -> int:
            self._consume(buffer[:size], at)
            return size

        def written_late(_: int) -> None:
            self._writing = False
            self._free.append(buffer)
            self._written(connection, size)
            self._write(connection)
            self._resume(connection)

        if self._work(self._patience, work, written_late) is None:
            self._writing = True
            self._resume(connection)
            return
        self._free.append(buffer)
        self._written(connection, size)
        if self._ended:
            self._end()

    def _written(self, connection: DataConnection, size: int) -> None:
        self._moved(connection, size)
        if self._checkpoint is None or self._ended:
            return
        if self._checkpoints.begins(self._loop.time(), self.file_bytes):
            self._in_thread(self._checkpoint, self._checkpoints.ended)

    def _end(self) -> None:
        if self.size is not None and self._received < self.size:
            raise TransferAborted(
                f"the data connection ended after {self._received} of {self.size} bytes"
            )
        self._done()
