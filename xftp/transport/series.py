"""Several files as one, for the data path: a source that is made of files, and a target.

A sender reads, and a receiver writes, as if it were one file (docs/protocol.md, Series). Files are
opened when their turn comes, so that their number costs no descriptors. The methods block.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from xftp.errors import FileError, LocalFileError, NoSpaceError, VerifyError, XftpError
from xftp.protocol.recordset import RecordSet
from xftp.protocol.series import Layout, SeriesFile

from .beside import Directories
from .disk import Patience
from .files import SourceFile
from .hashing import digest_of
from .partial import PartialFile

logger = logging.getLogger(__name__)

KEPT_FROM_BYTES = 1 << 20
"""What arrived of a smaller file is not worth to be kept when the series is cut."""


class SeriesSource:
    """Files one behind the other, to be read as one."""

    def __init__(
        self, files: Sequence[SeriesFile], open_file: Callable[[SeriesFile], SourceFile]
    ) -> None:
        """Take the files, whose sizes are known; open_file: opens one of them."""
        self.name = f"{len(files)} files"
        self._files = files
        self._open = open_file
        self._layout = Layout([file.size or 0 for file in files])
        self.size = self._layout.total

    def read_cached(self, places: Sequence[memoryview], offset: int, size: int) -> bool:
        """Leave it to `read`: to open a file may take long."""
        return False

    def read(self, places: Sequence[memoryview], offset: int, size: int) -> None:
        """Read `size` bytes at `offset` of the whole into `places`.

        Of a file that cannot be read to the end that was told, zeros stand for what is missing, if
        its hash was told: the receiver will see. Otherwise raises FileError.
        """
        remaining = list(places)
        for index, at, count in self._layout.spans(offset, size):
            pieces, remaining = cut(remaining, count)
            self._read_one(self._files[index], pieces, at, count)

    def _read_one(
        self, file: SeriesFile, pieces: Sequence[memoryview], at: int, count: int
    ) -> None:
        try:
            source = self._open(file)
            try:
                if file.digest is None:
                    _check_version(source, file)
                source.read(pieces, at, count)
            finally:
                source.close()
        except FileError as error:
            if file.digest is None:
                raise
            logger.info("%s, though it is in a series that moves: zeros instead", error)
            for piece in pieces:
                piece[:] = bytes(len(piece))


def _check_version(source: SourceFile, file: SeriesFile) -> None:
    """Raise LocalFileError if a file was written since its facts were told."""
    if source.size != file.size or file.modified not in (None, source.modified):
        raise LocalFileError(f"{source.name}: was changed while it was sent")


class SeriesTarget:
    """Files one behind the other, to be written as one; each gets its name when it is complete."""

    offset = 0
    held: tuple[tuple[int, int], ...] = ()
    """Where the content begins: a series has no beginning that was there before."""

    def __init__(
        self,
        files: Sequence[SeriesFile],
        open_file: Callable[[SeriesFile], PartialFile],
        completed: Callable[[int], None] = lambda _: None,
        *,
        sync: bool = False,
    ) -> None:
        """Take the files, whose sizes are known.

        open_file: opens the partial file of one; completed: told the index of each that got its
        name, in whatever thread; sync: see it on the disk.
        """
        self.name = f"{len(files)} files"
        self.patience: Patience | None = None
        """None: always in threads, as files are opened, hashed and renamed here too."""
        self.failures: dict[int, XftpError] = {}
        """Why files could not be stored, by their index."""
        self.layout = Layout([file.size or 0 for file in files])
        self._files = files
        self._open_file, self._completed, self._sync = open_file, completed, sync
        self._directories = Directories() if sync else None
        self._open: dict[int, _Arriving] = {}
        self._finished: set[int] = set()
        self._lock = threading.Lock()

    def begin_journal(self) -> None:
        """Store the empty files, for which nothing will come."""
        with self._lock:
            for index, file in enumerate(self._files):
                if not file.size:
                    self._write_one(index, [], 0, 0)

    def checkpoint(self, held: Sequence[tuple[int, int]], size: int | None) -> None:
        """Do nothing: what is complete is on the disk, and of the rest little is worth a note."""

    def write(self, pieces: Sequence[memoryview], offset: int) -> int:
        """Write consecutive bytes at `offset` of the whole; give how many.

        What goes wrong with one file is noted in `failures`, and the others go on; but raises
        NoSpaceError, as there would be none for the others either.
        """
        size = sum(len(piece) for piece in pieces)
        remaining = list(pieces)
        with self._lock:
            for index, at, count in self.layout.spans(offset, size):
                mine, remaining = cut(remaining, count)
                self._write_one(index, mine, at, count)
        return size

    def finish(self) -> None:
        """Part with what is not complete, and note it as failed; what is large is kept."""
        with self._lock:
            for index, file in enumerate(self._files):
                arriving = self._open.pop(index, None)
                if arriving is not None:
                    arriving.give_up()
                if index not in self._finished and index not in self.failures:
                    self.failures[index] = FileError(f"{file.path}: did not arrive")
            self._sync_names()

    def _sync_names(self) -> None:
        """See the new names on the disk; if that fails, no file of the series is safe."""
        try:
            if self._directories is not None:
                self._directories.sync()
        except FileError as error:
            for index in self._finished:
                self.failures[index] = error

    def _write_one(self, index: int, pieces: Sequence[memoryview], at: int, count: int) -> None:
        if index in self.failures or index in self._finished:
            return
        arriving = self._open.get(index)
        try:
            if arriving is None:
                arriving = _Arriving(self._files[index], self._open_file(self._files[index]))
                self._open[index] = arriving
            if arriving.take(pieces, at, count):
                del self._open[index]
                arriving.commit(sync=self._sync, directories=self._directories)
                self._finished.add(index)
                self._completed(index)
        except XftpError as error:
            self.failures[index] = error
            self._drop(self._open.pop(index, None))
            if isinstance(error, NoSpaceError):
                raise

    @staticmethod
    def _drop(arriving: _Arriving | None) -> None:
        if arriving is None:
            return
        try:
            arriving.target.discard()
        except FileError as error:  # the first error is the one that is told
            logger.warning("%s", error)


class _Arriving:
    """One file of which something has arrived."""

    def __init__(self, file: SeriesFile, target: PartialFile) -> None:
        self.target = target
        self._file = file
        self._held = RecordSet()  # of bytes

    def take(self, pieces: Sequence[memoryview], at: int, count: int) -> bool:
        """Write; tell whether the file is complete."""
        size = self._file.size or 0
        if not self._held and count < size:
            self.target.begin_journal()
        if count:
            self.target.write(pieces, at)
            self._held.add(at, at + count)
        return len(self._held) == size

    def commit(self, *, sync: bool, directories: Directories | None) -> None:
        """Give the file its name if it is what was sent. Raises VerifyError, FileError."""
        file, size = self._file, self._file.size or 0
        if file.digest is not None and file.algorithm is not None:
            found = digest_of(self.target.fileno(), file.path, file.algorithm, 0, size)
            if found != file.digest:
                self.target.discard()
                raise VerifyError(f"{file.path}: differs from the original ({file.algorithm})")
        self.target.commit(size, modified=file.modified, sync=sync, directories=directories)

    def give_up(self) -> None:
        """Keep what is worth it."""
        held = list(self._held.ranges())
        try:
            if (self._file.size or 0) >= KEPT_FROM_BYTES:
                self.target.keep(held, None)
            else:
                self.target.discard()
        except FileError as error:
            logger.warning("what arrived could not be kept: %s", error)


def cut(pieces: Sequence[memoryview], count: int) -> tuple[list[memoryview], list[memoryview]]:
    """Cut buffers that follow each other into the first `count` bytes and the rest."""
    first: list[memoryview] = []
    for index, piece in enumerate(pieces):
        if count >= len(piece):
            first.append(piece)
            count -= len(piece)
        else:
            if count:
                first.append(piece[:count])
            return first, [piece[count:], *pieces[index + 1 :]]
    return first, []
