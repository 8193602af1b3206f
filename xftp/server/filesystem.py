"""One account's files, seen from its root; nothing outside can be reached.

The kernel resolves a path beneath the root's descriptor (openat2(2)). Where it cannot, the path is
walked component by component, each opened beneath the descriptor of the one before, and symbolic
links are followed by hand: a link that leaves the root is refused, and a directory that is swapped
for a link meanwhile is not followed. All functions block; call them from a thread.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import posixpath
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xftp.errors import FileError, FileNameError, file_error
from xftp.transport.files import SourceFile
from xftp.transport.kept import Kept, find_kept, is_working_name, kept_length, working_names
from xftp.transport.partial import PartialFile, discard_kept

from . import beneath
from .storage import Storage

_MAX_LINKS = 40
"""Symbolic links followed in one path, as the kernel does (path_resolution(7))."""

_MAX_DEPTH = 256
"""Directories of one path: each is a descriptor while the path is walked."""


def absolute(current: str, path: str) -> str:
    """Give the absolute virtual path of `path`; `..` above the root stays at the root."""
    joined = posixpath.normpath(posixpath.join(current, path))
    return "/" + joined.lstrip("/")


@dataclass(frozen=True, slots=True)
class Item:
    """A directory entry with its status."""

    name: str
    status: os.stat_result


class Filesystem:
    """The tree below `root`. Paths are absolute virtual ones; errors name them and no other."""

    def __init__(self, root: Path, storage: Storage | None = None) -> None:
        """Open `root`. storage: what may be kept there; None: anything. Raises FileError."""
        self._storage = storage or Storage()
        try:
            self._root = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise file_error(error, str(root)) from error
        self._real_root = os.path.realpath(root)

    def close(self) -> None:
        """Close the root."""
        os.close(self._root)

    # -- reading -------------------------------------------------------------------------------

    def status(self, path: str) -> os.stat_result:
        """Give the status of what `path` names. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def check_entry(self, path: str) -> None:
        """Raise FileError unless something has this name, be it a link that leads nowhere."""
        with self._errors(path), self._located(path, follow=False) as (directory, name):
            os.stat(name, dir_fd=directory, follow_symlinks=False)

    def entry_status(self, path: str) -> os.stat_result:
        """Give the status for MLST: as `status`, and of a cut upload the length that was kept."""
        with self._errors(path), self._located(path) as (directory, name):
            try:
                return os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                kept = kept_length(directory, name)
                if kept is None:
                    raise
            part = os.stat(working_names(name)[0], dir_fd=directory, follow_symlinks=False)
            return os.stat_result((*part[:6], kept, *part[7:]))

    def transfer_size(self, path: str) -> int:
        """Give the size of a file, or the contiguous length kept of a cut upload of it."""
        with self._errors(path), self._located(path) as (directory, name):
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                kept = kept_length(directory, name)
                if kept is None:
                    raise
                return kept
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path}: not a plain file")
            return status.st_size

    def check_directory(self, path: str) -> None:
        """Raise FileError unless `path` is a directory that may be entered."""
        with self._errors(path), self._located(path) as (directory, name):
            descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            try:
                os.close(os.open(".", os.O_PATH, dir_fd=descriptor))
            finally:
                os.close(descriptor)

    def entries(self, path: str, most: int | None = None) -> list[Item]:
        """Give the entries of a directory, by name; links that lead outside are left out.

        Raises FileError, also if there are more than `most`.
        """
        with self._errors(path), self._located(path) as (directory, name):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=directory)
        try:
            with self._errors(path), os.scandir(descriptor) as found:
                stop = None if most is None else most + 1
                names = sorted(entry.name for entry in itertools.islice(found, stop))
            if most is not None and len(names) > most:
                raise FileError(f"{path}: more than {most} entries, which is too many to list")
            items = (self._item(path, descriptor, name) for name in names)
            return [item for item in items if item is not None]
        finally:
            os.close(descriptor)

    def _item(self, path: str, directory: int, name: str) -> Item | None:
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISLNK(status.st_mode):
            return Item(name, status)
        with contextlib.suppress(FileError):
            return Item(name, self.status(posixpath.join(path, name)))
        return None

    def open_source(self, path: str) -> SourceFile:
        """Open a file for sending. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path}: not a plain file")
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return SourceFile(os.open(name, flags, dir_fd=directory), path)

    # -- writing -------------------------------------------------------------------------------

    def open_target(
        self, path: str, offset: int = 0, *, extend: bool = False, prefer_kept: bool = False
    ) -> PartialFile:
        """Open new content for a file; see PartialFile.open. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            if name == ".":
                raise FileError(f"{path}: {os.strerror(errno.EISDIR)}")
            if is_working_name(name):
                raise FileNameError(f"{path}: names like this are kept for unfinished uploads")
            options = {"extend": extend, "prefer_kept": prefer_kept}
            return self._storage.opened(
                self._root,
                directory,
                name,
                lambda kind: kind.open(directory, name, offset, **options),
            )

    def check_room(self, path: str, size: int | None = None, *, extend: bool = False) -> None:
        """Raise StorageError if a file may not become `size` bytes, or so much larger.

        size: None if it is not known.
        """
        with self._errors(path), self._located(path) as (directory, name):
            self._storage.check(self._root, directory, name, size, extend=extend)

    def kept(self, path: str) -> Kept | None:
        """Find what a cut upload of a file left; None if nothing is. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            return find_kept(directory, name)

    def reopen_target(self, path: str, size: int, source: str) -> PartialFile:
        """Open what a cut upload of a file left; see PartialFile.reopen. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            return self._storage.opened(
                self._root,
                directory,
                name,
                lambda kind: kind.reopen(directory, name, size, source),
            )

    def exists(self, path: str) -> bool:
        """Tell whether anything, or the rest of a cut upload, has this name."""
        with self._errors(path), self._located(path) as (directory, name):
            try:
                os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return kept_length(directory, name) is not None
            return True

    def make_directory(self, path: str) -> None:
        """Make a directory. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            self._storage.check(self._root, directory, name, 0)
            with self._storage.changing(directory, name):
                os.mkdir(name, dir_fd=directory)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory. Raises FileError."""
        with self._errors(path), self._located(path, follow=False) as (directory, name):
            if name == ".":
                raise FileError(f"{path}: the root stays")
            with self._storage.changing(directory, name):
                os.rmdir(name, dir_fd=directory)

    def remove(self, path: str) -> None:
        """Remove a file, or what a cut upload left of it. Raises FileError."""
        with (
            self._errors(path),
            self._located(path, follow=False) as (directory, name),
            self._storage.changing(directory, name),
        ):
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                if kept_length(directory, name) is None:
                    raise
                discard_kept(directory, name)
                return
            if stat.S_ISDIR(status.st_mode):
                raise FileError(f"{path}: {os.strerror(errno.EISDIR)}")
            os.unlink(name, dir_fd=directory)

    def rename(self, old: str, new: str, *, may_replace: bool = True) -> None:
        """Rename a file or directory; a file of the new name is replaced, if that may be.

        Raises FileError.
        """
        with (
            self._errors(old),
            self._located(old, follow=False) as (old_directory, old_name),
            self._located(new, follow=False) as (new_directory, new_name),
            self._storage.changing(old_directory, old_name),
            self._storage.changing(new_directory, new_name),
        ):
            if "." in (old_name, new_name):
                raise FileError("the root cannot be renamed")
            if is_working_name(new_name):
                raise FileNameError(f"{new}: names like this are kept for unfinished uploads")
            if not may_replace and _is_there(new_name, new_directory):
                raise FileError(f"{new}: {os.strerror(errno.EEXIST)}")
            os.rename(old_name, new_name, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    def set_modified(self, path: str, modified: float) -> None:
        """Set the modification time, Unix seconds. Raises FileError."""
        with self._errors(path), self._located(path) as (directory, name):
            os.utime(name, (modified, modified), dir_fd=directory, follow_symlinks=False)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits. Raises FileError."""
        with self._errors(path), self._opened(path) as descriptor:
            os.fchmod(descriptor, mode)

    # -- walking -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise file_error(error, path) from error

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._located(path) as (directory, name):
            descriptor = os.open(name, flags, dir_fd=directory)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _located(self, path: str, *, follow: bool = True) -> Iterator[tuple[int, str]]:
        """Walk to the directory that holds `path`; give its descriptor and the last name.

        The last name is no link if `follow`. Raises OSError, or FileError for a way out.
        """
        if "\0" in path:
            raise FileNameError("a name cannot hold a NUL")
        directories: list[int] = []
        try:
            yield self._at_once(directories, path, follow) or self._walk(directories, path, follow)
        finally:
            for descriptor in directories:
                os.close(descriptor)

    def _at_once(self, directories: list[int], path: str, follow: bool) -> tuple[int, str] | None:
        """As `_walk`, by the kernel; None if the path has to be walked."""
        *above, name = _parts(path) or [""]
        if not above or len(above) >= _MAX_DEPTH:
            return None
        directory = beneath.open_directory(self._root, "/".join(above))
        if directory is None:
            return None
        directories.append(directory)
        if follow and _read_link(name, directory) is not None:
            os.close(directories.pop())
            return None
        return directory, name

    def _walk(self, directories: list[int], path: str, follow: bool) -> tuple[int, str]:
        directories.append(os.dup(self._root))
        parts = deque((part, False) for part in _parts(path))
        links = 0
        while parts:
            part, from_link = parts.popleft()
            if part == "..":
                if len(directories) == 1 and from_link:
                    raise FileError(f"{path}: a link leads out of the tree")
                if len(directories) > 1:
                    os.close(directories.pop())
                continue
            target = _read_link(part, directories[-1]) if follow or parts else None
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                self._follow(directories, parts, target, path)
            elif not parts:
                return directories[-1], part
            else:
                if len(directories) >= _MAX_DEPTH:
                    raise FileNameError(f"{path}: more than {_MAX_DEPTH} directories deep")
                flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                directories.append(os.open(part, flags, dir_fd=directories[-1]))
        return directories[-1], "."

    def _follow(
        self, directories: list[int], parts: deque[tuple[str, bool]], target: str, path: str
    ) -> None:
        """Put a link's target in front of what is left of the path."""
        if target.startswith("/"):
            inside = posixpath.relpath(target, self._real_root)
            if inside == ".." or inside.startswith("../"):
                raise FileError(f"{path}: a link leads out of the tree")
            while len(directories) > 1:
                os.close(directories.pop())
            target = inside
        parts.extendleft((part, True) for part in reversed(_parts(target)))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _read_link(name: str, directory: int) -> str | None:
    """Give the target of a link, None for anything else or nothing."""
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
