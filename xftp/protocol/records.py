"""The record of appendix B.4, and buffers that hold many of them.

A record is a 4-byte big-endian sequence number followed by 8192 bytes of the file; only the record
that holds the end of the file may be shorter (Allman 1997, B.4 and figure B.1).

    +----------------+--------------------------------+
    | sequence (u32) | 8192 bytes at sequence x 8192  |
    +----------------+--------------------------------+

Both buffers handle whole batches with a constant number of Python calls: the payloads are views
that are made once and handed to `preadv`/`pwritev`, the sequence numbers are written and read with
one strided copy. A record costs no Python object of its own.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from xftp.errors import RecordError, TooLargeError

CHUNK_BYTES = 8192
"""Bytes of the file in a record (Allman 1997 B.4)."""

HEADER_BYTES = 4
"""Bytes of a sequence number (Allman 1997 B.4)."""

RECORD_BYTES = HEADER_BYTES + CHUNK_BYTES
"""Bytes of a full record on the wire."""

MAX_RECORDS = 2**32
"""Sequence numbers that 4 bytes can tell apart: 32 TiB of file."""

_WORD = array("I").itemsize
assert _WORD == HEADER_BYTES, "records need a platform whose unsigned int has 4 bytes"
_STRIDE = RECORD_BYTES // _WORD


def record_count(size: int) -> int:
    """Count the records of `size` bytes of file.

    Raises TooLargeError if the sequence numbers would not suffice.
    """
    count = -(-size // CHUNK_BYTES)
    if count > MAX_RECORDS:
        raise TooLargeError(
            f"{size} bytes are more than {MAX_RECORDS} records of {CHUNK_BYTES} bytes can hold"
        )
    return count


def wire_bytes(size: int) -> int:
    """Count the bytes that `size` bytes of file need on the data connections."""
    return size + HEADER_BYTES * record_count(size)


def span_bytes(first: int, count: int, size: int) -> int:
    """Count the bytes of file in `count` records from `first`, in a file of `size` bytes."""
    return min((first + count) * CHUNK_BYTES, size) - first * CHUNK_BYTES


class OutgoingBatch:
    """A buffer of up to `capacity` consecutive records on their way out.

    Read the file into `payloads(...)`, then `seal(...)` gives the bytes for the wire.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._view = memoryview(bytearray(capacity * RECORD_BYTES))
        self._words = self._view.cast("I")
        self._payloads = [
            self._view[start + HEADER_BYTES : start + RECORD_BYTES]
            for start in range(0, capacity * RECORD_BYTES, RECORD_BYTES)
        ]

    def payloads(self, size: int) -> list[memoryview]:
        """Give the places for `size` consecutive bytes of the file, at most `capacity` chunks."""
        full, rest = divmod(size, CHUNK_BYTES)
        places = self._payloads[:full]
        if rest:
            places.append(self._payloads[full][:rest])
        return places

    def seal(self, first: int, size: int) -> memoryview:
        """Number the records from `first` and give the wire bytes of `size` bytes of file."""
        count = -(-size // CHUNK_BYTES)
        numbers = array("I", range(first, first + count))
        if sys.byteorder == "little":
            numbers.byteswap()
        self._words[: count * _STRIDE : _STRIDE] = memoryview(numbers)
        return self._view[: count * HEADER_BYTES + size]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive records that arrived together."""

    first: int
    """Sequence number of the first record."""

    count: int
    """How many records."""

    payloads: list[memoryview]
    """The file's bytes, one view a record; only the last may be shorter than a chunk."""

    def part(self, first: int, end: int) -> Run:
        """Cut out the records from `first` to before `end`."""
        start, stop = first - self.first, end - self.first
        return Run(first, end - first, self.payloads[start:stop])


@lru_cache(maxsize=256)
def _numbers_at(count: int) -> struct.Struct:
    return struct.Struct(">" + f"I{CHUNK_BYTES}x" * count)


class IncomingBatch:
    """A buffer of up to `capacity` records as they arrive.

    `begin` with what a connection left over the last time, fill `room()`, tell `filled(n)`, then
    `take()` the complete records and keep the `rest()`, a record that has only partly arrived. So
    one buffer serves all connections in turn.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._view = memoryview(bytearray(capacity * RECORD_BYTES))
        self._payloads = [
            self._view[start + HEADER_BYTES : start + RECORD_BYTES]
            for start in range(0, capacity * RECORD_BYTES, RECORD_BYTES)
        ]
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def room(self, limit: int | None = None) -> memoryview:
        """Give the place for the next bytes, at most `limit` of them."""
        return self._view[self._end : None if limit is None else self._end + limit]

    def filled(self, count: int) -> None:
        """Note that `count` bytes were put into `room()`."""
        self._end += count

    def begin(self, rest: bytes) -> None:
        """Start with the bytes of a record that has partly arrived; forget everything else."""
        self._end = len(rest)
        self._view[: self._end] = rest

    def take(self, size: int | None) -> list[Run]:
        """Give the complete records as runs of consecutive ones; their bytes stay in the buffer.

        size: the bytes that the sequence numbers count through, None while unknown. Where it is
        known, a short last record that is complete is given too; without it that is only known
        when the connection ends (see `parse_short`). The buffer must not be used again before the
        runs were.

        Raises RecordError if a sequence number lies beyond the end of the file.
        """
        if size is None:
            return list(self._runs(self._numbers(0), 0))
        last = (size - 1) // CHUNK_BYTES
        last_bytes = size - last * CHUNK_BYTES
        runs: list[Run] = []
        slot = 0
        while True:
            numbers = self._numbers(slot)
            at = self._find(numbers, last) if last_bytes < CHUNK_BYTES else len(numbers)
            runs.extend(self._runs(numbers[:at], slot))
            slot += at
            if at == len(numbers) and not self._has_short(slot, last, last_bytes):
                break
            runs.append(Run(last, 1, [self._pull_out(slot, last_bytes)]))
        for run in runs:
            if run.first + run.count - 1 > last:
                raise RecordError(
                    f"record {run.first + run.count - 1} lies beyond the end of {size} bytes"
                )
        return runs

    def _numbers(self, slot: int) -> tuple[int, ...]:
        """Read the sequence numbers of the full-sized records from buffer slot `slot` on."""
        count = self._end // RECORD_BYTES - slot
        return _numbers_at(count).unpack_from(self._view, slot * RECORD_BYTES) if count > 0 else ()

    @staticmethod
    def _find(numbers: tuple[int, ...], last: int) -> int:
        """Find the place of the short record `last`, or the place after all."""
        return numbers.index(last) if last in numbers else len(numbers)

    def _has_short(self, slot: int, last: int, last_bytes: int) -> bool:
        """Tell whether the short record `last` is complete in buffer slot `slot`."""
        start = slot * RECORD_BYTES
        return (
            last_bytes < CHUNK_BYTES
            and self._end >= start + HEADER_BYTES + last_bytes
            and self._number_at(start) == last
        )

    def _pull_out(self, slot: int, last_bytes: int) -> memoryview:
        """Copy the short record out of `slot` and move what follows it up into its place.

        So every other record goes on starting at a multiple of RECORD_BYTES. It happens once or
        a few times in a file, on one connection.
        """
        start = slot * RECORD_BYTES
        stop = start + HEADER_BYTES + last_bytes
        payload = memoryview(bytes(self._view[start + HEADER_BYTES : stop]))
        following = bytes(self._view[stop : self._end])
        self._end = start + len(following)
        self._view[start : self._end] = following
        return payload

    def _number_at(self, start: int) -> int:
        return int.from_bytes(self._view[start : start + HEADER_BYTES], "big")

    def _runs(self, numbers: tuple[int, ...], slot: int) -> Iterator[Run]:
        """Group the records of `numbers`, which start at buffer slot `slot`, into runs."""
        if not numbers:
            return
        begin = 0
        if numbers != tuple(range(numbers[0], numbers[0] + len(numbers))):
            for index in range(1, len(numbers)):
                if numbers[index] != numbers[index - 1] + 1:
                    yield self._run(numbers, begin, index, slot)
                    begin = index
        yield self._run(numbers, begin, len(numbers), slot)

    def _run(self, numbers: tuple[int, ...], begin: int, end: int, slot: int) -> Run:
        return Run(numbers[begin], end - begin, self._payloads[slot + begin : slot + end])

    def rest(self) -> bytes:
        """Copy the bytes behind the last complete record, after `take`."""
        return bytes(self._view[self._end - self._end % RECORD_BYTES : self._end])


def parse_short(rest: bytes) -> tuple[int, bytes] | None:
    """Read the record that the end of a connection cut short: its number and its bytes.

    None if the connection ended on a record boundary. Raises RecordError if not even the sequence
    number is complete.
    """
    if not rest:
        return None
    if len(rest) < HEADER_BYTES:
        raise RecordError("the data connection ended inside a sequence number")
    return int.from_bytes(rest[:HEADER_BYTES], "big"), rest[HEADER_BYTES:]
