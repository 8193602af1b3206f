"""File to connections: records over N of them."""

from __future__ import annotations

from xftp.protocol.records import CHUNK_BYTES, OutgoingBatch, record_count, span_bytes
from xftp.protocol.striping import BatchSize, Striping

from .channels import DataChannel
from .connection import DataConnection
from .files import SourceFile
from .ratelimit import RateLimit
from .sockets import set_unsent_limit
from .transfer import Progress, Sender

LARGEST_BATCH = 64
"""Records moved by one system call at most: 512 KiB, beyond which larger calls gain nothing."""

UNSENT_S = 0.05
"""The unsent data that a socket may hold, as seconds at its rate."""

SMALLEST_UNSENT_BYTES = 16 * 1024
LARGEST_UNSENT_BYTES = 4 * 1024 * 1024

_RATE_WINDOW_S = 0.1
_CALLS_PER_TURN = 8


class UnsentLimit:
    """Keeps TCP_NOTSENT_LOWAT of one connection at UNSENT_S of its measured rate."""

    def __init__(self, connection: DataConnection, now: float) -> None:
        self._connection = connection
        self._since = now
        self._sent_before = 0
        self._limit = SMALLEST_UNSENT_BYTES
        set_unsent_limit(connection.sock, self._limit)

    def update(self, now: float) -> None:
        """Follow the rate: called often, does something ten times a second."""
        elapsed = now - self._since
        if elapsed < _RATE_WINDOW_S:
            return
        rate = (self._connection.bytes_sent - self._sent_before) / elapsed
        self._since, self._sent_before = now, self._connection.bytes_sent
        wanted = int(min(max(rate * UNSENT_S, SMALLEST_UNSENT_BYTES), LARGEST_UNSENT_BYTES))
        if not self._limit / 2 < wanted < self._limit * 2:
            self._limit = wanted
            set_unsent_limit(self._connection.sock, wanted)


class _Outgoing:
    """One connection of a RecordSender and what it is sending."""

    def __init__(self, connection: DataConnection, now: float) -> None:
        self.connection = connection
        self.batch = OutgoingBatch(LARGEST_BATCH)
        self.batch_size = BatchSize(LARGEST_BATCH)
        self.unsent_limit = UnsentLimit(connection, now)
        self.waiting = memoryview(b"")
        self.run: tuple[int, int] | None = None
        self.batch_file_bytes = 0


class RecordSender(Sender):
    """Sends the bytes of `source` from `offset` on as records, sequence 0 at `offset`."""

    framed = True

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
        self._offset = offset
        self._size = source.size - offset
        self._striping = Striping([(0, record_count(self._size))])
        self._feeding: dict[int, _Outgoing] = {}
        self._draining: set[int] = set()
        largest = LARGEST_BATCH
        if limit is not None:
            largest = max(1, min(largest, limit.batch_bytes // CHUNK_BYTES))
        self._largest_batch = largest

    def _start(self, connection: DataConnection) -> None:
        outgoing = self._feeding[connection.number] = _Outgoing(connection, self._loop.time())
        outgoing.batch_size = BatchSize(self._largest_batch)
        self._resume(outgoing)

    def _resume(self, outgoing: _Outgoing) -> None:
        self._when_writable(outgoing.connection, self._send, outgoing)

    def _pause(self, outgoing: _Outgoing) -> None:
        self._loop.remove_writer(outgoing.connection.fileno())

    def _send(self, outgoing: _Outgoing) -> None:
        """Send while the connection takes it, but let the other connections have their turn."""
        for _ in range(_CALLS_PER_TURN):
            if not outgoing.waiting and not self._load(outgoing):
                return
            try:
                sent = outgoing.connection.send(outgoing.waiting)
            except OSError as error:
                self._broken(outgoing.connection, error)
                return
            self._note_sent(outgoing, sent)
            if outgoing.waiting:
                return
            if self._limit is not None:
                pause_s = self._limit.spend(outgoing.batch_file_bytes, self._loop.time())
                if pause_s:
                    self._pause(outgoing)
                    self._later(pause_s, self._resume, outgoing)
                    return

    def _note_sent(self, outgoing: _Outgoing, sent: int) -> None:
        whole = sent == len(outgoing.waiting)
        outgoing.waiting = outgoing.waiting[sent:]
        if whole:
            outgoing.batch_size.took_all()
            self._moved(outgoing.connection, outgoing.batch_file_bytes)
        else:
            outgoing.batch_size.took(sent // CHUNK_BYTES)
            self._moved(outgoing.connection, 0)
        outgoing.unsent_limit.update(self._loop.time())

    def _load(self, outgoing: _Outgoing) -> bool:
        """Give the connection its next records; False if they are not at hand at once."""
        run = outgoing.run = self._striping.take(outgoing.batch_size.records)
        if run is None:
            number = outgoing.connection.number
            del self._feeding[number]
            self._draining.add(number)
            self._finish(outgoing.connection)
            return False
        first, count = run
        size = span_bytes(first, count, self._size)
        places = outgoing.batch.payloads(size)
        at = self._offset + first * CHUNK_BYTES
        if self._source.read_cached(places, at, size):
            self._loaded(outgoing, first, size)
            return True
        self._pause(outgoing)
        self._in_thread(
            lambda: self._source.read(places, at, size),
            lambda _: self._loaded_late(outgoing, first, size),
        )
        return False

    def _loaded(self, outgoing: _Outgoing, first: int, size: int) -> None:
        outgoing.waiting = outgoing.batch.seal(first, size)
        outgoing.batch_file_bytes = size

    def _loaded_late(self, outgoing: _Outgoing, first: int, size: int) -> None:
        self._loaded(outgoing, first, size)
        self._resume(outgoing)
        self._send(outgoing)

    def _drained(self, connection: DataConnection) -> None:
        self._draining.discard(connection.number)
        self._check_done()

    def _broken(self, connection: DataConnection, error: OSError) -> None:
        """End the transfer, unless the connection had not carried anything.

        One that was made late is reset by a receiver that has everything already.
        """
        outgoing = self._feeding.pop(connection.number, None)
        self._draining.discard(connection.number)
        if connection.bytes_sent:
            super()._broken(connection, error)
            return
        self._loop.remove_writer(connection.fileno())
        if outgoing is not None and outgoing.run is not None:
            self._striping.give_back(*outgoing.run)
            if not self._feeding and not self._channel.may_bring_more:
                super()._broken(connection, error)
                return
        self._check_done()

    def _check_done(self) -> None:
        if not self._feeding and not self._draining and self._striping.is_exhausted:
            self._done()
