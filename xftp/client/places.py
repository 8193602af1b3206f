"""The local side of a download: where the file goes.

The functions here block.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xftp.errors import ArgumentError, FileError, file_error
from xftp.protocol.listings import safe_name


class Place(NamedTuple):
    """Where a download goes."""

    shown: str
    """What the user calls it."""

    path: Path
    """The file itself: links that lead to it were followed."""

    size: int | None
    """Of the file that is there; None if there is none."""

    is_special: bool
    """Whether it is a device or a pipe, which takes a stream and cannot be replaced."""

    @contextlib.contextmanager
    def directory(self) -> Iterator[int]:
        """Open the directory the file is in. Raises FileError."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path.parent, flags)
        except OSError as error:
            raise file_error(error, self.shown) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def find_place(local: str | os.PathLike[str] | None, remote: str) -> Place:
    """Find where `remote` goes: `local`, or inside it if it is a directory, or here.

    Raises FileError, and ArgumentError if the remote path gives no name.
    """
    shown = os.fspath(local) if local is not None else ""
    if not shown or shown.endswith("/") or os.path.isdir(shown):
        shown = str(Path(shown) / base_name(remote))
    try:
        path = Path(os.path.realpath(shown))
        status = path.stat()
    except FileNotFoundError:
        return Place(shown, path, None, False)
    except OSError as error:
        raise file_error(error, shown) from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{shown}: is a directory")
    return Place(shown, path, status.st_size, not stat.S_ISREG(status.st_mode))


def base_name(path: str) -> str:
    """Give the last part of a remote path. Raises ArgumentError if it cannot name a local file."""
    name = posixpath.basename(path)
    if not safe_name(name):
        raise ArgumentError(f"{path!r} gives no name for a local file: say how to call it")
    return name
