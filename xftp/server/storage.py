"""How much an account may keep beneath its home: bytes and entries.

What is there is counted once, by walking the tree, and from then on with every change that is made
through this server; it is counted again from time to time, as others may change it too. An upload
counts while it arrives, so that many at once have no more room than one. What it replaces is its
own to use: a file can be stored over one of the same size however full it is.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xftp.errors import StorageError
from xftp.transport.kept import JOURNAL_SUFFIX, working_names
from xftp.transport.partial import PartialFile, discard_kept

COUNTED_AGAIN_S = 300.0
"""How old a count may be when an upload begins."""

DEFAULT_ENTRIES = 50_000
"""Files and directories of an account that has a limit of bytes only: the walk that counts them is
to stay below half a second of processor time."""


@dataclass(frozen=True, slots=True)
class StorageLimit:
    """What an account may keep; None: no limit."""

    bytes: int | None = None
    """Of all its files together, cut uploads among them."""

    entries: int | None = None
    """Files and directories."""

    @property
    def most_entries(self) -> int:
        """Entries that may be there: whoever may keep few bytes may not keep empty files either."""
        return DEFAULT_ENTRIES if self.entries is None else self.entries


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of a tree."""

    bytes: int = 0
    entries: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.bytes + other.bytes, self.entries + other.entries)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.bytes - other.bytes, self.entries - other.entries)


class Usage:
    """What is beneath one directory, as far as it is known. Safe in several threads."""

    def __init__(self) -> None:
        self.amount = Amount()
        self._counted_at: float | None = None
        self._arriving: dict[Arrival, int] = {}
        self._lock = threading.Lock()
        self._counting = threading.Lock()

    def count_again(self, root: int, most_entries: int) -> None:
        """Walk through the tree if that was long ago; root: its descriptor. Blocks."""
        with self._counting:
            now = time.monotonic()
            is_new = self._counted_at is not None and now < self._counted_at + COUNTED_AGAIN_S
            if is_new or self._arriving:
                return
            amount = _count(root, most_entries)
            with self._lock:
                self.amount, self._counted_at = amount, now

    def check(self, limit: StorageLimit, coming: Amount) -> None:
        """Raise StorageError if there is no room for so much more."""
        with self._lock:
            self._check(limit, coming)

    def change(self, change: Amount) -> None:
        """Note that so much is there now beside what was."""
        with self._lock:
            self.amount += change

    def grow(self, arrival: Arrival, limit: StorageLimit, size: int) -> None:
        """Note that an upload has come to `size` bytes more than was there before it.

        Raises StorageError if they have no room.
        """
        with self._lock:
            self._check(limit, Amount(size - self._arriving.get(arrival, 0)))
            self._arriving[arrival] = max(size, 0)

    def settle(self, arrival: Arrival, change: Amount) -> None:
        """Note what became of an upload."""
        with self._lock:
            self._arriving.pop(arrival, None)
            self.amount += change

    def _check(self, limit: StorageLimit, coming: Amount) -> None:
        there = self.amount.bytes + sum(self._arriving.values())
        if limit.bytes is not None and coming.bytes > 0 and there + coming.bytes > limit.bytes:
            raise StorageError(f"The account may keep {limit.bytes} bytes, which this would exceed")
        if coming.entries > 0 and self.amount.entries + coming.entries > limit.most_entries:
            raise StorageError(f"The account may keep {limit.most_entries} files and directories")


class Usages:
    """What is known of the directories that accounts have as their homes."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Usage] = {}

    def of(self, root: Path) -> Usage:
        """Give the usage of a directory; the same for all accounts that share it."""
        try:
            status = root.stat()
        except OSError:  # who opens it is told
            return Usage()
        return self._known.setdefault((status.st_dev, status.st_ino), Usage())


class Storage:
    """What one session may keep beneath its root."""

    def __init__(
        self, usage: Usage | None = None, limit: Callable[[], StorageLimit | None] = lambda: None
    ) -> None:
        """usage: shared by all sessions with this root; limit: as it is now, None for none."""
        self._usage = usage or Usage()
        self._limit = limit

    def check(
        self, root: int, directory: int, name: str, size: int | None, *, extend: bool = False
    ) -> None:
        """See, before anything moves, that there is room for `name` to become `size` bytes.

        root: a descriptor, as `directory`; size: None if it is not known; extend: it is what comes
        behind what is there. Raises StorageError.
        """
        limit = self._limit()
        if limit is None:
            return
        self._usage.count_again(root, limit.most_entries)
        there = _amount_of(directory, name)
        new_bytes = 0 if size is None else size if extend else size - there.bytes
        self._usage.check(limit, Amount(new_bytes, 0 if there.entries else 1))

    def opened(
        self, root: int, directory: int, name: str, make: Callable[[type[PartialFile]], PartialFile]
    ) -> PartialFile:
        """Make the partial file of an upload, of the kind that `make` is given.

        Raises StorageError if there is no room for another entry.
        """
        limit = self._limit()
        if limit is None:
            return make(PartialFile)
        self.check(root, directory, name, None)
        before = _amount_of(directory, name)
        target = make(MeteredFile)
        assert isinstance(target, MeteredFile)
        target.arrival = Arrival(self._usage, limit, directory, name, before, target.held)
        return target

    @contextlib.contextmanager
    def changing(self, directory: int, name: str) -> Iterator[None]:
        """Note what becomes of a directory's entry meanwhile."""
        if self._limit() is None:
            yield
            return
        before = _amount_of(directory, name)
        yield
        self._usage.change(_amount_of(directory, name) - before)


class Arrival:
    """One upload under way, and what it may take."""

    def __init__(
        self,
        usage: Usage,
        limit: StorageLimit,
        directory: int,
        name: str,
        before: Amount,
        held: Sequence[tuple[int, int]],
    ) -> None:
        self._usage, self._limit = usage, limit
        self._directory, self._name = os.dup(directory), name
        self._before = before
        self._size = sum(end - start for start, end in held)
        self._head = held[0][1] if held and not held[0][0] else 0

    def take(self, offset: int, size: int) -> None:
        """Take room for bytes that are to be written. Raises StorageError."""
        size = max(0, offset + size - max(offset, self._head))  # in its head, others are replaced
        self._usage.grow(self, self._limit, self._size + size - self._before.bytes)
        self._size += size

    def end(self) -> bool:
        """Note what is there now; tell whether it is more than may be kept."""
        try:
            change = _amount_of(self._directory, self._name) - self._before
        finally:
            self._usage.settle(self, change)
        return self._limit.bytes is not None and self._usage.amount.bytes > self._limit.bytes

    def discard(self) -> None:
        """Remove what is kept of it. Raises FileError."""
        before = _amount_of(self._directory, self._name)
        discard_kept(self._directory, self._name)
        self._usage.change(_amount_of(self._directory, self._name) - before)

    def close(self) -> None:
        """Close the directory."""
        os.close(self._directory)


class MeteredFile(PartialFile):
    """A partial file that takes no more room than its account has."""

    arrival: Arrival
    """Given to it as soon as it is made."""

    def write(self, pieces: Sequence[memoryview], offset: int) -> int:
        """Write, if there is room. Raises StorageError, FileError."""
        self.arrival.take(offset, sum(map(len, pieces)))
        return super().write(pieces, offset)

    def commit(self, size: int, **options: Any) -> None:
        """Make the content the target."""
        with self._accounted():
            super().commit(size, **options)

    def keep(self, held: Sequence[tuple[int, int]], size: int | None) -> int:
        """Keep what arrived, unless it is too much beside what it was to replace."""
        with self._accounted():
            return super().keep(held, size)

    def discard(self) -> None:
        """Remove the partial file."""
        with self._accounted():
            super().discard()

    @contextlib.contextmanager
    def _accounted(self) -> Iterator[None]:
        try:
            try:
                yield
            finally:
                is_too_much = self.arrival.end()
            if is_too_much and self.replaces_file:
                with contextlib.suppress(FileNotFoundError):
                    self.arrival.discard()
        finally:
            self.arrival.close()


def _amount_of(directory: int, name: str) -> Amount:
    """Tell what is there under a name, and of a cut upload of it. Raises OSError."""
    return _of_one(directory, name) + _of_one(directory, working_names(name)[0])


def _of_one(directory: int, name: str) -> Amount:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return Amount()
    return Amount(status.st_size if stat.S_ISREG(status.st_mode) else 0, 1)


def _count(root: int, most_entries: int) -> Amount:
    """Walk through a tree, but no further than to more entries than there may be."""
    total = entries = 0
    top = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
    try:
        for _, directories, files, descriptor in os.fwalk(".", dir_fd=top):
            entries += len(directories)
            for name in files:
                if not name.endswith(JOURNAL_SUFFIX):
                    each = _of_one(descriptor, name)
                    total, entries = total + each.bytes, entries + each.entries
            if entries > most_entries:
                break
    finally:
        os.close(top)
    return Amount(total, entries)
