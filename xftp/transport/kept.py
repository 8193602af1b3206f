"""What a cut transfer left of its target: a partial file, and what is held of it.

The functions take a directory descriptor and the target's name, and block.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import NamedTuple

from . import journal
from .journal import Ranges

PART_SUFFIX = ".xftp.part"
JOURNAL_SUFFIX = ".xftp.journal"
_NAME_MAX_BYTES = 255
_ALL_SUFFIXES = (PART_SUFFIX, JOURNAL_SUFFIX, journal.temporary_name(JOURNAL_SUFFIX))


def working_names(name: str) -> tuple[str, str]:
    """Give the names of the partial file and of its journal for the target `name`."""
    raw = os.fsencode(name)
    room = _NAME_MAX_BYTES - len(journal.temporary_name(JOURNAL_SUFFIX))
    if len(raw) > room:
        digest = hashlib.sha256(raw).hexdigest()[:16].encode()
        name = os.fsdecode(raw[: room - len(digest) - 1] + b"~" + digest)
    return name + PART_SUFFIX, name + JOURNAL_SUFFIX


def is_working_name(name: str) -> bool:
    """Tell whether `name` is one that partial files and journals have."""
    return name.endswith(_ALL_SUFFIXES)


class Kept(NamedTuple):
    """What a cut transfer left."""

    held: Ranges
    """Byte ranges (start, end) of the target, end exclusive, sorted and disjoint."""

    size: int | None = None
    """Of the complete file in bytes, if it is known."""

    source: str | None = None
    """What it is a copy of, in words that change when the original does; None: not known."""

    @property
    def contiguous(self) -> int:
        """Bytes held from the start on without a gap."""
        return self.held[0][1] if self.held and self.held[0][0] == 0 else 0

    @property
    def byte_count(self) -> int:
        """Bytes held, wherever they are."""
        return sum(end - start for start, end in self.held)


def find_kept(directory: int, name: str) -> Kept | None:
    """Find what a cut transfer of `name` left; None if nothing is kept. Raises OSError."""
    part, journal_name = working_names(name)
    try:
        size = os.stat(part, dir_fd=directory, follow_symlinks=False).st_size
    except FileNotFoundError:
        return None
    noted = journal.read(directory, journal_name)
    if noted is None:
        return Kept(((0, size),) if size else ())
    return Kept(noted.held_of(size), noted.size, noted.source)


def kept_length(directory: int, name: str) -> int | None:
    """Give the contiguous length kept of a cut transfer of `name`; None if nothing is kept."""
    kept = find_kept(directory, name)
    return None if kept is None else kept.contiguous


def remove_journal(directory: int, name: str) -> None:
    """Remove the journal of `name`, and what a writer that was killed left of one."""
    noted = working_names(name)[1]
    for leftover in (noted, journal.temporary_name(noted)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover, dir_fd=directory)
