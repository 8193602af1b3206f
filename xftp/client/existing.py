"""The error for a target that is there already."""

from __future__ import annotations

from xftp.errors import FileError


class ExistsError(FileError):
    """The target exists, here or on the server, and nobody said what to do with it."""

    reply_code = 553
