"""Text of a server, made fit for a terminal."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace what could steer a terminal, and bytes that are no UTF-8, by "?"."""
    return _UNPRINTABLE.sub("?", text)
