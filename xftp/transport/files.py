"""The file's side of a transfer: positional reads, and a target that is whole or not there.

New content is written under a partial name beside the target and renamed over it when it is
complete, so the target's own name never holds half a file. All paths are a directory descriptor
and a name: what the descriptor stands for cannot be swapped underneath. The functions here block;
the data path calls them from worker threads.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Sequence

from xftp.errors import FileBusyError, FileError, LocalFileError, RestartError, file_error

from . import journal
from .disk import MEMORY_KINDS, Patience, filesystem_kind

PART_SUFFIX = ".xftp.part"
JOURNAL_SUFFIX = ".xftp.journal"
_NAME_MAX_BYTES = 255
_COPY_BYTES = 1 << 24

_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


def working_names(name: str) -> tuple[str, str]:
    """Give the names of the partial file and of its journal for the target `name`."""
    raw = os.fsencode(name)
    room = _NAME_MAX_BYTES - len(JOURNAL_SUFFIX) - len("~")  # the journal is written as such
    if len(raw) > room:
        digest = hashlib.sha256(raw).hexdigest()[:16].encode()
        name = os.fsdecode(raw[: room - len(digest) - 1] + b"~" + digest)
    return name + PART_SUFFIX, name + JOURNAL_SUFFIX


def is_working_name(name: str) -> bool:
    """Tell whether `name` is one that partial files and journals have."""
    return name.endswith((PART_SUFFIX, JOURNAL_SUFFIX))


def kept_length(directory: int, name: str) -> int | None:
    """Give the contiguous length kept of a cut transfer of `name`; None if nothing is kept."""
    part, journal_name = working_names(name)
    try:
        size = os.stat(part, dir_fd=directory, follow_symlinks=False).st_size
    except FileNotFoundError:
        return None
    record = journal.read(directory, journal_name)
    return size if record is None else record.contiguous(size)


def kept_source(directory: int, name: str) -> str | None:
    """Tell what a cut transfer of `name` was a copy of; None if that is not known."""
    record = journal.read(directory, working_names(name)[1])
    return None if record is None else record.source


def discard_kept(directory: int, name: str) -> None:
    """Remove what a cut transfer of `name` left.

    Raises FileBusyError if a transfer is writing it.
    """
    descriptor = _open_locked(directory, working_names(name)[0], name)
    try:
        for leftover in working_names(name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(leftover, dir_fd=directory)
    finally:
        os.close(descriptor)


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

    @classmethod
    def open(cls, path: str, *, directory: int | None = None, name: str = "") -> SourceFile:
        """Open `path` for reading. Raises FileError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not block the open
        try:
            descriptor = os.open(path, flags, dir_fd=directory)
        except OSError as error:
            raise file_error(error, name or path) from error
        return cls(descriptor, name or path)

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
            remaining = _advance(remaining, count)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class PartialFile:
    """New content for the target `name`, until `commit` or `keep`.

    Make one with `PartialFile.open`. The file is locked against other writers, in this process
    and in others, until it is closed.
    """

    def __init__(
        self, directory: int, name: str, descriptor: int, offset: int, *, replaces_file: bool
    ) -> None:
        self.name = name
        self.offset = offset
        self.replaces_file = replaces_file
        self.patience: Patience | None = Patience(filesystem_kind(descriptor))
        self._directory = directory
        self._descriptor = descriptor
        self._part, self._journal = working_names(name)
        self._has_journal = False
        self._source: str | None = None

    @classmethod
    def open(
        cls,
        directory: int,
        name: str,
        offset: int = 0,
        *,
        extend: bool = False,
        prefer_kept: bool = False,
    ) -> PartialFile:
        """Open the partial file for new content from byte `offset` of the target on.

        directory: descriptor, duplicated here; offset: bytes that stay as they are, taken from
        the target if it exists and otherwise from what a cut transfer kept; extend: `offset` is
        ignored, everything there stays and the content goes behind it (APPE);
        prefer_kept: the bytes that stay are those that were kept, even if the target exists.

        Raises FileBusyError if another transfer is writing it, RestartError if `offset` lies
        beyond what there is, FileError otherwise.
        """
        directory = os.dup(directory)
        descriptor = -1
        try:
            descriptor = _open_locked(directory, working_names(name)[0], name)
            target_size = _target_size(directory, name)
            kept = kept_length(directory, name)
            if prefer_kept:
                target_size = None
            there = target_size if target_size is not None else (kept or 0)
            start = there if extend else offset
            if start > there:
                raise RestartError(f"{name}: cannot restart at {offset}, there are {there} bytes")
            os.ftruncate(descriptor, 0 if target_size is not None else start)
            if target_size is not None and start:
                _copy_head(directory, name, descriptor, start)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(working_names(name)[1], dir_fd=directory)
            replaces_file = target_size is not None
            return cls(directory, name, descriptor, start, replaces_file=replaces_file)
        except BaseException as error:
            if descriptor >= 0:
                if os.fstat(descriptor).st_size == 0:
                    os.unlink(working_names(name)[0], dir_fd=directory)
                os.close(descriptor)
            os.close(directory)
            if isinstance(error, OSError):
                raise file_error(error, name) from error
            raise

    def fileno(self) -> int:
        """Give the descriptor, to read back what was written."""
        return self._descriptor

    def note_source(self, source: str) -> None:
        """Note what the content is a copy of, for `kept_source`. Raises FileError."""
        self._source = source
        self._write_journal(journal.Journal(None, None, source))

    def begin_journal(self) -> None:
        """Say on disk that the file's size means nothing: records will leave holes."""
        self._has_journal = True
        self.checkpoint([(0, self.offset)], None, sync=False)

    def checkpoint(
        self, held: Sequence[tuple[int, int]], size: int | None, *, sync: bool = True
    ) -> None:
        """Note the byte ranges that are held, once they are on the disk.

        held: ranges (start, end) of the target, in order; size: of the complete file, if known.
        """
        if sync:
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                raise file_error(error, self.name) from error
        self._write_journal(journal.Journal(tuple(held), size, self._source))

    def _write_journal(self, content: journal.Journal) -> None:
        try:
            journal.write(self._directory, self._journal, content)
        except OSError as error:
            raise file_error(error, self.name) from error

    def write(self, pieces: Sequence[memoryview], offset: int) -> int:
        """Write consecutive bytes at `offset` of the target; give how many. Raises FileError."""
        done = 0
        remaining = list(pieces)
        try:
            while remaining:
                count = os.pwritev(self._descriptor, remaining, offset + done)
                done += count
                remaining = _advance(remaining, count)
        except OSError as error:
            raise file_error(error, self.name) from error
        return done

    def commit(self, size: int, *, modified: float | None = None, sync: bool = False) -> None:
        """Make the content, `size` bytes, the target. modified: its time, Unix seconds."""
        try:
            if not _is_still(self._directory, self._part, self._descriptor):
                raise FileError(f"{self.name}: its partial file was removed meanwhile")
            os.ftruncate(self._descriptor, size)
            with contextlib.suppress(FileNotFoundError):
                old = os.stat(self.name, dir_fd=self._directory)
                os.fchmod(self._descriptor, stat.S_IMODE(old.st_mode))
            if modified is not None:
                os.utime(self._descriptor, (modified, modified))
            if sync:
                os.fsync(self._descriptor)
            os.rename(self._part, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._remove_journal()
            if sync:
                _sync_directory(self._directory)
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()

    def keep(self, held: Sequence[tuple[int, int]], size: int | None) -> int:
        """Keep what arrived for a later restart; give the contiguous length that is kept.

        An empty partial file is removed. Without holes, and if it is not known what it is a copy
        of, no journal is needed.
        """
        contiguous = held[0][1] if held and held[0][0] == 0 else 0
        try:
            has_holes = bool(held) and held[-1][1] > contiguous
            if has_holes and self._has_journal:
                self.checkpoint(held, size)
            else:
                os.ftruncate(self._descriptor, contiguous)
                if contiguous and self._source is not None:
                    self.note_source(self._source)
                else:
                    self._remove_journal()
                if not contiguous:
                    os.unlink(self._part, dir_fd=self._directory)
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()
        return contiguous

    def discard(self) -> None:
        """Remove the partial file: nothing of this transfer stays."""
        try:
            os.unlink(self._part, dir_fd=self._directory)
            self._remove_journal()
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()

    def _remove_journal(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._journal, dir_fd=self._directory)

    def _close(self) -> None:
        os.close(self._descriptor)
        os.close(self._directory)


def _sync_directory(directory: int) -> None:
    """See the names of a directory on the disk; its descriptor may be one of O_PATH."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _advance(pieces: list[memoryview], count: int) -> list[memoryview]:
    """Drop the first `count` bytes of `pieces`."""
    index = 0
    while index < len(pieces) and count >= len(pieces[index]):
        count -= len(pieces[index])
        index += 1
    rest = pieces[index:]
    if count:
        rest[0] = rest[0][count:]
    return rest


def _open_locked(directory: int, part: str, name: str) -> int:
    """Open the partial file and lock it; another writer may rename it away in between."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(part, flags, 0o666, dir_fd=directory)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(directory, part, descriptor):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise FileBusyError(f"{name}: another transfer is writing it") from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_still(directory: int, name: str, descriptor: int) -> bool:
    try:
        there = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _target_size(directory: int, name: str) -> int | None:
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


def _copy_head(directory: int, name: str, target: int, size: int) -> None:
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
