"""Commands of the control connection: a verb, and an argument after one space.

    command = verb [ SP argument ] CRLF                                  RFC 959 section 5.3

The connection speaks Telnet (RFC 959 section 2.3): commands of Telnet may stand in front of a line
and in its verb, most often before ABOR, and a data byte 255 comes doubled (RFC 854). In an argument
a command of Telnet is an error: most clients do not double the bytes of a name, and without it the
name would be that of another file. Names are UTF-8 (RFC 2640); other bytes are carried as surrogate
escapes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xftp.errors import ArgumentError

DEFAULT_MAX_LINE_BYTES = 8192
"""The longest command line that is read, without its end: two paths of PATH_MAX (4096) bytes."""

# RFC 854: IAC is 255. WILL, WONT, DO, DONT (251 to 254) carry an option byte, the commands from
# 240 to 250 nothing, and IAC IAC is a data byte 255. Before any other byte IAC is left as it is:
# old clients do not double it in file names. A sequence cut by the end of the bytes is `cut`.
_TELNET = re.compile(
    rb"\xff(?:(?P<data>\xff)|[\xf0-\xfa]|[\xfb-\xfe].|(?P<cut>[\xfb-\xfe]?\Z))", re.DOTALL
)
_VERB = re.compile(rb"[A-Za-z][A-Za-z0-9]{0,15}")
_CONTROL = re.compile(rb"[\r\0]")
_NO_OPERATION = b"\0"
"""NUL is no operation in Telnet (RFC 854): its commands that mean nothing here become that."""
_SENT_TELNET = re.compile(rb"\xff[\xf0-\xff]")
_NAMES_NOTHING = ("PASS", "ACCT")
"""What does not fit is refused there, and does nothing to another file."""
_LINE_ENDS = re.compile("[\r\n\0]")


class Command(NamedTuple):
    """One command of a client."""

    verb: str
    """1 to 16 ASCII letters and digits, a letter first; upper case."""

    argument: str
    """All that follows the one space after the verb, trailing spaces included; may be empty."""


class BadLine(NamedTuple):
    """A line that is no command; the answer to it is 500."""

    reason: str
    """One sentence for a person, without a final full stop."""


class CommandParser:
    """Turn the bytes of a control connection into commands.

    Never raises, and holds at most `max_line_bytes` and a few more. The socket should be read
    with SO_OOBINLINE, or the urgent byte of a Telnet Synch is missing from the stream.
    """

    def __init__(self, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._cut = b""  # the first bytes of a Telnet sequence
        self._pending = b""  # the first bytes of a line, with NUL for each Telnet command in it
        self._discarding = False  # the rest of a line that was too long

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes of an unfinished line are held."""
        return len(self._cut) + len(self._pending)

    def feed(self, data: bytes) -> list[Command | BadLine]:
        """Take received bytes, cut anywhere, and return the lines they complete.

        Lines end in CRLF or LF; empty lines are dropped. A line that is too long is one
        BadLine, as soon as it is too long. RFC 959 section 5.3.
        """
        *lines, rest = self._strip_telnet(data).split(b"\n")
        found = [self._end_line(line) for line in lines]
        found.append(self._keep(rest))
        return [line for line in found if line is not None]

    def _strip_telnet(self, data: bytes) -> bytes:
        data, self._cut = self._cut + data, b""
        return _TELNET.sub(self._replace_sequence, data)

    def _replace_sequence(self, found: re.Match[bytes]) -> bytes:
        if found["cut"] is not None:
            self._cut = found[0]
            return b""
        return found["data"] or _NO_OPERATION

    def _end_line(self, rest: bytes) -> Command | BadLine | None:
        line, self._pending = (self._pending + rest).lstrip(_NO_OPERATION), b""
        if self._discarding:
            self._discarding = False
            return None
        line = line.removesuffix(b"\r")
        if len(line) > self._max_line_bytes:
            return _too_long(self._max_line_bytes)
        return _parse_line(line) if line else None

    def _keep(self, rest: bytes) -> BadLine | None:
        """Hold the beginning of a line, unless it is already too long."""
        if self._discarding:
            return None
        self._pending = (self._pending + rest).lstrip(_NO_OPERATION)
        # A final CR may belong to the line end, which does not count.
        if len(self._pending.removesuffix(b"\r")) <= self._max_line_bytes:
            return None
        self._discarding, self._pending = True, b""
        return _too_long(self._max_line_bytes)


def format_command(verb: str, argument: str = "", *, doubles: bool = False) -> bytes:
    """Write a command line.

    doubles: a byte 255 is written twice, for servers that are known to speak Telnet; others would
    keep both. Raises ArgumentError if a character would end the line (CR, LF, NUL) or stands for no
    bytes, and for bytes that are a command of Telnet, unless `doubles`: servers that take it out
    would be told another name. RFC 959 section 5.3.
    """
    line = f"{verb} {argument}" if argument else verb
    if _LINE_ENDS.search(line):
        raise ArgumentError("a line end or NUL cannot be sent in a command")
    try:
        written = line.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ArgumentError("a character of the command stands for no bytes") from error
    if doubles:
        written = written.replace(b"\xff", b"\xff\xff")
    elif verb not in _NAMES_NOTHING and _SENT_TELNET.search(written):
        raise ArgumentError("a name with a command of Telnet in it (byte 255) cannot be sent")
    return written + b"\r\n"


def _parse_line(line: bytes) -> Command | BadLine:
    verb, _, argument = line.partition(b" ")
    verb = verb.replace(_NO_OPERATION, b"")
    if _CONTROL.search(verb + argument):
        return BadLine(
            "a command line holds a CR, a NUL or a command of Telnet (255 is sent twice)"
        )
    if not _VERB.fullmatch(verb):
        return BadLine("a command is 1 to 16 letters and digits")
    return Command(verb.decode("ascii").upper(), argument.decode("utf-8", "surrogateescape"))


def _too_long(max_line_bytes: int) -> BadLine:
    return BadLine(f"a command line is longer than {max_line_bytes} bytes")
