"""Names on the server: those that fit a pattern, and whether one is a directory.

A pattern has `*`, `?` and `[...]` in any part of the path.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from dataclasses import dataclass

from xftp.client.session import Session
from xftp.errors import LoginError, XftpError
from xftp.protocol.listings import Entry

_ESCAPED = re.compile(r"\[([*?\[])\]")


class NoMatchError(XftpError):
    """Nothing on the server fits a pattern."""

    reply_code = 550


class DirectoryError(XftpError):
    """What was named is a directory, and a file was meant."""

    reply_code = 550


@dataclass(frozen=True, slots=True)
class Match:
    """One entry of the server that fits."""

    path: str
    """As it is sent to the server."""

    entry: Entry

    @property
    def is_directory(self) -> bool:
        """Whether there may be more below it."""
        return self.entry.kind == "dir"


def has_wildcards(pattern: str) -> bool:
    """Tell whether a pattern is more than a name."""
    return glob.has_magic(_ESCAPED.sub("", pattern))


def literal(pattern: str) -> str:
    """Give the path that a pattern without wildcards names."""
    return _ESCAPED.sub(r"\1", pattern)


async def matching(session: Session, pattern: str) -> list[Match]:
    """Give what fits, in the order of the paths. Raises NoMatchError if nothing does.

    Names that begin with a dot fit only a pattern that does, as in a shell.
    """
    *above, last = pattern.split("/")
    directories = [""]
    for part in above:
        directories = [
            path for each in directories for path in await _directories(session, each, part)
        ]
    found = [match for each in directories for match in await _entries(session, each, last)]
    if not found:
        raise NoMatchError(f"{pattern}: no such file on the server")
    return sorted(found, key=lambda match: match.path)


async def _directories(session: Session, before: str, part: str) -> list[str]:
    """Give the paths, each with its final slash, that one part of a pattern leads on to."""
    if not has_wildcards(part):
        return [f"{before}{literal(part)}/"]
    return [
        f"{match.path}/" for match in await _entries(session, before, part) if match.is_directory
    ]


async def _entries(session: Session, directory: str, part: str) -> list[Match]:
    """Give the entries of a directory, "" or with its final slash, that fit one part."""
    entries = await session.list(directory.rstrip("/") or directory)
    return [
        Match(directory + entry.name, entry)
        for entry in entries
        if entry.kind not in ("cdir", "pdir") and _fits(entry.name, part)
    ]


def _fits(name: str, part: str) -> bool:
    is_hidden = name.startswith(".") and not part.startswith(".")
    return not is_hidden and fnmatch.fnmatchcase(name, part)


async def is_directory(session: Session, path: str) -> bool:
    """Tell whether one can change to `path` on the server; the present directory stays."""
    try:
        here = await session.pwd()
        await session.cwd(path)
        await session.cwd(here)
    except LoginError:
        raise
    except XftpError:
        return False
    return True
