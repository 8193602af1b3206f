"""The homes of users: whether they are there, and made if that is wanted."""

from __future__ import annotations

import os
from pathlib import Path

from xftp.errors import FileError, file_error

HOME_MODE = 0o750
"""What a new home may be used for: the daemon, and its group for whoever looks after it."""


def prepare_home(home: Path, root: Path | None, users_file: Path, *, create: bool) -> str | None:
    """See that a user's home is a directory, or make it one.

    root: the daemon's, which a relative home lies beneath; None: not known. A new home belongs to
    the owner of the users file, since that is who the daemon is. Returns a note if nothing could be
    seen. Raises FileError.
    """
    if not home.is_absolute() and root is None:
        return f"{home} lies beneath the daemon's root: say --root to have it looked at"
    path = home if root is None else root / home
    if os.path.isdir(path):
        return None
    if os.path.lexists(path):
        raise FileError(f"{path} is no directory")
    if not create:
        raise FileError(f"there is no directory {path}: make it, or say --create-home")
    _make(path, users_file)
    return None


def _make(path: Path, users_file: Path) -> None:
    """Make a directory, the ones above it too, for the owner of the users file."""
    try:
        path.mkdir(HOME_MODE, parents=True)
        if users_file.exists():
            owner = users_file.stat()
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(path, owner.st_uid, owner.st_gid)
    except OSError as error:
        raise file_error(error, str(path)) from error
