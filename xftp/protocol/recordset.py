"""Which records are held and which are missing, as ranges.

Records arrive nearly in order on each of a few connections, so there are few ranges, and nearly
every record extends one of them: adding costs a binary search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from xftp.errors import RecordError

MAX_RANGES = 65_536
"""Ranges that a set may fall into. A sender that strews single records would otherwise fill our
memory; no honest one comes near (its ranges are as many as its connections have batches)."""


class RecordSet:
    """A set of record numbers, held as sorted, disjoint, non-touching half-open ranges."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._count = 0
        for start, end in ranges:
            self.add(start, end)

    def __len__(self) -> int:
        """Count the records, not the ranges."""
        return self._count

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._starts, number) - 1
        return index >= 0 and number < self._ends[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordSet):
            return NotImplemented
        return self._starts == other._starts and self._ends == other._ends

    def __repr__(self) -> str:
        return f"RecordSet({list(self.ranges())})"

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give the ranges (start, end), end exclusive, in order."""
        return zip(self._starts, self._ends, strict=True)

    @property
    def contiguous(self) -> int:
        """How many records are held from record 0 on without a gap."""
        return self._ends[0] if self._starts and self._starts[0] == 0 else 0

    @property
    def end(self) -> int:
        """The number after the highest record held, 0 for an empty set."""
        return self._ends[-1] if self._ends else 0

    def add(self, start: int, end: int) -> int:
        """Add the records from `start` to before `end`; give how many of them are new.

        Raises RecordError if the set falls into more than MAX_RANGES ranges.
        """
        if start >= end:
            return 0
        if self._extends(start, end):
            return end - start
        # The ranges [low, high) overlap the new one or touch it; they become one with it.
        low = bisect_left(self._ends, start)
        high = bisect_right(self._starts, end)
        swallowed = 0
        new_start, new_end = start, end
        if low < high:
            swallowed = sum(
                stop - begin
                for begin, stop in zip(self._starts[low:high], self._ends[low:high], strict=True)
            )
            new_start = min(start, self._starts[low])
            new_end = max(end, self._ends[high - 1])
        elif len(self._starts) >= MAX_RANGES:
            raise RecordError(f"the records received fall into more than {MAX_RANGES} pieces")
        self._starts[low:high] = [new_start]
        self._ends[low:high] = [new_end]
        new = (new_end - new_start) - swallowed
        self._count += new
        return new

    def _extends(self, start: int, end: int) -> bool:
        """Add records that follow a range and touch no other, which is the common case."""
        index = bisect_left(self._ends, start)
        if index == len(self._ends) or self._ends[index] != start:
            return False
        if index + 1 < len(self._starts) and self._starts[index + 1] <= end:
            return False
        self._ends[index] = end
        self._count += end - start
        return True

    def remove(self, start: int, end: int) -> None:
        """Remove the records from `start` to before `end`, as far as they are held."""
        if start >= end:
            return
        low = bisect_right(self._ends, start)
        high = bisect_left(self._starts, end)
        if low >= high:
            return
        left, right = self._starts[low], self._ends[high - 1]
        self._count -= sum(
            min(stop, end) - max(begin, start)
            for begin, stop in zip(self._starts[low:high], self._ends[low:high], strict=True)
        )
        kept = [(left, start)] * (left < start) + [(end, right)] * (end < right)
        self._starts[low:high] = [begin for begin, _ in kept]
        self._ends[low:high] = [stop for _, stop in kept]

    def missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Give the ranges between `start` and `end` (exclusive) that are not held, in order."""
        index = bisect_right(self._ends, start)
        while start < end:
            if index == len(self._starts) or self._starts[index] >= end:
                yield start, end
                return
            if self._starts[index] > start:
                yield start, self._starts[index]
            start = self._ends[index]
            index += 1
