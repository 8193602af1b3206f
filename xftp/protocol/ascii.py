"""Line ends of TYPE A: LF on this side, CRLF on the wire (RFC 959 section 3.1.1.1).

Only line ends are converted; all other bytes pass as they are, so that UTF-8 text does too.
"""

from __future__ import annotations

import re

_BARE_LF = re.compile(rb"(?<!\r)\n")


class ToNetwork:
    """Turn LF into CRLF; a CRLF that is already there is left alone."""

    def __init__(self) -> None:
        self._before = b""  # CR if the last byte was one, else nothing

    def convert(self, data: bytes) -> bytes:
        """Take the next bytes of a file, cut anywhere, and return them for the wire."""
        before = self._before
        if data:
            self._before = b"\r" if data.endswith(b"\r") else b""
        return _BARE_LF.sub(b"\r\n", before + data)[len(before) :]

    def finish(self) -> bytes:
        """Return what is still held: nothing, in this direction."""
        return b""


class FromNetwork:
    """Turn CRLF into LF; a lone CR stays."""

    def __init__(self) -> None:
        self._held = b""  # a CR whose LF may follow

    def convert(self, data: bytes) -> bytes:
        """Take the next bytes from the wire, cut anywhere, and return them for a file."""
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        return data.removesuffix(b"\r").replace(b"\r\n", b"\n")

    def finish(self) -> bytes:
        """Return what is still held at the end of the data: a CR that was the last byte."""
        held, self._held = self._held, b""
        return held
