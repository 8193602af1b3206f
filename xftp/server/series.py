"""The files that a client has named to be moved as one (docs/protocol.md, Series)."""

from __future__ import annotations

from xftp.errors import NoSpaceError, SequenceError
from xftp.protocol.series import MOST_FILES, MOST_NAME_BYTES, SeriesFile, Way


class NamedSeries:
    """What SERI named since the last series moved."""

    def __init__(self) -> None:
        self.files: list[SeriesFile] = []
        """In the order in which they are to move; their paths are absolute."""
        self._way: Way | None = None
        self._name_bytes = 0

    def check(self, way: Way, path: str) -> None:
        """Raise SequenceError or NoSpaceError if a further file does not fit in."""
        if self._way not in (None, way):
            raise SequenceError("All files of a series move the same way.")
        name_bytes = len(path.encode("utf-8", "surrogateescape"))
        if len(self.files) >= MOST_FILES or self._name_bytes + name_bytes > MOST_NAME_BYTES:
            raise NoSpaceError(
                f"A series has at most {MOST_FILES} files and {MOST_NAME_BYTES} bytes of names"
            )

    def add(self, way: Way, file: SeriesFile) -> None:
        """Take a file, after `check`."""
        self._way = way
        self._name_bytes += len(file.path.encode("utf-8", "surrogateescape"))
        self.files.append(file)

    def take(self, way: Way) -> list[SeriesFile]:
        """Give all files, and forget them. Raises SequenceError if none were named for that."""
        files, fits = self.files, self._way in (None, way)
        self.forget()
        if not files or not fits:
            raise SequenceError(f"Name files with SERI {way} first.")
        return files

    def forget(self) -> None:
        """Forget all files."""
        self.__init__()  # type: ignore[misc]
