"""Which record goes next, and how many at a time.

Late binding: no record belongs to a connection before that connection can send it now. A fixed
share or a round robin would tie every connection to the slowest (Allman 1997 section 2.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Striping:
    """Hands out the records of a file in order, in runs, to whichever connection asks."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take the record ranges (start, end), end exclusive, that are to be sent, in order."""
        self._ranges = deque((start, end) for start, end in ranges if start < end)

    @property
    def is_exhausted(self) -> bool:
        """Whether every record was handed out."""
        return not self._ranges

    def take(self, limit: int) -> tuple[int, int] | None:
        """Give the next run as (first record, count), at most `limit` records; None at the end."""
        if not self._ranges:
            return None
        start, end = self._ranges[0]
        count = min(limit, end - start)
        if start + count == end:
            self._ranges.popleft()
        else:
            self._ranges[0] = (start + count, end)
        return start, count

    def give_back(self, first: int, count: int) -> None:
        """Put a run back that was not sent; it is the next to go."""
        self._ranges.appendleft((first, first + count))


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
