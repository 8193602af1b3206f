"""File to connections: records over N of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES, record_count, span_bytes
from xftp.protocol.recordset import RecordSet
from xftp.protocol.repeating import Drain, RepeatBudget
from xftp.protocol.striping import Striping

from .channels import DataChannel
from .connection import DataConnection
from .ends import Source
from .feeder import Feeder
from .lasting import LastingTransfer
from .outgoing import KEPT_RECORDS, LARGEST_BATCH, Outgoing
from .ratelimit import RateLimit
from .report import TransferReport
from .sockets import give_up_after, send_small_at_once
from .stragglers import Stragglers
from .transfer import Progress, Sender

_CALLS_PER_TURN = 8

_TAIL_LOOK_S = 0.001
_TAIL_LOOKS_PER_RTT = 16
"""How often it is looked for the end of the transfer once all was given out."""

_ORPHAN_S = 20.0
"""How long the kernel goes on with a connection that is closed before its data arrived."""


class RecordSender(LastingTransfer, Sender):
    """Sends the bytes of `source` from `offset` on as records, sequence 0 at `offset`.

    With `only`, a part of them.
    """

    def __init__(
        self,
        channel: DataChannel,
        source: Source,
        offset: int = 0,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
        feeds: int | None = None,
        only: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Make a sender; feeds: give records to so many connections at first, and then to as many
        as pay; None: to all; only: the records (start, end) that are sent, in order; None: all."""
        super().__init__(channel, limit=limit, progress=progress)
        self._feeder = None if feeds is None else Feeder(feeds)
        self._source = source
        self._offset = offset
        self._size = source.size - offset
        sent = [(0, record_count(self._size))] if only is None else only
        self.to_send = sum(span_bytes(first, end - first, self._size) for first, end in sent)
        """Bytes of the file that go out once."""
        self._striping = Striping(sent, self._size)
        self._stragglers = Stragglers(self._striping, RepeatBudget(self.to_send), self._repeat)
        self._drain = Drain()
        self._feeding: dict[int, Outgoing] = {}
        self._draining: set[int] = set()
        self._counted = RecordSet()
        self._most_delivered = 0
        self._tail_is_watched = False
        largest = LARGEST_BATCH
        if limit is not None:
            largest = max(1, min(largest, limit.batch_bytes // CHUNK_BYTES))
        self._largest_batch = largest

    def report(self, offset: int = 0) -> TransferReport:
        return (
            super().report(offset).with_losses(self._striping.repeated_bytes, self.lost_connections)
        )

    # -- sending -------------------------------------------------------------------------------

    def _start(self, connection: DataConnection) -> None:
        self._welcome(connection)
        lane = self._striping.open()
        outgoing = Outgoing(connection, lane, self._largest_batch, self._loop.time())
        self._feeding[connection.number] = outgoing
        self._resume(outgoing)

    def _resume(self, outgoing: Outgoing) -> None:
        if not outgoing.is_lost:
            self._when_writable(outgoing.connection, self._send, outgoing)

    def _pause(self, outgoing: Outgoing) -> None:
        self._loop.remove_writer(outgoing.connection.fileno())

    def _send(self, outgoing: Outgoing) -> None:
        """Send while the connection takes it, but let the other connections have their turn."""
        for _ in range(_CALLS_PER_TURN):
            sent = self._send_on(outgoing)
            if sent is None:
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

    def _send_on(self, outgoing: Outgoing) -> int | None:
        """Send of the batch, or of the next one; None if that does not go on now.

        Nothing new is taken, and no end is found, before what was taken has gone to the socket.
        """
        connection = outgoing.connection
        try:
            if not connection.flush():
                return None
            if not outgoing.waiting and not self._load(outgoing):
                return None
            return connection.send(outgoing.waiting)
        except OSError as error:
            self._broken(connection, error)
            return None

    def _note_sent(self, outgoing: Outgoing, sent: int) -> None:
        whole = sent == len(outgoing.waiting)
        outgoing.waiting = outgoing.waiting[sent:]
        if whole:
            outgoing.batch_size.took_all()
            self._count(outgoing)
        else:
            outgoing.batch_size.took(sent // CHUNK_BYTES)
        now = self._loop.time()
        if not self.lasts:  # there it is acknowledgments that count
            self._moved_at = now
        outgoing.unsent_limit.update(now)

    def _count(self, outgoing: Outgoing) -> None:
        """Account for a batch that was sent; what is sent again was counted before."""
        first, count = outgoing.run
        if not self.lasts:
            self._account(outgoing.connection, outgoing.batch_file_bytes)
            return
        if self.lost_connections or self._tail_is_watched:
            new = list(self._counted.missing(first, first + count))
            size = sum(span_bytes(start, end - start, self._size) for start, end in new)
        else:
            size = outgoing.batch_file_bytes
        self._counted.add(first, first + count)
        if size:
            self._account(outgoing.connection, size)

    def _count_rest(self) -> None:
        """Account for what went over other connections than those that were to carry it."""
        rest = self.to_send - self.file_bytes
        if rest > 0:
            self._account(self._connections[-1], rest)

    def _load(self, outgoing: Outgoing) -> bool:
        """Give the connection its next records; False if they are not at hand at once."""
        if self._may_rest():
            self._pause(outgoing)
            outgoing.is_idle = True
            return False
        run = self._striping.take(outgoing.lane, outgoing.batch_size.records)
        if run is None:
            self._nothing_left_for(outgoing)
            return False
        return self._fill(outgoing, run)

    def _may_rest(self) -> bool:
        """Tell whether enough other connections are at work."""
        if self._feeder is None or self._striping.is_exhausted:
            return False
        return self._feeder.has_enough(self._feeding.values())

    def _feed_as_many_as_pay(self, now: float) -> None:
        if self._feeder is None or self._striping.is_exhausted:
            return
        delivered_bytes = self._striping.delivered * CHUNK_BYTES
        if self._feeder.look(now, self._feeding.values(), delivered_bytes):
            self._wake()

    def _fill(self, outgoing: Outgoing, run: tuple[int, int]) -> bool:
        outgoing.run = first, count = run
        size = span_bytes(first, count, self._size)
        places = outgoing.places(size)
        at = self._offset + first * CHUNK_BYTES
        if self._source.read_cached(places, at, size):
            outgoing.load(size)
            return True
        self._pause(outgoing)
        outgoing.is_loading = True
        self._in_thread(
            lambda: self._source.read(places, at, size),
            lambda _: self._loaded_late(outgoing, size),
        )
        return False

    def _loaded_late(self, outgoing: Outgoing, size: int) -> None:
        if outgoing.is_lost:
            return
        outgoing.load(size)
        self._resume(outgoing)
        self._send(outgoing)

    # -- the end -------------------------------------------------------------------------------

    def _nothing_left_for(self, outgoing: Outgoing) -> None:
        """End with a connection; or keep it at hand, where it may carry what another does not."""
        if self.lasts:
            self._pause(outgoing)
            outgoing.is_idle = True
            with contextlib.suppress(OSError):  # it broke, which is seen where it is looked at
                send_small_at_once(outgoing.connection.sock)
            if not self._tail_is_watched:
                self._tail_is_watched = True
                self._watch_tail(_TAIL_LOOK_S)
            return
        resting = [each for each in self._feeding.values() if each.is_idle]
        for each in (outgoing, *resting):
            number = each.connection.number
            del self._feeding[number]
            self._draining.add(number)
        for each in (outgoing, *resting):
            self._finish(each.connection)

    def _watch_tail(self, again_s: float) -> None:
        """Look often for the last acknowledgments, and let idle connections help out."""
        self._look()
        if self._outcome.done() or self.is_whole:
            return
        self._stragglers.help(self._feeding.values(), self._loop.time())
        rtts = [
            state.rtt_s for each in self._feeding.values() if (state := each.connection.state())
        ]
        slowest_s = max(_TAIL_LOOK_S, min(rtts, default=0.0) / _TAIL_LOOKS_PER_RTT)
        self._later(again_s, self._watch_tail, min(2 * again_s, slowest_s))

    def _repeat(self, outgoing: Outgoing, run: tuple[int, int]) -> None:
        outgoing.is_idle = False
        if self._fill(outgoing, run):
            self._resume(outgoing)

    def _wake(self) -> None:
        """Let idle connections carry what was given back."""
        for outgoing in self._feeding.values():
            if outgoing.is_idle and not self._striping.is_exhausted:
                outgoing.is_idle = False
                self._resume(outgoing)

    def _drained(self, connection: DataConnection) -> None:
        self._draining.discard(connection.number)
        self._check_done()

    def _check_done(self) -> None:
        if not self._feeding and not self._draining and self._striping.is_exhausted:
            self._done()

    def _check_whole(self) -> None:
        self._count_rest()
        self._done()  # the peer has it all, whatever is still outstanding here

    def _end_connections(self) -> None:
        for outgoing in self._feeding.values():
            if not outgoing.lane.outstanding_bytes:
                continue
            if self._is_confirmed:
                outgoing.connection.reset()
            else:  # what it holds has arrived otherwise
                with contextlib.suppress(OSError):
                    give_up_after(outgoing.connection.sock, _ORPHAN_S)
        super()._end_connections()

    # -- how the connections fare ----------------------------------------------------------------

    def _look(self) -> None:
        now = self._loop.time()
        went_on = False
        for outgoing in tuple(self._feeding.values()):
            went_on |= self._look_at(outgoing, now)
        self._feed_as_many_as_pay(now)
        self._relieve_stalled(now)
        if not self.lasts:
            return
        on_their_way = sum(each.lane.outstanding_bytes for each in self._feeding.values())
        self._drain.note(now, self._striping.delivered * CHUNK_BYTES, on_their_way)
        for outgoing in tuple(self._feeding.values()):
            self._judge(outgoing, now, others_went_on=went_on)
        super()._look()
        if self._striping.is_delivered:
            self._count_rest()
            self._whole()

    def _relieve_stalled(self, now: float) -> None:
        """Take back what a connection holds that takes nothing: for others, and for the memory."""
        for outgoing in self._feeding.values():
            if not outgoing.is_stalled(now):
                continue
            if len(outgoing.waiting) > KEPT_RECORDS * RECORD_BYTES:
                sent = outgoing.connection.bytes_sent
                outgoing.give_back(self._striping.take_back(outgoing.lane, sent))
                if not outgoing.waiting and outgoing.batch_file_bytes:
                    self._count(outgoing)  # the rest of it had gone
                self._wake()
            outgoing.let_go()

    def _look_at(self, outgoing: Outgoing, now: float) -> bool:
        """Note what was acknowledged; tell whether it is more than before."""
        connection = outgoing.connection
        problem = connection.problem()
        if problem is not None:
            self._broken(connection, problem)
            return False
        if not self.lasts:
            return self._striping.acknowledge(outgoing.lane, connection.acknowledged())
        if not self._read_receipts(outgoing):
            return False
        went_on = self._striping.acknowledge(outgoing.lane, outgoing.receipts.count)
        outgoing.note(now, went_on=went_on)
        if went_on:
            self._heard(connection)
        return went_on

    def _read_receipts(self, outgoing: Outgoing) -> bool:
        """Read what the receiver says; False if the connection is no more."""
        connection = outgoing.connection
        try:
            said = connection.receive()
        except OSError as error:
            self._broken(connection, error)
            return False
        if said == b"":
            self._lose(connection, "the peer closed it")
            return False
        if said is not None:
            outgoing.receipts.feed(said, connection.bytes_sent)
            if outgoing.receipts.all_held:
                self._count_rest()
                self._whole()
        return True

    def _read_last_receipts(self, outgoing: Outgoing) -> None:
        """Read what a lost connection still tells, so that less is sent again."""
        with contextlib.suppress(OSError):
            said = outgoing.connection.receive()
            if said:
                outgoing.receipts.feed(said, outgoing.connection.bytes_sent)
                self._striping.acknowledge(outgoing.lane, outgoing.receipts.count)

    def _judge(self, outgoing: Outgoing, now: float, *, others_went_on: bool) -> None:
        """Give up a connection that is silent while others go on; suspect it where all are."""
        if not outgoing.lane.outstanding_bytes:
            return
        endurance, progress = self._channel.endurance, outgoing.progress(now)
        silent_s = outgoing.silent_beside_others_s(now, others_went_on=others_went_on)
        if silent_s > endurance.silent_limit_s(progress, self._drain.seconds):
            reason = f"nothing arrived for {outgoing.silent_s(now):.1f} s"
            self._lose(outgoing.connection, reason)
        elif progress.silent_s > endurance.idle_limit_s(progress.rtt_s):
            self._suspects.add(outgoing.connection)

    def _expects(self, connection: DataConnection) -> bool:
        """Tell whether receipts are yet to come on a connection."""
        outgoing = self._feeding.get(connection.number)
        return outgoing is not None and outgoing.lane.outstanding_bytes > 0

    def _let_go(self, connection: DataConnection) -> None:
        outgoing = self._feeding.pop(connection.number, None)
        if outgoing is None:
            return
        outgoing.is_lost = True
        outgoing.waiting = memoryview(b"")
        self._read_last_receipts(outgoing)
        self._striping.take_back(outgoing.lane, connection.bytes_sent)
        in_vain = self._losses_in_a_row >= self._channel.limit
        self._striping.close(outgoing.lane, go_last=in_vain)
        if self._striping.delivered > self._most_delivered:
            self._most_delivered = self._striping.delivered
            self._gained()
        self._wake()

    def _broken(self, connection: DataConnection, error: OSError) -> None:
        """End the transfer, unless it lasts or the connection had not carried anything.

        One that was made late is reset by a receiver that has everything already.
        """
        self._draining.discard(connection.number)
        if self.lasts or connection.bytes_sent:
            super()._broken(connection, error)
            return
        self._loop.remove_writer(connection.fileno())
        if connection.number in self._feeding:
            self._let_go(connection)
            if not self._feeding and not self._channel.may_bring_more:
                super()._broken(connection, error)
                return
        self._check_done()
