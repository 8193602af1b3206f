"""Which record goes next on which connection, what has arrived, and what is sent once more.

Late binding: no record belongs to a connection before that connection can send it now. A fixed
share or a round robin would tie every connection to the slowest (Allman 1997 section 2.3). For the
same reason what was given to a connection is not bound to it for good: it is taken back as long as
it was not sent (`take_back`), goes out once more on another connection where that is sooner
(`repeat`), and is given to others when the connection is lost (`close`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .records import CHUNK_BYTES, HEADER_BYTES, RECORD_BYTES, span_bytes
from .recordset import RecordSet


@dataclass(slots=True)
class _Given:
    """A run of records given to a connection."""

    first: int
    records: int
    begin: int
    """Bytes that the connection was given before the run."""
    end: int
    """Bytes that the connection was given up to the end of the run."""

    def whole(self, acknowledged_bytes: int) -> int:
        """Count its records that are wholly acknowledged. Only the last may be shorter."""
        if acknowledged_bytes >= self.end:
            return self.records
        return max(0, acknowledged_bytes - self.begin) // RECORD_BYTES


class Lane:
    """What one connection was given, in the order in which its bytes are sent."""

    def __init__(self) -> None:
        self.given_bytes = 0
        """Bytes of all records given, sequence numbers included."""
        self.acknowledged_bytes = 0
        """Bytes that the peer has acknowledged."""
        self._outstanding: deque[_Given] = deque()

    @property
    def outstanding_bytes(self) -> int:
        """Bytes given and not acknowledged."""
        return self.given_bytes - self.acknowledged_bytes

    def outstanding(self, beyond_bytes: int = 0) -> Iterator[tuple[int, int]]:
        """Give the ranges (start, end) of records not wholly acknowledged, newest first.

        beyond_bytes: of what it was given so much needs no acknowledgment.
        """
        done_bytes = max(self.acknowledged_bytes, beyond_bytes)
        for run in reversed(self._outstanding):
            yield run.first + run.whole(done_bytes), run.first + run.records


class Striping:
    """Hands out the records of a file in order, in runs, to whichever connection asks.

    No record is on its way on more than two connections, and never twice on one.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]], size: int | None = None) -> None:
        """Take the record ranges (start, end), end exclusive, that are to be sent, in order.

        size: bytes that the record numbers count through, which tells how long the last one is.
        """
        self._ranges = deque((start, end) for start, end in ranges if start < end)
        self._size = size
        self._total = len(RecordSet(self._ranges))
        self._delivered = RecordSet()
        self._repeated = RecordSet()
        self._lanes: list[Lane] = []
        self.repeated_bytes = 0
        """Bytes of the file that were to be sent a second time or more often."""

    @property
    def is_exhausted(self) -> bool:
        """Whether every record was handed out."""
        return not self._ranges

    @property
    def delivered(self) -> int:
        """How many records were wholly acknowledged on some connection."""
        return len(self._delivered)

    @property
    def is_delivered(self) -> bool:
        """Whether every record was wholly acknowledged on some connection."""
        return len(self._delivered) == self._total

    def open(self) -> Lane:
        """Begin with another connection."""
        lane = Lane()
        self._lanes.append(lane)
        return lane

    def take(self, lane: Lane, limit: int) -> tuple[int, int] | None:
        """Give `lane` the next run as (first record, count), at most `limit` records.

        None if every record was handed out.
        """
        if not self._ranges:
            return None
        start, end = self._ranges[0]
        count = min(limit, end - start)
        if start + count == end:
            self._ranges.popleft()
        else:
            self._ranges[0] = (start + count, end)
        self._give(lane, start, count)
        return start, count

    def acknowledge(self, lane: Lane, acknowledged_bytes: int) -> bool:
        """Note how many of the bytes of `lane` the peer has acknowledged; tell if it is more."""
        if acknowledged_bytes <= lane.acknowledged_bytes:
            return False
        lane.acknowledged_bytes = acknowledged_bytes
        outstanding = lane._outstanding
        while outstanding and outstanding[0].begin < acknowledged_bytes:
            run = outstanding[0]
            self._delivered.add(run.first, run.first + run.whole(acknowledged_bytes))
            if run.end > acknowledged_bytes:
                break
            outstanding.popleft()
        return True

    def take_back(self, lane: Lane, sent_bytes: int) -> int:
        """Take from `lane` the records of which no byte was sent; they are the next to go.

        sent_bytes: of all that the lane was given. Gives the bytes of the wire that were taken.
        """
        before = lane.given_bytes
        while lane._outstanding and lane._outstanding[-1].end > sent_bytes:
            run = lane._outstanding.pop()
            kept = min(run.records, max(0, -(-(sent_bytes - run.begin) // RECORD_BYTES)))
            lane.given_bytes = run.begin
            if kept:
                self._give(lane, run.first, kept)
            for start, end in _down(
                self._repeated.missing(run.first + kept, run.first + run.records)
            ):
                self._put_back(start, end)
            self._repeated.remove(run.first + kept, run.first + run.records)
            if kept:
                break
        return before - lane.given_bytes

    def repeat(
        self, lane: Lane, donor: Lane, limit: int, beyond_bytes: int = 0
    ) -> tuple[int, int] | None:
        """Give `lane` records that are on their way on `donor` only, those given last first.

        None if there are none. At most `limit` records, as (first record, count). beyond_bytes:
        the first so many bytes given to `donor` have arrived, though nothing has said so yet.
        """
        for start, end in donor.outstanding(beyond_bytes):
            for begin, stop in _down(self._delivered.missing(start, end)):
                for low, high in _down(self._repeated.missing(begin, stop)):
                    first = max(low, high - limit)
                    self._repeated.add(first, high)
                    self.repeated_bytes += self._file_bytes(first, high - first)
                    self._give(lane, first, high - first)
                    return first, high - first
        return None

    def close(self, lane: Lane, *, go_last: bool = False) -> None:
        """Take what a lost connection had not delivered; it is the next to go.

        go_last: let it wait behind everything else. Where connections are lost before they can tell
        what arrived, the same records would go again and again, and the others never.
        """
        self._lanes.remove(lane)
        under_way = RecordSet(run for other in self._lanes for run in other.outstanding())
        for start, end in lane.outstanding():
            self._repeated.remove(start, end)
            for first, stop in _down(self._delivered.missing(start, end)):
                for low, high in _down(under_way.missing(first, stop)):
                    self.repeated_bytes += self._file_bytes(low, high - low)
                    if go_last:
                        self._ranges.append((low, high))
                    else:
                        self._put_back(low, high)
        lane._outstanding.clear()

    # -- inside --------------------------------------------------------------------------------

    def _put_back(self, start: int, end: int) -> None:
        """Make a range the next to go, joined with the one behind it if they touch."""
        if self._ranges and self._ranges[0][0] == end:
            end = self._ranges.popleft()[1]
        self._ranges.appendleft((start, end))

    def _give(self, lane: Lane, first: int, count: int) -> None:
        begin = lane.given_bytes
        lane.given_bytes += self._file_bytes(first, count) + count * HEADER_BYTES
        lane._outstanding.append(_Given(first, count, begin, lane.given_bytes))

    def _file_bytes(self, first: int, count: int) -> int:
        if self._size is None:
            return count * CHUNK_BYTES
        return span_bytes(first, count, self._size)


def _down(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give ranges in order the last first, so that those put back in front stay in order."""
    return list(ranges)[::-1]


class BatchSize:
    """How many records one connection is given at a time.

    A connection that took a whole batch at once gets twice as many, one that did not gets as many
    as it took: one record at a time on a slow link, `largest` on a fast one. What is given cannot
    be taken back, so a batch stays near to what the connection can send now.
    """

    def __init__(self, largest: int) -> None:
        self.records = 1
        self._largest = largest

    def took_all(self) -> None:
        """Note that a whole batch was accepted at once."""
        self.records = min(2 * self.records, self._largest)

    def took(self, records: int) -> None:
        """Note that only `records` whole records of a batch were accepted at once."""
        self.records = max(1, min(records, self._largest))
