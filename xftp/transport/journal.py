"""The journal of a partial file: which byte ranges of the target are held.

A small JSON file beside the partial one, replaced atomically. Ranges are bytes of the file and not
record numbers, so that a restart with another offset cannot confuse them. While a journal exists,
the partial file's size says nothing; a journal that cannot be read stands for an empty one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

FORMAT_VERSION = 1
MAX_RANGES = 4096
"""Ranges that are written; more are left out (and fetched again), lowest first kept."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What is held of a file."""

    held: tuple[tuple[int, int], ...]
    """Byte ranges (start, end), end exclusive, sorted and disjoint."""

    size: int | None
    """Size of the complete file in bytes, if it is known."""

    @property
    def contiguous(self) -> int:
        """Bytes held from the start on without a gap."""
        return self.held[0][1] if self.held and self.held[0][0] == 0 else 0


def write(directory: int, name: str, journal: Journal) -> None:
    """Write `journal` as `name` in `directory`, atomically. Raises OSError."""
    text = json.dumps(
        {"version": FORMAT_VERSION, "held": journal.held[:MAX_RANGES], "size": journal.size}
    )
    temporary = f"{name}~"
    descriptor = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o666,
        dir_fd=directory,
    )
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fdatasync(descriptor)
    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


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
    held = tuple((int(start), int(end)) for start, end in values["held"])
    bounds = [bound for pair in held for bound in pair]
    if bounds != sorted(bounds) or any(bound < 0 for bound in bounds):
        raise ValueError("ranges out of order")
    size = values["size"]
    return Journal(held, None if size is None else int(size))
