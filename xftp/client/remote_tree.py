"""The server's side of a mirror: its tree, read by several sessions at once.

With MLSD sizes and times are exact. LIST tells times to the minute at best, in a zone that it does
not name, so they count as unknown, and MDTM is asked where only a time can tell (RFC 3659).
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xftp.errors import FileNameError, PeerError, ReplyError, XftpError
from xftp.protocol.listings import Entry, safe_name
from xftp.transport.kept import is_working_name

from .listing import parse_mlst
from .mirroring import MOST_DEPTH, FileFacts, Tree, is_safe, join, parents
from .patterns import Selection
from .pool import SessionPool, Work
from .session import Session
from .text import printable

MOST_ENTRIES = 5_000_000
"""Files and directories of one tree: an own limit, against endless ones."""

LISTED_AT_ONCE = 100
"""Directories of one flight."""

_MISSING = frozenset({450, 501, 550})
"""What servers answer to a listing of what is not there."""


def remote_join(root: str, path: str) -> str:
    """Give the path on the server of `path` below `root`, which "" may be: the login directory."""
    if not root:
        # A leading space or minus is taken for something else by many servers.
        return f"./{path}" if path.startswith((" ", "-")) else path
    return posixpath.join(root, path) if path else root


async def scan_remote(
    pool: SessionPool, root: str, selection: Selection, *, must_exist: bool
) -> Tree:
    """Read the tree below `root` on the server; without it an empty one that does not exist.

    must_exist: raise what the server says instead. Raises XftpError if the root is no directory
    or the server is lost; a directory below that cannot be read is noted in the tree.
    """
    scan = _Scan(pool, root, selection)
    try:
        await scan.run()
    except ReplyError as error:
        if must_exist or error.code not in _MISSING:
            raise
        return Tree(exists=False)
    if must_exist and not scan.tree.directories and not scan.tree.files:
        await _check_directory(pool, root)
    return scan.tree


async def _check_directory(pool: SessionPool, root: str) -> None:
    """Tell an empty directory from one that is not there: LIST of some servers does not."""
    if not root:
        return
    async with pool.session() as session:
        here = await session.pwd()
        await session.cwd(root)
        await session.cwd(here)


@dataclass(frozen=True, slots=True)
class _Job:
    """Directories for one session to list."""

    directories: tuple[str, ...]
    is_together: bool = False
    """Whether it is tried to list them all in one flight; otherwise it is one."""


class _Scan:
    def __init__(self, pool: SessionPool, root: str, selection: Selection) -> None:
        self.tree = Tree()
        self._pool, self._root, self._selection = pool, root, selection
        self._unique: dict[str, str] = {}
        self._count = 0
        self._root_error: XftpError | None = None
        self._work: Work[_Job] = Work(pool, self._list, self._failed)

    async def run(self) -> None:
        self._work.add([_Job(("",))])
        await self._work.run()
        if self._root_error is not None:
            raise self._root_error

    async def _list(self, session: Session, job: _Job) -> None:
        """List directories, several at once if that was found to be possible."""
        if not job.is_together:
            (directory,) = job.directories
            entries = await session.list(remote_join(self._root, directory))
            self._add(await self._found(session, directory, entries))
            return
        paths = [remote_join(self._root, directory) for directory in job.directories]
        found: list[str] = []
        listings = await session.list_together(paths)
        for directory, listed in zip(job.directories, listings, strict=True):
            if listed is None:
                self._work.add([_Job((directory,))])
            else:
                found += await self._found(session, directory, listed)
        self._add(found)

    def _add(self, directories: list[str]) -> None:
        """Have directories listed, many at once: where the server cannot, they come back."""
        self._work.add(
            _Job(tuple(directories[at : at + LISTED_AT_ONCE]), is_together=True)
            for at in range(0, len(directories), LISTED_AT_ONCE)
        )

    async def _found(self, session: Session, directory: str, entries: Sequence[Entry]) -> list[str]:
        """Note what is in a directory; give the directories in it."""
        features = await session.features()
        if not directory:
            await self._check_root(session, entries)
            if "MLST" in features and any(entry.kind == "dir" for entry in entries):
                await self._identify_root(session)
        self._count += len(entries)
        if self._count > MOST_ENTRIES:
            raise PeerError(f"the server lists more than {MOST_ENTRIES} entries")
        found = [self._take(directory, entry, "MLST" in features) for entry in entries]
        return [path for path in found if path is not None]

    async def _check_root(self, session: Session, entries: Sequence[Entry]) -> None:
        """Raise what the server says if the root is a file: its listing is that file."""
        name = posixpath.basename(self._root)
        if len(entries) == 1 and entries[0].kind == "file" and entries[0].name == name:
            here = await session.pwd()
            await session.cwd(self._root)
            await session.cwd(here)

    async def _identify_root(self, session: Session) -> None:
        """Learn what a link that leads back to the root would be known by."""
        entry = parse_mlst(await session.quote(f"MLST {self._root}".rstrip(" ")))
        if entry is not None and "unique" in entry.facts:
            self._unique[""] = entry.facts["unique"]

    def _take(self, directory: str, entry: Entry, has_times: bool) -> str | None:
        """Note an entry; give it if it is a directory to be listed."""
        path, tree = join(directory, entry.name), self.tree
        is_directory = entry.kind == "dir"
        if not safe_name(entry.name) or not is_safe(path):
            tree.unreadable[join(directory, printable(entry.name))] = FileNameError(
                self._refusal(path)
            )
            return None
        is_taken = self._selection.takes(path, is_directory=is_directory)
        if is_working_name(entry.name) or not is_taken:
            tree.partial.add(directory)
            return None
        if entry.kind == "file":
            modified = entry.modified if has_times else None
            tree.files[path] = FileFacts(entry.size, modified)
            return None
        if not is_directory or self._is_loop(path, directory, entry):
            tree.others.add(path)
            return None
        tree.directories.add(path)
        return path

    def _is_loop(self, path: str, directory: str, entry: Entry) -> bool:
        """Tell whether a directory is one of those that lead to it: a link on the server."""
        unique = entry.facts.get("unique")
        if unique is None:
            return False
        above = (directory, *parents(directory), "")
        if unique in (self._unique.get(each) for each in above):
            return True
        self._unique[path] = unique
        return False

    def _refusal(self, path: str) -> str:
        shown = printable(path)
        if path.count("/") >= MOST_DEPTH:
            return f"{shown}: more than {MOST_DEPTH} directories one inside the other"
        if "\udcff" in path:
            return f"{shown}: names with the byte 255 are not mirrored"
        return f"{shown}: not a name for a file here"

    def _failed(self, job: _Job, error: XftpError) -> None:
        for directory in job.directories:
            if directory:
                self.tree.unreadable[directory] = error
            else:
                self._root_error = error


async def ask_times(pool: SessionPool, root: str, tree: Tree, paths: list[str]) -> None:
    """Ask for the times of files, and put them into the tree; what is not told stays unknown."""

    async def ask(session: Session, path: str) -> None:
        with contextlib.suppress(PeerError):
            modified = await session.modified(remote_join(root, path))
            tree.files[path] = replace(tree.files[path], modified=modified)

    work: Work[str] = Work(pool, ask, lambda _path, _error: None)
    work.add(paths)
    await work.run()


async def make_remote_root(session: Session, root: str) -> None:
    """Make the directory `root`, and those that lead to it, as far as the server lets us."""
    parts = root.split("/")
    for end in range(1, len(parts) + 1):
        place = "/".join(parts[:end])
        if place:
            with contextlib.suppress(ReplyError):  # it is there; if not, what follows will tell
                await session.make_directory(place)
