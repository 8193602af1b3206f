"""What records are made of, and what is made of them: a file, or a series of files as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .disk import Patience


class Source(Protocol):
    """What a sender of records reads. The methods block."""

    size: int
    """Bytes."""

    def read_cached(self, places: Sequence[memoryview], offset: int, size: int) -> bool:
        """Read `size` bytes at `offset` if nothing has to be waited for; tell whether it was."""

    def read(self, places: Sequence[memoryview], offset: int, size: int) -> None:
        """Read `size` bytes at `offset`, however long it takes. Raises FileError."""


class Target(Protocol):
    """What a receiver of records writes. The methods block."""

    offset: int
    """Where the content begins."""

    held: tuple[tuple[int, int], ...]
    """Byte ranges (start, end) that are there from the beginning, end exclusive, in order."""

    patience: Patience | None
    """Whether a write may be done at once; None: never."""

    def begin_journal(self) -> None:
        """Begin, before anything is written that may leave holes."""

    def checkpoint(self, held: Sequence[tuple[int, int]], size: int | None) -> None:
        """See on the disk what was written, and note the byte ranges that are held, in order.

        size: of all, if it is known.
        """

    def write(self, pieces: Sequence[memoryview], offset: int) -> int:
        """Write consecutive bytes at `offset`; give how many. Raises FileError."""
