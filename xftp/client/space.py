"""Whether a transfer failed because there was no room for the file, here or on the server."""

from __future__ import annotations

import re

from xftp.errors import NoSpaceError, ReplyError

_FULL = 452
"""Insufficient storage space in system (RFC 959 section 4.2)."""

_ALLOCATION = 552
"""Exceeded storage allocation (RFC 959 section 4.2); some say it of a file that is too large."""

_SAYS_FULL = re.compile("quota|space|storage|full", re.IGNORECASE)


def is_no_space(error: Exception) -> bool:
    """Tell whether the next file would very likely fail for the same lack of space."""
    if isinstance(error, ReplyError):
        if error.code == _ALLOCATION:
            return _SAYS_FULL.search(error.text) is not None
        return error.code == _FULL
    return isinstance(error, NoSpaceError)
