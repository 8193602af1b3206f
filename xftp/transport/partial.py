"""New content for a file: a partial file beside the target, which is whole or not there.

New content is written under a partial name beside the target and renamed over it when it is
complete, so the target's own name never holds half a file. What of it is held is noted in a
journal (`journal`), after it is on the disk. All paths are a directory descriptor and a name: what
the descriptor stands for cannot be swapped underneath. The functions block; the data path calls
them from threads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Sequence

from xftp.errors import (
    FileError,
    LocalFileError,
    NoSpaceError,
    RestartError,
    file_error,
)

from . import journal
from .beside import Directories, copy_head, is_still, open_locked, sync_directory, target_size
from .disk import Patience, filesystem_kind
from .files import advance
from .journal import Journal, Ranges
from .kept import Kept, find_kept, remove_journal, working_names

logger = logging.getLogger(__name__)

_ROOM_BYTES = 64 * 1024
"""What is given up of a partial file on a full disk, so that there is room for its journal."""


def discard_kept(directory: int, name: str) -> None:
    """Remove what a cut transfer of `name` left.

    Raises FileBusyError if a transfer is writing it.
    """
    part = working_names(name)[0]
    descriptor = open_locked(directory, part, name)
    try:
        os.unlink(part, dir_fd=directory)
        remove_journal(directory, name)
    finally:
        os.close(descriptor)


class PartialFile:
    """New content for the target `name`, until `commit`, `keep` or `discard`.

    Make one with `PartialFile.open` or `reopen`. The file is locked against other writers, in this
    process and in others, until it is closed.

    Before anything is written, `begin_journal` or `begin_growing` says what the file's size means.
    """

    def __init__(
        self,
        directory: int,
        name: str,
        descriptor: int,
        offset: int,
        *,
        replaces_file: bool,
        held: Ranges | None = None,
    ) -> None:
        self.name = name
        self.offset = offset
        """Where the content begins that is to come."""
        self.held: Ranges = held if held is not None else ((0, offset),) if offset else ()
        """The byte ranges that are there from the beginning."""
        self.replaces_file = replaces_file
        self.patience: Patience | None = Patience(filesystem_kind(descriptor))
        self._directory = directory
        self._descriptor = descriptor
        self._part, self._journal = working_names(name)
        self._source: str | None = None
        self._size: int | None = None
        self._boot: str | None = None
        self._synced: Ranges = ()
        self._has_journal = False
        self._is_unsafe = False
        """Whether the disk failed: what it took since `_synced` may be lost."""
        self._has_warned = False

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
            descriptor = open_locked(directory, working_names(name)[0], name)
            old_size = target_size(directory, name)
            kept = find_kept(directory, name)
            if prefer_kept:
                old_size = None
            there = old_size if old_size is not None else kept.contiguous if kept else 0
            start = there if extend else offset
            if start > there:
                raise RestartError(f"{name}: cannot restart at {offset}, there are {there} bytes")
            replaces_file = old_size is not None
            os.ftruncate(descriptor, 0 if replaces_file else start)
            if replaces_file and start:
                _begin_with_head(directory, name, descriptor, start)
            remove_journal(directory, name)
            return cls(directory, name, descriptor, start, replaces_file=replaces_file)
        except OSError as error:
            _give_up(directory, name, descriptor)
            raise file_error(error, name) from error
        except BaseException:
            _give_up(directory, name, descriptor)
            raise

    @classmethod
    def reopen(cls, directory: int, name: str, size: int, source: str) -> PartialFile:
        """Open what a cut transfer left, as it is, so that its holes can be filled.

        directory: descriptor, duplicated here; size, source: of the complete file, as the cut
        transfer knew them (`note_source`). Raises RestartError if nothing of that is there,
        FileBusyError if another transfer is writing it, FileError otherwise.
        """
        directory = os.dup(directory)
        descriptor = -1
        try:
            descriptor = open_locked(directory, working_names(name)[0], name)
            target_size(directory, name)
            kept = find_kept(directory, name)
            if kept is None or (kept.size, kept.source) != (size, source):
                raise RestartError(f"{name}: what is there is not of this version of the file")
            if kept.held and kept.held[-1][1] > size:
                raise RestartError(f"{name}: more than {size} bytes are there")
            target = cls(directory, name, descriptor, 0, replaces_file=False, held=kept.held)
            target.note_source(source, size)
            target._has_journal = True
            return target
        except OSError as error:
            _give_up(directory, name, descriptor)
            raise file_error(error, name) from error
        except BaseException:
            _give_up(directory, name, descriptor)
            raise

    def fileno(self) -> int:
        """Give the descriptor, to read back what was written."""
        return self._descriptor

    # -- the journal -----------------------------------------------------------------------------

    def note_source(self, source: str, size: int | None = None) -> None:
        """Let the journal tell what the content is a copy of, and of what size that is."""
        self._source = source
        self._size = size if size is not None else self._size

    def begin_journal(self) -> None:
        """Say on disk that the file's size means nothing: there may be holes. Raises FileError."""
        self._begin(None)

    def begin_growing(self) -> None:
        """Say on disk that there will be no holes: it is written in order. Raises FileError."""
        self._begin(journal.boot_id())

    def _begin(self, boot: str | None) -> None:
        self._boot = boot
        if self.held:
            self._sync()
        self._synced = self.held
        self._note(sync=bool(self.held))
        self._has_journal = True

    def checkpoint(self, held: Sequence[tuple[int, int]], size: int | None) -> None:
        """Note the byte ranges that are held, once they are on the disk.

        held: ranges (start, end) of the target, in order; size: of the complete file, if known.
        Raises FileError if the disk does not take the data. That the journal cannot be written
        only costs what a restart would have spared: it is logged.
        """
        self._sync()
        self._synced, self._size = tuple(held), size if size is not None else self._size
        try:
            self._note()
        except FileError as error:
            if not self._has_warned:
                logger.warning("what arrives cannot be noted for a restart: %s", error)
            self._has_warned = True

    def _sync(self, *, metadata: bool = False) -> None:
        """See what was written on the disk; metadata: its time and mode too.

        Raises FileError, and then nothing newer is trusted: the kernel tells of a failed write
        once, and forgets the data.
        """
        if self._is_unsafe:
            raise LocalFileError(f"{self.name}: the disk has failed before")
        try:
            (os.fsync if metadata else os.fdatasync)(self._descriptor)
        except OSError as error:
            self._is_unsafe, self._boot = True, None
            if self._has_journal:
                with contextlib.suppress(FileError):  # an older journal says less, or dies with us
                    self._note()
            raise file_error(error, self.name) from error

    def _note(self, *, sync: bool = True) -> None:
        """Write the journal. Raises FileError."""
        content = Journal(self._synced, self._size, self._source, self._boot)
        try:
            journal.write(self._directory, self._journal, content, sync=sync)
        except OSError as error:
            raise file_error(error, self.name) from error

    # -- the content -----------------------------------------------------------------------------

    def write(self, pieces: Sequence[memoryview], offset: int) -> int:
        """Write consecutive bytes at `offset` of the target; give how many. Raises FileError."""
        done = 0
        remaining = list(pieces)
        try:
            while remaining:
                count = os.pwritev(self._descriptor, remaining, offset + done)
                done += count
                remaining = advance(remaining, count)
        except OSError as error:
            raise file_error(error, self.name) from error
        return done

    # -- the end ---------------------------------------------------------------------------------

    def commit(
        self,
        size: int,
        *,
        modified: float | None = None,
        sync: bool = False,
        directories: Directories | None = None,
    ) -> None:
        """Make the content, `size` bytes, the target. modified: its time, Unix seconds.

        sync: see on the disk first the content, and then the name; directories: which see to
        the name later. Raises FileError.
        """
        try:
            if not is_still(self._directory, self._part, self._descriptor):
                raise FileError(f"{self.name}: its partial file was removed meanwhile")
            os.ftruncate(self._descriptor, size)
            with contextlib.suppress(FileNotFoundError):
                old = os.stat(self.name, dir_fd=self._directory)
                os.fchmod(self._descriptor, stat.S_IMODE(old.st_mode))
            if modified is not None:
                os.utime(self._descriptor, (modified, modified))
            if sync:
                self._sync(metadata=True)
            os.rename(self._part, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            remove_journal(self._directory, self.name)
            if directories is not None:
                directories.add(self._directory)
            elif sync:
                sync_directory(self._directory)
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()

    def keep(self, held: Sequence[tuple[int, int]], size: int | None) -> int:
        """Keep what arrived for a later restart; give the contiguous length that is kept.

        held, size: as in `checkpoint`. An empty partial file is removed. Without holes, and if it
        is not known what it is a copy of, no journal is needed. Raises FileError.
        """
        self._size = size if size is not None else self._size
        try:
            content = self._synced if self._is_unsafe else tuple(held)
            if not content:
                self._remove()
                return 0
            os.ftruncate(self._descriptor, content[-1][1])
            if not self._is_unsafe:
                self._sync()
            self._keep_noted(content)
            return Kept(content).contiguous
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()

    def _keep_noted(self, held: Ranges) -> None:
        """Say in the journal, or by leaving none, what is held of a file that is on the disk."""
        self._synced, self._boot = held, None
        if len(held) == 1 and not held[0][0] and self._source is None:
            remove_journal(self._directory, self.name)
            return
        try:
            self._note_with_room()
        except FileError:
            if not self._has_journal:  # holes that nobody knows of would look complete
                self._remove()
            raise

    def _note_with_room(self) -> None:
        """Write the journal, on a full disk in place of the last bytes. Raises FileError."""
        try:
            self._note()
        except NoSpaceError:
            end = max(0, self._synced[-1][1] - _ROOM_BYTES)
            os.ftruncate(self._descriptor, end)
            self._synced = Journal(self._synced, None).held_of(end)
            self._note()

    def discard(self) -> None:
        """Remove the partial file: nothing of this transfer stays."""
        try:
            self._remove()
        except OSError as error:
            raise file_error(error, self.name) from error
        finally:
            self._close()

    def _remove(self) -> None:
        os.unlink(self._part, dir_fd=self._directory)
        remove_journal(self._directory, self.name)

    def _close(self) -> None:
        os.close(self._descriptor)
        os.close(self._directory)


def _begin_with_head(directory: int, name: str, descriptor: int, size: int) -> None:
    """Copy the first bytes of the target. Who is killed meanwhile has kept nothing.

    An older journal would call them what a cut transfer of something else had left.
    """
    try:
        journal.write(directory, working_names(name)[1], Journal((), None), sync=False)
        copy_head(directory, name, descriptor, size)
    except BaseException:
        os.ftruncate(descriptor, 0)
        remove_journal(directory, name)
        raise


def _give_up(directory: int, name: str, descriptor: int) -> None:
    """Close what was opened for a partial file that will not be one."""
    if descriptor >= 0:
        if os.fstat(descriptor).st_size == 0:
            os.unlink(working_names(name)[0], dir_fd=directory)
        os.close(descriptor)
    os.close(directory)
