"""What an account may do: one permission for each kind of thing that happens to files."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from xftp.errors import ArgumentError


class Permission(enum.Enum):
    """One thing that an account may or may not do; the value is its name in the users file."""

    LIST = "list"
    """See which files there are: LIST, NLST, MLSD, MLST, STAT with a path."""

    READ = "read"
    """Fetch files, and ask for their hashes."""

    WRITE = "write"
    """Store files, be it over others, and set their times and modes."""

    APPEND = "append"
    """Put something behind the end of files (APPE)."""

    DELETE = "delete"
    """Remove files and directories, be it by renaming another over them."""

    RENAME = "rename"
    """Rename files and directories."""

    MKDIR = "mkdir"
    """Make directories."""


ALL = frozenset(Permission)
"""Everything."""

READ_ONLY = frozenset({Permission.LIST, Permission.READ})
"""What an account has that was given nothing else."""


def parse_permissions(names: Iterable[str]) -> frozenset[Permission]:
    """Read the names of permissions. Raises ArgumentError for one that there is not."""
    found = set()
    for name in names:
        try:
            found.add(Permission(name))
        except ValueError as error:
            known = ", ".join(each.value for each in Permission)
            raise ArgumentError(f"{name!r} is no permission, there are {known}") from error
    return frozenset(found)


def permission_names(permissions: frozenset[Permission]) -> list[str]:
    """Give the names of permissions, always in the same order."""
    return [each.value for each in Permission if each in permissions]
