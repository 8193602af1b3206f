"""Which records of a file have arrived, and what that says of the file. No socket, no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xftp.errors import TransferAborted
from xftp.protocol.records import CHUNK_BYTES, Run, record_count
from xftp.protocol.recordset import RecordSet


class Arrivals:
    """The records that came, and those of them that are in the file.

    size: bytes that the sequence numbers count through; None: not told. offset: the byte of the
    file where record 0 goes. held: byte ranges (start, end) behind that offset that are there
    before anything arrives, where the size is known; a record that is there only in part is still
    to come. Raises TooLargeError for more records than there are numbers.
    """

    def __init__(self, size: int | None, offset: int, held: Sequence[tuple[int, int]] = ()) -> None:
        self.size = size
        self.total = None if size is None else record_count(size)
        self.held = RecordSet()
        """Records that are in the file."""
        self.repeated_bytes = 0
        """Bytes of the file that came again."""
        self._offset = offset
        self._came = RecordSet()
        self._held_before = tuple(held)
        for first, end in self._whole_records(held):
            self.held.add(first, end)
            self._came.add(first, end)
        self._short: tuple[int, int] | None = None

    def _whole_records(self, held: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        for start, end in held:
            first = -(-(start - self._offset) // CHUNK_BYTES)
            is_last = end - self._offset == self.size
            yield first, self.total or 0 if is_last else (end - self._offset) // CHUNK_BYTES

    @property
    def is_whole(self) -> bool:
        """Whether every record is in the file; without a size that is not known."""
        return len(self.held) == self.total

    @property
    def missing_records(self) -> int:
        """How many records are not in the file; 0 as long as the size is not known."""
        return max(0, (self.total or 0) - len(self.held))

    @property
    def missing_error(self) -> TransferAborted:
        """The error that says how many records are missing."""
        return TransferAborted(f"{self.missing_records} of {self.total} records did not arrive")

    def take(self, runs: Sequence[Run]) -> list[Run]:
        """Give what is new in `runs`: the first copy counts, though it may not be written yet."""
        new: list[Run] = []
        for run in runs:
            for first, end in list(self._came.missing(run.first, run.first + run.count)):
                new.append(run if end - first == run.count else run.part(first, end))
                self._came.add(first, end)
        fewer = sum(run.count for run in runs) - sum(run.count for run in new)
        if fewer:
            self.repeated_bytes += fewer * CHUNK_BYTES
        return new

    def take_short(self, number: int, data: bytes) -> list[Run]:
        """Take a record that its connection's end cut short: the last one, if the size allows.

        Gives what is new. Raises TransferAborted.
        """
        if self.size is not None and not (self.size == 0 and number == 0 and not data):
            raise TransferAborted(f"the data connection ended inside record {number}")
        if self._short is not None and self._short != (number, len(data)):
            raise TransferAborted("two data connections ended inside a record")
        self._short = (number, len(data))
        return self.take([Run(number, 1, [memoryview(data)])]) if data else []

    def written(self, runs: Sequence[Run]) -> int:
        """Note that runs of `take` are in the file; give how many records they are."""
        return sum(self.held.add(run.first, run.first + run.count) for run in runs)

    def byte_ranges(self) -> list[tuple[int, int]]:
        """Give the byte ranges of the file that are held, the part before the offset too."""
        offset = self._offset
        end = None if self.size is None else offset + self.size
        if self._short is not None:
            end = offset + self._short[0] * CHUNK_BYTES + self._short[1]
        ranges = RecordSet([(0, offset), *self._held_before])  # of bytes
        for first, stop in self.held.ranges():
            start_byte, end_byte = offset + first * CHUNK_BYTES, offset + stop * CHUNK_BYTES
            ranges.add(start_byte, end_byte if end is None else min(end_byte, end))
        return list(ranges.ranges())

    def end_without_size(self) -> None:
        """Find the size from the records alone. Raises TransferAborted if some are missing."""
        last = self.held.end - 1
        if self._short is not None and self._short[0] != max(last, 0):
            raise TransferAborted(f"the data connection ended inside record {self._short[0]}")
        if self.held.contiguous != self.held.end:
            missing = self.held.end - len(self.held)
            raise TransferAborted(f"{missing} records below record {last} did not arrive")
        self.size = self.held.end * CHUNK_BYTES
        if self._short is not None and self._short[1]:
            self.size += self._short[1] - CHUNK_BYTES
