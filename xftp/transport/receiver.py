"""Connections to file: records from N of them.

One buffer takes what each connection has in turn, and is written at once. A file system that
makes us wait is written to by threads, each with a buffer of its own; when all are out, reading
stops. So memory is bounded, whatever the file's size.
"""

from __future__ import annotations

from collections.abc import Sequence

from xftp.errors import RecordError, TransferAborted
from xftp.protocol.records import (
    CHUNK_BYTES,
    RECORD_BYTES,
    IncomingBatch,
    Run,
    parse_short,
    record_count,
)
from xftp.protocol.recordset import RecordSet

from .channels import DataChannel
from .connection import DataConnection
from .files import PartialFile
from .ratelimit import RateLimit
from .transfer import Progress, Transfer

BATCH_RECORDS = 128
"""Records of one buffer: 1 MiB. Smaller ones cost more Python calls than the cache saves."""

BUFFERS = 8
"""Buffers of one transfer at most, while threads write."""

CHECKPOINT_S = 5.0
CHECKPOINT_BYTES = 64 * 1024 * 1024
"""How often the journal is brought up to date, whichever comes first."""

LATE_S = 1.0
"""How long the ends of the connections, and connections that nobody announced, are waited for
once nothing else is missing; or 2 RTT, if that is longer."""


class _Incoming:
    """One connection of a RecordReceiver."""

    def __init__(self, connection: DataConnection) -> None:
        self.connection = connection
        self.rest = b""
        """A record that has only partly arrived."""
        self.is_finished = False


class RecordReceiver(Transfer):
    """Receives records into `target`, sequence 0 at the byte where `target` goes on.

    size: bytes that the sequence numbers count through (the file's size less the offset), None if
    the peer did not tell. Then the file is complete when every connection has ended on a record
    boundary and nothing is missing below the highest record.
    """

    framed = True

    def __init__(
        self,
        channel: DataChannel,
        target: PartialFile,
        size: int | None,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        self.held = RecordSet()
        self.size = size
        self._total = None if size is None else record_count(size)
        self._target = target
        self._incoming: list[_Incoming] = []
        self._buffers = [IncomingBatch(BATCH_RECORDS)]
        self._buffers_out = 0
        self._starved: list[_Incoming] = []
        self._short: tuple[int, int] | None = None
        self._grace_running = False
        self._grace_over = False
        self._checkpoint_at = self._loop.time() + CHECKPOINT_S
        self._checkpoint_bytes = 0
        self._checkpointing = False
        self._read_bytes = BATCH_RECORDS * RECORD_BYTES
        if limit is not None:
            self._read_bytes = max(RECORD_BYTES, min(self._read_bytes, limit.batch_bytes))

    async def run(self) -> None:
        await self._wait_for(self._target.begin_journal)
        await super().run()

    def held_bytes(self) -> list[tuple[int, int]]:
        """Give the byte ranges of the target that are held, the part before the offset too."""
        offset = self._target.offset
        end = None if self.size is None else offset + self.size
        if self._short is not None:
            end = offset + self._short[0] * CHUNK_BYTES + self._short[1]
        ranges = [(0, offset)] if offset else []
        for first, stop in self.held.ranges():
            start_byte, end_byte = offset + first * CHUNK_BYTES, offset + stop * CHUNK_BYTES
            end_byte = end_byte if end is None else min(end_byte, end)
            if ranges and ranges[-1][1] == start_byte:
                ranges[-1] = (ranges[-1][0], end_byte)
            else:
                ranges.append((start_byte, end_byte))
        return ranges

    # -- connections ---------------------------------------------------------------------------

    def _start(self, connection: DataConnection) -> None:
        incoming = _Incoming(connection)
        self._incoming.append(incoming)
        self._resume(incoming)

    def _resume(self, incoming: _Incoming) -> None:
        if not incoming.is_finished:
            self._when_readable(incoming.connection, self._receive, incoming)

    def _pause(self, incoming: _Incoming) -> None:
        self._stop_reading(incoming.connection)

    def _receive(self, incoming: _Incoming) -> None:
        """Receive what is there and write the records that are complete."""
        buffer = self._take_buffer()
        if buffer is None:
            self._pause(incoming)
            self._starved.append(incoming)
            return
        buffer.begin(incoming.rest)
        try:
            received = incoming.connection.receive_into(buffer.room(self._read_bytes))
        except OSError as error:
            self._buffers.append(buffer)
            self._lost(incoming, error)
            return
        if not received:
            self._buffers.append(buffer)
            if received == 0:
                self._finish(incoming)
            return
        buffer.filled(received)
        self._moved_at = self._loop.time()
        pause_s = self._limit.spend(received, self._moved_at) if self._limit else 0.0
        if pause_s:
            self._pause(incoming)
            self._later(pause_s, self._resume, incoming)
        runs = self._new_runs(buffer.take(self.size))
        incoming.rest = buffer.rest()
        self._write(incoming.connection, runs, buffer)

    def _take_buffer(self) -> IncomingBatch | None:
        if self._buffers:
            return self._buffers.pop()
        return IncomingBatch(BATCH_RECORDS) if self._buffers_out < BUFFERS else None

    def _lost(self, incoming: _Incoming, error: OSError) -> None:
        """End the transfer, unless the connection brought nothing and the records will tell.

        One that was made late is reset by a sender that has sent everything already.
        """
        if incoming.connection.bytes_received or self._total is None:
            self._broken(incoming.connection, error)
        else:
            self._finish(incoming)

    def _finish(self, incoming: _Incoming) -> None:
        """Note the end of a connection, and look at what it cut short."""
        self._pause(incoming)
        incoming.is_finished = True
        try:
            short = parse_short(incoming.rest)
        except RecordError as error:
            raise TransferAborted(str(error)) from error
        if short is not None:
            self._take_short(incoming.connection, *short)
        self._check_complete()

    def _take_short(self, connection: DataConnection, number: int, data: bytes) -> None:
        """Take a record that its connection's end cut short: the last one, if the size allows."""
        if self.size is not None and not (self.size == 0 and number == 0 and not data):
            raise TransferAborted(f"the data connection ended inside record {number}")
        if self._short is not None and self._short != (number, len(data)):
            raise TransferAborted("two data connections ended inside a record")
        self._short = (number, len(data))
        if number not in self.held and data:
            self._write(connection, [Run(number, 1, [memoryview(data)])], None)

    # -- writing -------------------------------------------------------------------------------

    def _new_runs(self, runs: Sequence[Run]) -> list[Run]:
        """Leave out the records that are held already: the first copy counts."""
        new: list[Run] = []
        for run in runs:
            for first, end in self.held.missing(run.first, run.first + run.count):
                new.append(run if end - first == run.count else run.part(first, end))
        return new

    def _write(
        self, connection: DataConnection, runs: list[Run], buffer: IncomingBatch | None
    ) -> None:
        """Write `runs`, now or in a thread; the buffer that holds them comes back afterwards."""
        offset, target = self._target.offset, self._target

        def work() -> int:
            return sum(target.write(run.payloads, offset + run.first * CHUNK_BYTES) for run in runs)

        def written(size: int) -> None:
            if buffer is not None:
                self._buffers.append(buffer)
            for run in runs:
                self.held.add(run.first, run.first + run.count)
            self._moved(connection, size)
            self._checkpoint()
            self._check_complete()

        def written_late(size: int) -> None:
            self._buffers_out -= 1
            written(size)
            while self._starved:
                self._resume(self._starved.pop())

        size = self._work(target.patience, work, written_late) if runs else 0
        if size is None:
            self._buffers_out += 1
        else:
            written(size)

    def _checkpoint(self) -> None:
        """Bring the journal up to date, beside the transfer."""
        now = self._loop.time()
        due = now >= self._checkpoint_at or (
            self.file_bytes >= self._checkpoint_bytes + CHECKPOINT_BYTES
        )
        if self._checkpointing or not due:
            return
        self._checkpointing = True
        held, size, target = self.held_bytes(), self.size, self._target
        end = None if size is None else target.offset + size
        self._in_thread(lambda: target.checkpoint(held, end), self._checkpointed)

    def _checkpointed(self, _: None) -> None:
        self._checkpointing = False
        self._checkpoint_at = self._loop.time() + CHECKPOINT_S
        self._checkpoint_bytes = self.file_bytes

    # -- the end -------------------------------------------------------------------------------

    def _settled(self) -> None:
        self._check_complete()

    def _check_complete(self) -> None:
        """See whether this was all; it is if nothing is missing and nothing may follow."""
        if self._buffers_out or not self._incoming:
            return
        all_ended = all(incoming.is_finished for incoming in self._incoming)
        waiting = self._channel.may_bring_more and self._channel.expected is not None
        if self._total is not None:
            if len(self.held) == self._total and (all_ended or self._grace_over):
                self._done()
            elif len(self.held) == self._total or (all_ended and not waiting):
                self._wait_for_late(all_ended)
        elif all_ended and not waiting and self._channel.may_bring_more and not self._grace_over:
            self._begin_grace()  # what still comes may bring the end of the file
        elif all_ended and not waiting:
            self._end_without_size()

    def _wait_for_late(self, all_ended: bool) -> None:
        """Give the last ends and unannounced connections a moment."""
        if all_ended and (self._grace_over or not self._channel.may_bring_more):
            missing = (self._total or 0) - len(self.held)
            raise TransferAborted(f"{missing} of {self._total} records did not arrive")
        self._begin_grace()

    def _begin_grace(self) -> None:
        if not self._grace_running:
            self._grace_running = True
            state = self._incoming[0].connection.state()
            self._later(max(LATE_S, 2 * state.rtt_s if state else 0), self._end_grace)

    def _end_grace(self) -> None:
        self._grace_over = True
        self._check_complete()

    def _end_without_size(self) -> None:
        """Decide from the records alone whether the file is complete."""
        last = self.held.end - 1
        if self._short is not None and self._short[0] != max(last, 0):
            raise TransferAborted(f"the data connection ended inside record {self._short[0]}")
        if self.held.contiguous != self.held.end:
            missing = self.held.end - len(self.held)
            raise TransferAborted(f"{missing} records below record {last} did not arrive")
        self.size = self.held.end * CHUNK_BYTES
        if self._short is not None and self._short[1]:
            self.size += self._short[1] - CHUNK_BYTES
        self._done()
