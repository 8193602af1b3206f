"""One connection of a sender of records: what it was given, and how it fares."""

from __future__ import annotations

from xftp.protocol.receipts import ReceiptReader
from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES, OutgoingBatch
from xftp.protocol.repeating import Progress
from xftp.protocol.striping import BatchSize, Lane

from .connection import DataConnection
from .sockets import set_unsent_limit

LARGEST_BATCH = 64
"""Records moved by one system call at most: 512 KiB, beyond which larger calls gain nothing."""

UNSENT_S = 0.05
"""The unsent data that a socket may hold, as seconds at its rate."""

SMALLEST_UNSENT_BYTES = 16 * 1024
LARGEST_UNSENT_BYTES = 4 * 1024 * 1024

STALLED_S = 2.0
"""A connection that took nothing for so long keeps no more than KEPT_RECORDS of its batch: a client
that reads nothing is not to cost half a megabyte for each of its connections."""

KEPT_RECORDS = 4

_RATE_WINDOW_S = 0.1


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


class Outgoing:
    """A connection of a RecordSender, its lane, and the batch that it is sending."""

    def __init__(
        self, connection: DataConnection, lane: Lane, largest_batch: int, now: float
    ) -> None:
        self.connection = connection
        self.lane = lane
        self._batch = OutgoingBatch(1)
        self.batch_size = BatchSize(largest_batch)
        self.unsent_limit = UnsentLimit(connection, now)
        self.run = (0, 0)
        """The records of the batch, as (first record, count)."""
        self.waiting = memoryview(b"")
        """What the socket has not taken of it."""
        self.is_loading = False
        """Whether a thread is reading the batch."""
        self.is_idle = False
        """Whether it has sent everything, and there was nothing more for it."""
        self.is_lost = False
        self.receipts = ReceiptReader()
        self._batch_bytes = 0
        self._progress_at = now
        self._witnessed_at: float | None = None
        self._sent_before = 0
        self._sent_at = now

    def places(self, size: int) -> list[memoryview]:
        """Give places for `size` bytes of the file, 1 or more, in a batch as large as needed."""
        records = -(-size // CHUNK_BYTES)
        if not records <= self._batch.capacity < 8 * records:
            self._batch = OutgoingBatch(min(LARGEST_BATCH, 1 << (records - 1).bit_length()))
        return self._batch.payloads(size)

    def is_stalled(self, now: float) -> bool:
        """Tell whether it holds much, and the socket has taken nothing of it for long."""
        if self._sent_before != self.connection.bytes_sent:
            self._sent_before, self._sent_at = self.connection.bytes_sent, now
        has_long = now - self._sent_at >= STALLED_S and not self.is_loading
        return has_long and self._batch.capacity > KEPT_RECORDS

    def let_go(self) -> None:
        """Keep what waits, and not the room of the whole batch."""
        self.waiting = memoryview(bytes(self.waiting))
        self._batch = OutgoingBatch(1)

    def load(self, size: int) -> None:
        """Take `size` bytes of the file, which were read into the batch, as what goes next."""
        self.is_loading = False
        self.waiting = self._batch.seal(self.run[0], size)
        self._batch_bytes = len(self.waiting)

    def give_back(self, wire_bytes: int) -> None:
        """Drop the last `wire_bytes` bytes of the batch, whole records that were not begun."""
        self._batch_bytes -= wire_bytes
        self.waiting = self.waiting[: len(self.waiting) - wire_bytes]
        self.run = (self.run[0], -(-self._batch_bytes // RECORD_BYTES))

    @property
    def batch_file_bytes(self) -> int:
        """Bytes of the file in the batch."""
        return self._batch_bytes - self.run[1] * (RECORD_BYTES - CHUNK_BYTES)

    # -- how it fares --------------------------------------------------------------------------

    def note(self, now: float, *, went_on: bool) -> None:
        """Note whether more has arrived; without anything outstanding none can."""
        if went_on or not self.lane.outstanding_bytes:
            self._progress_at = now
            self._witnessed_at = None

    def silent_s(self, now: float) -> float:
        """Give the time since something arrived, or since something is outstanding."""
        return now - self._progress_at

    def silent_beside_others_s(self, now: float, *, others_went_on: bool) -> float:
        """Give the same, but only from when another connection went on: the path is there."""
        if self._witnessed_at is None:
            if not others_went_on or self._progress_at == now:
                return 0.0
            self._witnessed_at = now
        return now - self._witnessed_at

    def progress(self, now: float) -> Progress:
        """Put what the kernel knows into the numbers that decisions are made of."""
        state = self.connection.state()
        rtt_s = state.rtt_s if state else 0.0
        rate = float(state.delivery_rate_bytes_per_s) if state else 0.0
        return Progress(
            outstanding_bytes=self.lane.given_bytes - self.connection.acknowledged(),
            rate_bytes_per_s=rate,
            rtt_s=rtt_s,
            rtt_deviation_s=state.rtt_deviation_s if state else 0.0,
            timeouts=state.timeouts if state else 0,
            silent_s=self.silent_s(now),
            sacked_bytes=state.sacked_bytes if state else 0,
            unanswered_s=state.unanswered_s if state else 0.0,
            unheard_s=state.unheard_s if state else 0.0,
            is_mending=state.is_mending if state else False,
        )
