"""The journal of a partial file: which byte ranges of the target are held.

A small JSON file beside the partial one, replaced atomically. Ranges are bytes of the file and not
record numbers, so that a restart with another offset cannot confuse them. While a journal exists,
the partial file's size says nothing; a journal that cannot be read stands for an empty one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass

FORMAT_VERSION = 1
MAX_RANGES = 4096
"""Ranges that are written; more are left out (and fetched again), lowest first kept."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What is held of a file."""

    held: tuple[tuple[int, int], ...] | None
    """Byte ranges (start, end), end exclusive, sorted and disjoint; None: all that is there."""

    size: int | None
    """Size of the complete file in bytes, if it is known."""

    source: str | None = None
    """What the content is a copy of, in words that change when the original does."""

    def contiguous(self, file_size: int) -> int:
        """Count the bytes held from the start on without a gap, in a file of `file_size` bytes."""
        if self.held is None:
            return file_size
        held = self.held[0][1] if self.held and self.held[0][0] == 0 else 0
        return min(held, file_size)


def write(directory: int, name: str, journal: Journal) -> None:
    """Write `journal` as `name` in `directory`, atomically. Raises OSError."""
    text = json.dumps(
        {
            "version": FORMAT_VERSION,
            "held": None if journal.held is None else journal.held[:MAX_RANGES],
            "size": journal.size,
            "source": journal.source,
        }
    )
    temporary = f"{name}~"
    descriptor = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o666,
        dir_fd=directory,
    )
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fdatasync(descriptor)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise


def read(directory: int, name: str) -> Journal | None:
    """Read the journal `name` in `directory`; None if there is none. Raises OSError."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return None
    with open(descriptor, encoding="ascii", errors="replace") as file:
        text = file.read()
    try:
        return _parse(text)
    except (ValueError, TypeError, KeyError):
        return Journal((), None)


def _parse(text: str) -> Journal:
    values = json.loads(text)
    if values["version"] != FORMAT_VERSION:
        raise ValueError("unknown version")
    size, source = values["size"], values["source"]
    return Journal(
        None if values["held"] is None else _parse_ranges(values["held"]),
        None if size is None else int(size),
        None if source is None else str(source),
    )


def _parse_ranges(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    held = tuple((int(start), int(end)) for start, end in pairs)
    bounds = [bound for pair in held for bound in pair]
    if bounds != sorted(bounds) or any(bound < 0 for bound in bounds):
        raise ValueError("ranges out of order")
    return held
