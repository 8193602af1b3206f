"""The local side of a mirror: what is there, and what is changed. The functions here block."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from xftp.errors import FileError, FileNameError, file_error
from xftp.transport.kept import is_working_name

from .mirroring import MOST_DEPTH, FileFacts, Removal, Tree, is_safe, join
from .patterns import Selection


def scan_local(root: Path, selection: Selection) -> Tree:
    """Read the tree below `root`; without it an empty one that does not exist.

    Links are not followed, but for the root itself. Raises FileError if the root is no directory,
    or may not be looked at.
    """
    tree = Tree()
    try:
        is_directory = stat.S_ISDIR(root.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return Tree(exists=False)
    except OSError as error:
        raise file_error(error, str(root)) from error
    if not is_directory:
        raise FileError(f"{root}: is no directory")
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        try:
            _scan_one(root, directory, tree, selection, waiting)
        except OSError as error:
            tree.unreadable[directory] = file_error(error, str(root / directory))
    return tree


def _scan_one(
    root: Path, directory: str, tree: Tree, selection: Selection, waiting: list[str]
) -> None:
    with os.scandir(root / directory) as entries:
        for entry in entries:
            path = join(directory, entry.name)
            is_directory = entry.is_dir(follow_symlinks=False)
            if is_working_name(entry.name) or not selection.takes(path, is_directory=is_directory):
                tree.partial.add(directory)
                continue
            if not is_safe(path):
                tree.unreadable[path] = FileNameError(_refusal(path))
            elif is_directory:
                tree.directories.add(path)
                waiting.append(path)
            else:
                _take_file(entry, path, tree)


def _take_file(entry: os.DirEntry[str], path: str, tree: Tree) -> None:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        tree.files[path] = FileFacts(status.st_size, status.st_mtime)
    else:
        tree.others.add(path)


def _refusal(path: str) -> str:
    if path.count("/") >= MOST_DEPTH:
        return f"{path}: more than {MOST_DEPTH} directories one inside the other"
    return f"{path}: names with a line end or the byte 255 are not mirrored"


def make_directories(root: Path, path: str) -> None:
    """Make a directory below `root`, and those that lead to it.

    Raises FileError, also if a link leads out of the tree.
    """
    place = root
    for part in path.split("/") if path else ():
        place /= part
        try:
            with contextlib.suppress(FileExistsError):
                place.mkdir()
            if not stat.S_ISDIR(place.lstat().st_mode):
                raise FileError(f"{place}: is no directory")
        except OSError as error:
            raise file_error(error, str(place)) from error


def remove_local(root: Path, removal: Removal) -> None:
    """Remove a file, a link or an empty directory. Raises FileError."""
    place = root / removal.path
    try:
        if removal.is_directory:
            place.rmdir()
        else:
            place.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise file_error(error, str(place)) from error
