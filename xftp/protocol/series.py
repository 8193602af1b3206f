"""Several files as one: the series, docs/protocol.md.

    SERI RETR facts SP path      Hash=SHA-256;                    which hash is wanted
    250 facts                    Size=51200;Modify=20200101000000;Hash=SHA-256:0a1b…;
    SERI STOR facts SP path      the same facts, told by the client
    MRTR, MSTR                   move all that were named, as one file that consists of them
    226-…                        SP index SP code SP text, for each of MSTR that failed; from 0

The facts are those of MLSD (RFC 3659 section 7.2), with Hash beside them. Where a file begins and
ends in the whole follows from the sizes, which both ends know before a byte moves: there is nothing
in the data that could be lost or mistaken for an end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from xftp.errors import ArgumentError, PeerError, XftpError

from .listings import format_time_val, parse_time_val

FEATURE = "SERI"

Way = Literal["RETR", "STOR"]
"""From the server, or to it."""

MOST_FILES = 10_000
MOST_NAME_BYTES = 1 << 20
"""What a server remembers of a series at most: files, and bytes of their paths."""

LARGEST_BYTES = 64 << 20
"""The largest file of a series: one that is larger is hashed, and resumed, better by itself."""

MOST_FAILURES = 500
"""Lines of the final reply: a client reads no more than a thousand of one reply."""

_LONGEST_REASON = 80

_SIZE = re.compile(r"[0-9]{1,19}")
_NAME = re.compile(r"[A-Z0-9-]{1,16}")
_DIGEST = re.compile(r"[0-9a-f]{8,128}")
_FAILURE = re.compile(r" ([0-9]{1,9}) ([45][0-9][0-9]) ?(.*)", re.DOTALL)


class SeriesFile(NamedTuple):
    """One file of a series."""

    path: str
    size: int | None = None
    """Bytes; None only where it is asked for."""
    modified: float | None = None
    """Unix time in whole seconds; None: not told."""
    algorithm: str | None = None
    """Which hash, as HASH calls it; None: none."""
    digest: str | None = None
    """In lower case; None: not told."""


# -- lines ------------------------------------------------------------------------------------


def format_facts(file: SeriesFile) -> str:
    """Write the facts, as they stand behind 250."""
    facts = ""
    if file.size is not None:
        facts += f"Size={file.size};"
    if file.modified is not None:
        facts += f"Modify={format_time_val(file.modified)};"
    if file.algorithm is not None:
        facts += f"Hash={file.algorithm}" + (f":{file.digest};" if file.digest else ";")
    return facts


def format_argument(way: Way, file: SeriesFile) -> str:
    """Write the argument of SERI."""
    return f"{way} {format_facts(file)} {file.path}"


def parse_facts(facts: str, path: str) -> SeriesFile:
    """Read the facts of a file. Those that are not known are passed over. Raises ArgumentError."""
    values: dict[str, str] = {}
    for fact in facts.removesuffix(";").split(";") if facts else ():
        name, equals, value = fact.partition("=")
        if not equals or not name or name.lower() in values:
            raise ArgumentError("expected name=value;name=value;")
        values[name.lower()] = value
    size, modified = values.get("size"), values.get("modify")
    if size is not None and (not _SIZE.fullmatch(size) or int(size) >= 2**63):
        raise ArgumentError("a size is a number of bytes")
    algorithm, _, digest = values.get("hash", "").partition(":")
    if (algorithm and not _NAME.fullmatch(algorithm.upper())) or (
        digest and not _DIGEST.fullmatch(digest.lower())
    ):
        raise ArgumentError("a hash is a name, or name:digits")
    return SeriesFile(
        path,
        None if size is None else int(size),
        None if modified is None else parse_time_val(modified),
        algorithm.upper() or None,
        digest.lower() or None,
    )


def parse_argument(text: str) -> tuple[Way, SeriesFile]:
    """Read the argument of SERI. Raises ArgumentError."""
    way, _, rest = text.partition(" ")
    facts, _, path = rest.partition(" ")
    if not path:
        raise ArgumentError("expected RETR or STOR, facts, and a path")
    file = parse_facts(facts, path)
    if way.upper() == "RETR":
        return "RETR", file
    if way.upper() != "STOR":
        raise ArgumentError("SERI takes RETR or STOR")
    if file.size is None:
        raise ArgumentError("SERI STOR needs a size")
    return "STOR", file


def format_failure(index: int, error: XftpError) -> str:
    """Write the line for a file that could not be stored."""
    text = re.sub(r"[\r\n\0]", "?", str(error))
    return f"{index} {error.reply_code} {text[-_LONGEST_REASON:]}"


def parse_failures(lines: Sequence[str], count: int) -> dict[int, tuple[int, str]]:
    """Read the final reply to MSTR: index of each file that failed, its code and the reason.

    lines: all of the reply, without the code. Raises PeerError for a file that there is not.
    """
    failures = {}
    for line in lines[1:-1]:
        found = _FAILURE.fullmatch(line if line.startswith(" ") else f" {line}")
        if found is None or int(found[1]) >= count:
            raise PeerError("the reply to MSTR cannot be read")
        failures[int(found[1])] = (int(found[2]), found[3])
    return failures


# -- where each file is -------------------------------------------------------------------------


class Layout:
    """Where files lie in the one that they make together: one behind the other."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Take the sizes of the files in bytes, in their order."""
        self.sizes = tuple(sizes)
        self._starts = [0]
        for size in self.sizes:
            self._starts.append(self._starts[-1] + size)

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return self._starts[-1]

    def start(self, index: int) -> int:
        """Where a file begins in the whole."""
        return self._starts[index]

    def spans(self, offset: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Give what `size` bytes at `offset` belong to: (file, offset in it, bytes), in order."""
        end = offset + size
        index = bisect_right(self._starts, offset) - 1
        while offset < end:
            count = min(self._starts[index + 1], end) - offset
            if count > 0:
                yield index, offset - self._starts[index], count
            offset += count
            index += 1
