"""The journal of a partial file: which byte ranges of the target are held.

A small JSON file beside the partial one, replaced atomically. Ranges are bytes of the file and not
record numbers, so that a restart with another offset cannot confuse them, and they are on the disk
before they are noted. While a journal exists, the partial file's size says nothing, but for a file
that grows without holes (`Journal.boot`). A journal that cannot be read, or is of another version,
stands for an empty one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FORMAT_VERSION = 2

MAX_RANGES = 4096
"""Ranges that are written; of more, the largest are (and the others are moved again)."""

MAX_BYTES = 1 << 20
"""What is read of a journal: ours are smaller."""

Ranges = tuple[tuple[int, int], ...]
"""Byte ranges (start, end), end exclusive, sorted and disjoint."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Journal(NamedTuple):
    """What is held of a file."""

    held: Ranges
    """What is on the disk."""

    size: int | None
    """Size of the complete file in bytes, if it is known."""

    source: str | None = None
    """What the content is a copy of, in words that change when the original does."""

    boot: str | None = None
    """Of a file that is written from its start on without holes: the boot of the machine
    (random(4), boot_id) that it is written in. While that lasts everything in it counts, as the
    page cache outlives the writer; afterwards `held` does, and for None always."""

    def held_of(self, file_size: int) -> Ranges:
        """Give what is held, in a partial file of `file_size` bytes."""
        if self.boot is not None and self.boot == boot_id():
            return ((0, file_size),) if file_size else ()
        return tuple((start, min(end, file_size)) for start, end in self.held if start < file_size)


@cache
def boot_id() -> str | None:
    """Name this boot of the machine; None where that cannot be told."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text(encoding="utf-8").strip()
    return None


def write(directory: int, name: str, journal: Journal, *, sync: bool = True) -> None:
    """Write `journal` as `name` in `directory`, atomically. Raises OSError.

    sync: False for one that says no more than what an unreadable one would.
    """
    text = json.dumps(
        {
            "version": FORMAT_VERSION,
            "held": _largest(journal.held),
            "size": journal.size,
            "source": journal.source,
            "boot": journal.boot,
        }
    )
    temporary = temporary_name(name)
    descriptor = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o666,
        dir_fd=directory,
    )
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if sync:
                os.fdatasync(descriptor)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise


def temporary_name(name: str) -> str:
    """Give the name under which a journal is written before it replaces the one that is there."""
    return f"{name}~"


def read(directory: int, name: str) -> Journal | None:
    """Read the journal `name` in `directory`; None if there is none. Raises OSError."""
    try:
        descriptor = os.open(
            name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory
        )
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    try:
        return _parse(text)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Journal((), None)


def _parse(text: bytes) -> Journal:
    values = json.loads(text)
    if values["version"] != FORMAT_VERSION:
        raise ValueError("unknown version")
    size, source, boot = values["size"], values["source"], values["boot"]
    return Journal(
        _parse_ranges(values["held"]),
        None if size is None else int(size),
        None if source is None else str(source),
        None if boot is None else str(boot),
    )


def _parse_ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    held = tuple((int(start), int(end)) for start, end in pairs)
    bounds = [bound for pair in held for bound in pair]
    if bounds != sorted(bounds) or any(bound < 0 for bound in bounds):
        raise ValueError("ranges out of order")
    return held


def _largest(held: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    if len(held) <= MAX_RANGES:
        return held
    return sorted(sorted(held, key=lambda pair: pair[0] - pair[1])[:MAX_RANGES])
