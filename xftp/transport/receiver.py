"""Connections to file: records from N of them.

One buffer takes what each connection has in turn, and is written at once. A file system that
makes us wait is written to by threads, each with a buffer of its own; when all are out, reading
stops. So memory is bounded, whatever the file's size.
"""

from __future__ import annotations

import contextlib

from xftp.errors import RecordError, TransferAborted
from xftp.protocol.receipts import Reminders
from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES, IncomingBatch, Run, parse_short
from xftp.protocol.recordset import RecordSet

from .arrivals import Arrivals
from .channels import DataChannel
from .checkpoints import Checkpoints
from .connection import DataConnection
from .ends import Target
from .gathering import MOST_GATHERED_BYTES
from .incoming import Incoming
from .lasting import LastingTransfer, longest_rtt_s
from .ratelimit import RateLimit
from .report import TransferReport
from .transfer import Progress

BATCH_RECORDS = 128
"""Records of one buffer: 1 MiB. Smaller ones cost more Python calls than the cache saves."""

BUFFERS = 8
"""Buffers of one transfer at most, while threads write."""

LATE_S = 1.0
"""How long the ends of the connections, and connections that nobody announced, are waited for
once nothing else is missing; or 2 RTT, if that is longer."""


class RecordReceiver(LastingTransfer):
    """Receives records into `target`, sequence 0 at the byte where `target` goes on.

    What `target` holds behind that byte is not missed, and does not have to come. size: bytes that
    the sequence numbers count through (the file's size less the offset), None if the peer did not
    tell. Then the file is complete when every connection has ended on a record boundary and nothing
    is missing below the highest record.
    """

    def __init__(
        self,
        channel: DataChannel,
        target: Target,
        size: int | None,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        behind = [each for each in target.held if each[0] >= target.offset]
        self._arrivals = Arrivals(size, target.offset, behind)
        self._target = target
        self._incoming: list[Incoming] = []
        self._buffers = [IncomingBatch(BATCH_RECORDS)]
        self._buffers_out = 0
        self._starved: list[Incoming] = []
        self._grace_running = False
        self._grace_over = False
        self._gathers = False
        self._reminders = Reminders()
        self._checkpoints = Checkpoints(self._loop.time())
        self._read_bytes = BATCH_RECORDS * RECORD_BYTES
        if limit is not None:
            self._read_bytes = max(RECORD_BYTES, min(self._read_bytes, limit.batch_bytes))

    @property
    def size(self) -> int | None:
        """Bytes that the sequence numbers count through; None while unknown."""
        return self._arrivals.size

    @property
    def held(self) -> RecordSet:
        """The records that are in the target."""
        return self._arrivals.held

    @property
    def lasts(self) -> bool:
        return super().lasts and self._arrivals.total is not None

    def report(self, offset: int = 0) -> TransferReport:
        return (
            super().report(offset).with_losses(self._arrivals.repeated_bytes, self.lost_connections)
        )

    async def run(self) -> None:
        await self._wait_for(self._target.begin_journal)
        await super().run()

    def held_bytes(self) -> list[tuple[int, int]]:
        """Give the byte ranges of the target that are held, the part before the offset too."""
        return self._arrivals.byte_ranges()

    # -- connections ---------------------------------------------------------------------------

    def _start(self, connection: DataConnection) -> None:
        self._welcome(connection)
        incoming = Incoming(connection, self._loop.time())
        self._incoming.append(incoming)
        if self.lasts:
            with contextlib.suppress(OSError):  # a broken one is found out where it is read
                incoming.persist()
        self._resume(incoming)
        if self._arrivals.is_whole:
            self._check_complete()

    def _resume(self, incoming: Incoming) -> None:
        if not incoming.is_finished:
            self._when_readable(incoming.connection, self._receive, incoming)

    def _pause(self, incoming: Incoming) -> None:
        self._stop_reading(incoming.connection)

    def _receive(self, incoming: Incoming) -> None:
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
        self._heard(incoming.connection)
        pause_s = self._limit.spend(received, self._moved_at) if self._limit else 0.0
        if pause_s:
            self._pause(incoming)
            self._later(pause_s, self._resume, incoming)
        runs = self._arrivals.take(buffer.take(self.size))
        incoming.rest = buffer.rest()
        self._write(incoming.connection, runs, buffer)

    def _take_buffer(self) -> IncomingBatch | None:
        if self._buffers:
            return self._buffers.pop()
        return IncomingBatch(BATCH_RECORDS) if self._buffers_out < BUFFERS else None

    def _lost(self, incoming: Incoming, error: OSError) -> None:
        """End the transfer, unless the connection brought nothing and the records will tell.

        One that was made late is reset by a sender that has sent everything already.
        """
        if self.lasts or incoming.connection.bytes_received or self._arrivals.total is None:
            self._broken(incoming.connection, error)
        else:
            self._finish(incoming)

    def _finish(self, incoming: Incoming) -> None:
        """Note the end of a connection, and look at what it cut short."""
        if self.lasts:
            self._lose(incoming.connection, "the peer closed it")
            return
        self._pause(incoming)
        incoming.is_finished = True
        try:
            short = parse_short(incoming.rest)
        except RecordError as error:
            raise TransferAborted(str(error)) from error
        if short is not None:
            self._write(incoming.connection, self._arrivals.take_short(*short), None)
        self._check_complete()

    # -- writing -------------------------------------------------------------------------------

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
            if self._arrivals.written(runs) and self.lost_connections:
                self._gained()
            self._moved(connection, size)
            if self._gathers and self._is_near_end:
                self._gather_no_more()
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
        if self._checkpoints.begins(self._loop.time(), self.file_bytes):
            held, size, target = self.held_bytes(), self.size, self._target
            end = None if size is None else target.offset + size
            self._in_thread(lambda: target.checkpoint(held, end), self._checkpoints.ended)

    # -- waking --------------------------------------------------------------------------------

    @property
    def _is_near_end(self) -> bool:
        """Whether what is missing could all be waiting for more of its kind."""
        most_bytes = 2 * MOST_GATHERED_BYTES * len(self._incoming)
        return self._arrivals.missing_records * CHUNK_BYTES <= most_bytes

    def _gather(self) -> None:
        """Be woken less often where much comes, and at once again where nothing does."""
        if self._is_near_end:
            self._gather_no_more()
            return
        self._gathers = True
        for incoming in self._incoming:
            incoming.gathering.update(self._loop.time())

    def _gather_no_more(self) -> None:
        self._gathers = False
        for incoming in self._incoming:
            incoming.gathering.end()

    # -- the end -------------------------------------------------------------------------------

    def _settled(self) -> None:
        self._check_complete()

    def _check_whole(self) -> None:
        self._check_complete()

    def _let_go(self, connection: DataConnection) -> None:
        """Forget the record that a lost connection had begun; the end may have come with it."""
        for incoming in self._incoming:
            if incoming.connection is connection:
                incoming.is_finished = True
        self._incoming = [each for each in self._incoming if not each.is_finished]
        self._starved = [each for each in self._starved if not each.is_finished]
        self._later(0, self._check_complete)

    def _expects(self, connection: DataConnection) -> bool:
        """Tell whether a record has begun to come, or the peer's kernel is yet to take receipts."""
        has_begun = any(each.rest for each in self._incoming if each.connection is connection)
        return has_begun or connection.unacknowledged() > 0

    def _tell_all(self, *, again: bool = False) -> None:
        """Tell on every connection what arrived over it; again: even if that was told."""
        now = self._loop.time()
        for incoming in self._incoming:
            # A broken one is found out where it is read: what it brought comes first.
            with contextlib.suppress(OSError):
                incoming.tell(now, all_held=self.is_whole, again=again)

    def _look(self) -> None:
        if not self.lasts:
            return
        self._gather()
        reading = [each.connection for each in self._incoming]
        rtt_s = longest_rtt_s(reading)
        self._tell_all(again=self._reminders.are_due(self._loop.time(), self._moved_at, rtt_s))
        idle_limit_s = self._channel.endurance.idle_limit_s(rtt_s)
        if any(each not in self._reading for each in reading):
            self._moved_at = self._loop.time()  # it is this side that does not want more now
        elif self._loop.time() - self._moved_at > idle_limit_s and not self.is_whole:
            self._suspect_all()
        super()._look()

    def _check_complete(self) -> None:
        """See whether this was all; it is if nothing is missing and nothing may follow."""
        if self.lasts:
            self._check_all_held()
            return
        if self._buffers_out or not self._incoming:
            return
        all_ended = all(incoming.is_finished for incoming in self._incoming)
        waiting = self._channel.may_bring_more and self._channel.expected is not None
        if self._arrivals.total is not None:
            if self._arrivals.is_whole and (all_ended or self._grace_over):
                self._done()
            elif self._arrivals.is_whole or (all_ended and not waiting):
                self._wait_for_late(all_ended)
        elif all_ended and not waiting and self._channel.may_bring_more and not self._grace_over:
            self._begin_grace()  # what still comes may bring the end of the file
        elif all_ended and not waiting:
            self._arrivals.end_without_size()
            self._done()

    def _check_all_held(self) -> None:
        """The same where connections may be lost: only what is held counts."""
        if self._buffers_out:
            return
        if self._arrivals.is_whole and self._connections:
            if not self.is_whole:
                self._whole()
                self._tell_all()
            self._whole()
        elif self._is_confirmed and not self._incoming and not self._grace_over:
            self._begin_grace()  # the reply may be faster than the first connection
        elif self._is_confirmed and not self._incoming:
            raise self._arrivals.missing_error

    def _wait_for_late(self, all_ended: bool) -> None:
        """Give the last ends and unannounced connections a moment."""
        if all_ended and (self._grace_over or not self._channel.may_bring_more):
            raise self._arrivals.missing_error
        self._begin_grace()

    def _begin_grace(self) -> None:
        if not self._grace_running:
            self._grace_running = True
            state = self._connections[0].state() if self._connections else None
            self._later(max(LATE_S, 2 * state.rtt_s if state else 0), self._end_grace)

    def _end_grace(self) -> None:
        self._grace_over = True
        self._check_complete()
