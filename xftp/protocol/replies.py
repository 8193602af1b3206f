"""Replies of the control connection: one line or several, with a three-digit code.

    reply   = code SP text CRLF
            / code "-" text CRLF *(line CRLF) code SP text CRLF          RFC 959 section 4.2

Texts are UTF-8 (RFC 2640); bytes that are not are carried as surrogate escapes, so that a name
in another encoding survives the way through.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xftp.errors import PeerError

MAX_LINE_BYTES = 16 * 1024
"""The longest reply line that is read, without its end: an own limit, RFC 959 knows none."""

MAX_REPLY_BYTES = 64 * 1024
"""The longest reply that is read, without the ends of its lines: an own limit."""

MAX_REPLY_LINES = 1000
"""The most lines of one reply that are read: an own limit."""

_CODE = re.compile(rb"([1-6][0-9]{2})(?:([ -])|\Z)")  # 6yz: RFC 2228 section 5
# Line ends would split a reply in two; the surrogates are those that no byte stands for.
_UNSENDABLE = re.compile("[\r\n\0\ud800-\udc7f\udd00-\udfff]")


class Reply(NamedTuple):
    """One reply of a server (RFC 959 section 4.2)."""

    code: int
    """100 to 699; the first digit tells the outcome."""

    lines: tuple[str, ...]
    """The texts without code and line end; at least one."""

    @property
    def text(self) -> str:
        """Return all lines, joined by line feeds."""
        return "\n".join(self.lines)

    @property
    def is_preliminary(self) -> bool:
        """Tell whether another reply follows (1yz)."""
        return self.code // 100 == 1

    @property
    def is_positive(self) -> bool:
        """Tell whether the command was done (2yz)."""
        return self.code // 100 == 2

    @property
    def is_intermediate(self) -> bool:
        """Tell whether another command is awaited (3yz)."""
        return self.code // 100 == 3

    @property
    def is_negative(self) -> bool:
        """Tell whether the command was refused (4yz, 5yz)."""
        return self.code // 100 in (4, 5)

    @property
    def is_transient(self) -> bool:
        """Tell whether the same command may succeed later (4yz)."""
        return self.code // 100 == 4


def format_reply(code: int, *lines: str) -> bytes:
    """Write a reply, of several lines if several are given.

    code: 100 to 699, else ValueError. Middle lines get one leading space, so that none can be
    taken for the last. What a line cannot carry (CR, LF, NUL, a surrogate that stands for no
    byte) becomes "?". RFC 959 section 4.2.
    """
    if not 100 <= code <= 699:
        raise ValueError(f"{code} is not a reply code")
    *before, last = (_UNSENDABLE.sub("?", line) for line in lines or ("",))
    wire = [f"{' ' if number else f'{code}-'}{line}\r\n" for number, line in enumerate(before)]
    wire.append(f"{code} {last}\r\n")
    return "".join(wire).encode("utf-8", "surrogateescape")


class ReplyParser:
    """Turn the bytes of a control connection into replies.

    After a PeerError the place in the stream is lost: the connection must be closed.
    """

    def __init__(self) -> None:
        self._pending = b""
        self._code = b""  # of the reply under way, else empty
        self._lines: list[str] = []
        self._reply_bytes = 0

    def feed(self, data: bytes) -> list[Reply]:
        """Take received bytes, cut anywhere, and return the replies they complete.

        Lines end in CRLF or LF. Raises PeerError for what is no reply or exceeds the limits
        of this module. RFC 959 section 4.2.
        """
        *lines, self._pending = (self._pending + data).split(b"\n")
        replies = []
        for line in lines:
            reply = self._take_line(line.removesuffix(b"\r"))
            if reply is not None:
                replies.append(reply)
        if len(self._pending) > MAX_LINE_BYTES + 1:  # the one may be the CR of the line end
            raise PeerError("the server sends an endless reply line")
        return replies

    def close(self) -> None:
        """Note the end of the stream; raises PeerError if it came inside a reply."""
        if self._pending or self._code:
            raise PeerError("the control connection ended inside a reply")

    def _take_line(self, line: bytes) -> Reply | None:
        if len(line) > MAX_LINE_BYTES:
            raise PeerError("the server sends an endless reply line")
        if not self._code:
            return self._take_first_line(line)
        return self._take_further_line(line)

    def _take_first_line(self, line: bytes) -> Reply | None:
        found = _CODE.match(line)
        if found is None:
            raise PeerError("the server sends what is not an FTP reply")
        self._code = found[1]
        self._add(line, line[4:])
        return None if found[2] == b"-" else self._finish()

    def _take_further_line(self, line: bytes) -> Reply | None:
        found = _CODE.match(line)
        if found is not None and found[1] == self._code:
            # Many servers repeat the code with "-" on every line but the last.
            self._add(line, line[4:])
            return None if found[2] == b"-" else self._finish()
        self._add(line, line.removeprefix(b" "))  # the space that `format_reply` puts
        return None

    def _add(self, line: bytes, text: bytes) -> None:
        self._reply_bytes += len(line)
        if self._reply_bytes > MAX_REPLY_BYTES or len(self._lines) >= MAX_REPLY_LINES:
            raise PeerError("the server sends an endless reply")
        self._lines.append(text.decode("utf-8", "surrogateescape"))

    def _finish(self) -> Reply:
        reply = Reply(int(self._code), tuple(self._lines))
        self._code, self._lines, self._reply_bytes = b"", [], 0
        return reply
