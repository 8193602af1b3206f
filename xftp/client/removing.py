"""Remove a directory of the server with all that is in it.

Nothing is followed: whatever is listed, a link to a directory too, is first asked to be deleted as
a file is. What that does to a link removes the link; a directory refuses it, and only then is it
looked into. So nothing outside the tree is removed, whatever the server's listings call a link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xftp.errors import FileError, ReplyError, XftpError
from xftp.protocol.listings import safe_name

from .mirroring import MOST_DEPTH
from .session import Session
from .text import printable

AT_ONCE = 500
"""Removals of one flight."""

Removed = Callable[[str], None]


async def remove_tree(session: Session, path: str, removed: Removed = lambda _: None) -> None:
    """Remove `path`, be it a file or a directory; removed: told each path that is gone.

    Goes on where something cannot be removed, and raises why at the end: ReplyError, FileError.
    """
    if await _unlinked(session, [path], removed):
        await _Removal(session, removed).run(path)


async def _unlinked(
    session: Session, paths: Sequence[str], removed: Removed, *, directories: bool = False
) -> dict[str, ReplyError]:
    """Remove files and links, or empty directories; give what is still there, with the reason."""
    left: dict[str, ReplyError] = {}
    for at in range(0, len(paths), AT_ONCE):
        part = paths[at : at + AT_ONCE]
        refusals = await session.remove_all(part, directories=directories)
        for path, refusal in zip(part, refusals, strict=True):
            if refusal is None:
                removed(path)
            else:
                left[path] = refusal
    return left


class _Removal:
    def __init__(self, session: Session, removed: Removed) -> None:
        self._session, self._removed = session, removed
        self._problem: XftpError | None = None

    async def run(self, root: str) -> None:
        directories, waiting = [root], [root]
        while waiting:
            found = await self._emptied(waiting.pop(), is_root=len(directories) == 1)
            directories += found
            waiting += found
        # What is below comes behind what is above; a directory goes when all in it is gone.
        left = await _unlinked(self._session, directories[::-1], self._removed, directories=True)
        for refusal in left.values():
            self._note(refusal)
        if self._problem is not None:
            raise self._problem

    async def _emptied(self, directory: str, *, is_root: bool) -> list[str]:
        """Delete the files of a directory; give the directories in it."""
        if directory.count("/") > MOST_DEPTH:
            self._note(FileError(f"{printable(directory)}: too many directories in each other"))
            return []
        try:
            entries = await self._session.list(directory)
        except ReplyError as error:
            if is_root:
                raise
            self._note(error)
            return []
        kinds: dict[str, str] = {}
        for entry in entries:
            if safe_name(entry.name):
                kinds[f"{directory}/{entry.name}"] = entry.kind
            else:
                name = printable(entry.name)
                self._note(FileError(f"{directory}/{name}: not a name that can be sent"))
        left = await _unlinked(self._session, list(kinds), self._removed)
        for path, refusal in left.items():
            if kinds[path] != "dir":
                self._note(refusal)
        return [path for path in left if kinds[path] == "dir"]

    def _note(self, error: XftpError) -> None:
        self._problem = self._problem or error
