"""A file to be sent: positional reads.

The functions block; the data path calls them from threads.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Hashable, Sequence

from xftp.errors import FileError, LocalFileError, file_error

from .disk import MEMORY_KINDS, filesystem_kind

_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class SourceFile:
    """A regular file to be sent; its size is what it had when it was opened."""

    def __init__(self, descriptor: int, name: str) -> None:
        """Take over an open descriptor. Raises FileError if it is no regular file."""
        self.name = name
        self._descriptor = descriptor
        self._in_memory = filesystem_kind(descriptor) in MEMORY_KINDS
        self._may_try_cache = bool(_RWF_NOWAIT)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise FileError(f"{name}: not a plain file")
        self.size = status.st_size
        self.modified = status.st_mtime
        self._version = _version(status)

    @classmethod
    def open(cls, path: str, *, directory: int | None = None, name: str = "") -> SourceFile:
        """Open `path` for reading. Raises FileError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not block the open
        try:
            descriptor = os.open(path, flags, dir_fd=directory)
        except OSError as error:
            raise file_error(error, name or path) from error
        return cls(descriptor, name or path)

    def version(self) -> Hashable:
        """Give what differs once somebody has written the file. Raises FileError."""
        try:
            return _version(os.fstat(self._descriptor))
        except OSError as error:
            raise file_error(error, self.name) from error

    def was_changed(self) -> bool:
        """Tell whether somebody wrote the file since it was opened. Raises FileError."""
        return self.version() != self._version

    def fileno(self) -> int:
        """Give the descriptor, for `sendfile`."""
        return self._descriptor

    def read_cached(self, places: Sequence[memoryview], offset: int, size: int) -> bool:
        """Read `size` bytes at `offset` if the kernel has them in memory; False if it would wait.

        Raises LocalFileError.
        """
        if self._in_memory:
            self.read(places, offset, size)
            return True
        if not self._may_try_cache:
            return False
        try:
            return os.preadv(self._descriptor, places, offset, _RWF_NOWAIT) == size
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise file_error(error, self.name) from error
            self._may_try_cache = False
            return False

    def is_cached(self, offset: int) -> bool:
        """Tell whether the byte at `offset` can be had without waiting for the disk."""
        return self.read_cached([memoryview(bytearray(1))], offset, 1)

    def read(self, places: Sequence[memoryview], offset: int, size: int) -> None:
        """Read `size` bytes at `offset` into `places`, however long it takes.

        Raises LocalFileError if the disk fails or the file has become shorter.
        """
        done = 0
        remaining = list(places)
        while done < size:
            try:
                count = os.preadv(self._descriptor, remaining, offset + done)
            except OSError as error:
                raise file_error(error, self.name) from error
            if count == 0:
                raise LocalFileError(f"{self.name}: the file became shorter while it was read")
            done += count
            remaining = advance(remaining, count)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


def _version(status: os.stat_result) -> Hashable:
    return status.st_size, status.st_mtime_ns


def advance(pieces: list[memoryview], count: int) -> list[memoryview]:
    """Drop the first `count` bytes of `pieces`."""
    index = 0
    while index < len(pieces) and count >= len(pieces[index]):
        count -= len(pieces[index])
        index += 1
    rest = pieces[index:]
    if count:
        rest[0] = rest[0][count:]
    return rest
