"""What is done beside a target: names are locked, looked at, copied from, seen on the disk.

The functions block.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from xftp.errors import FileBusyError, FileError, LocalFileError, file_error

_COPY_BYTES = 1 << 24


class Directories:
    """Directories in which names were changed, to be seen on the disk together."""

    def __init__(self) -> None:
        self._descriptors: dict[tuple[int, int], int] = {}

    def add(self, directory: int) -> None:
        """Add the directory of a descriptor, which is duplicated. Raises OSError."""
        status = os.fstat(directory)
        key = status.st_dev, status.st_ino
        if key not in self._descriptors:
            self._descriptors[key] = os.dup(directory)

    def sync(self) -> None:
        """See their names on the disk, and forget them. Raises FileError."""
        try:
            for descriptor in self._descriptors.values():
                sync_directory(descriptor)
        except OSError as error:
            raise file_error(error, "a directory") from error
        finally:
            for descriptor in self._descriptors.values():
                os.close(descriptor)
            self._descriptors.clear()


def sync_directory(directory: int) -> None:
    """See the names of a directory on the disk; its descriptor may be one of O_PATH."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_IN_THE_WAY = (errno.EISDIR, errno.ELOOP)


def open_locked(directory: int, part: str, name: str) -> int:
    """Open the partial file and lock it; another writer may rename it away in between.

    Raises FileBusyError, FileError if something else has its name, and OSError.
    """
    while True:
        descriptor = _open_part(directory, part)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _in_the_way(part)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_still(directory, part, descriptor):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise FileBusyError(f"{name}: another transfer is writing it") from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open_part(directory: int, part: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(part, flags, 0o666, dir_fd=directory)
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise _in_the_way(part) from error
        raise


def _in_the_way(part: str) -> FileError:
    return FileError(f"{part} is in the way: it is no plain file")


def is_still(directory: int, name: str, descriptor: int) -> bool:
    try:
        there = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def target_size(directory: int, name: str) -> int | None:
    """Give the size of the target, None if it does not exist. Raises FileError."""
    try:
        status = os.stat(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: {os.strerror(errno.EISDIR)}")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name}: not a plain file")
    return status.st_size


def copy_head(directory: int, name: str, target: int, size: int) -> None:
    """Copy the first `size` bytes of `name` into `target`; shared blocks where the disk can."""
    source = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        done = 0
        while done < size:
            count = os.copy_file_range(source, target, min(_COPY_BYTES, size - done), done, done)
            if count == 0:
                raise LocalFileError(f"{name}: the file became shorter while it was copied")
            done += count
    finally:
        os.close(source)
