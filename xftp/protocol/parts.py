"""What is held of a file and what is missing of it: the commands PART and HELD, docs/protocol.md.

    PART facts      Size=6000000;Modify=20260102030405;Ranges=8192-16383,65536-5999999;
    HELD path       213 Size=6000000;Modify=20260102030405;Ranges=0-8191,16384-65535;

The facts are those of MLSD (RFC 3659 section 7.2), with Ranges beside them: offsets of first and
last bytes, as in RANG, in order, and with at least a byte between two of them. In PART they are
what is to be moved, in the reply to HELD what is there.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xftp.errors import ArgumentError

from .hashes import ByteRange
from .listings import format_time_val, parse_time_val
from .records import CHUNK_BYTES
from .recordset import RecordSet

MOST_RANGES = 100
"""Ranges that one line holds at most: of files of a terabyte that is a line of 2.7 kB."""

_LARGEST = 2**63 - 1
_SIZE = re.compile(r"[0-9]{1,19}")
_RANGE = re.compile(r"([0-9]{1,19})-([0-9]{1,19})")
_MICROSECONDS = 6
_LONGEST_TIME = len("YYYYMMDDHHMMSS.123456789")


class PartFacts(NamedTuple):
    """Which file is meant, and which bytes of it."""

    size: int | None = None
    """Bytes of the complete file; None: not told."""

    modified: str | None = None
    """When the file was modified that the bytes are of, as a time-val of RFC 3659 section 2.3,
    with fractions of a second where they are known; None: not told."""

    ranges: tuple[ByteRange, ...] | None = None
    """In order, none touching another; None: not told."""

    def is_same_file(self, other: PartFacts) -> bool:
        """Tell whether both mean the same version of a file."""
        return (self.size, self.modified) == (other.size, other.modified)


def format_part(facts: PartFacts) -> str:
    """Write the facts of PART, or of the reply to HELD."""
    text = "" if facts.size is None else f"Size={facts.size};"
    if facts.modified is not None:
        text += f"Modify={facts.modified};"
    if facts.ranges is not None:
        text += "Ranges=" + ",".join(f"{each.start}-{each.end - 1}" for each in facts.ranges) + ";"
    return text


def parse_part(text: str) -> PartFacts:
    """Read facts. Those that are not known are passed over. Raises ArgumentError."""
    values: dict[str, str] = {}
    for fact in text.removesuffix(";").split(";") if text else ():
        name, equals, value = fact.partition("=")
        if not equals or not name or name.lower() in values:
            raise ArgumentError("expected name=value;name=value;")
        values[name.lower()] = value
    size, modified, ranges = values.get("size"), values.get("modify"), values.get("ranges")
    if size is not None and (not _SIZE.fullmatch(size) or int(size) > _LARGEST):
        raise ArgumentError("a size is a number of bytes")
    if modified is not None:
        parse_time_val(modified)
    if modified is not None and len(modified) > _LONGEST_TIME:
        raise ArgumentError(f"a time has at most {_LONGEST_TIME} characters")
    facts = PartFacts(
        None if size is None else int(size),
        modified,
        None if ranges is None else _parse_ranges(ranges),
    )
    if facts.ranges and facts.size is not None and facts.ranges[-1].end > facts.size:
        raise ArgumentError("a range lies beyond the end of the file")
    return facts


def _parse_ranges(text: str) -> tuple[ByteRange, ...]:
    """Read ranges; none at all are none. Raises ArgumentError."""
    ranges: list[ByteRange] = []
    for word in text.split(",") if text else ():
        found = _RANGE.fullmatch(word)
        if found is None or len(ranges) == MOST_RANGES:
            raise ArgumentError(f"expected up to {MOST_RANGES} ranges as first-last,first-last")
        first, last = int(found[1]), int(found[2])
        if not first <= last < _LARGEST or (ranges and first <= ranges[-1].end):
            raise ArgumentError("ranges are in order, and none touches another")
        ranges.append(ByteRange(first, last + 1))
    return tuple(ranges)


# -- times ------------------------------------------------------------------------------------


def exact_time_val(unix_time: float) -> str | None:
    """Write a time with microseconds, so that little changes go unnoticed; None: it is no date."""
    seconds = math.floor(unix_time)
    try:
        whole = format_time_val(seconds)
    except ArgumentError:
        return None
    return f"{whole}.{int((unix_time - seconds) * 10**_MICROSECONDS):0{_MICROSECONDS}}"


def is_time(told: str, unix_time: float) -> bool:
    """Tell whether a time-val is this time, to the precision that it was told with."""
    exact = exact_time_val(unix_time)
    if exact is None:
        return False
    length = min(len(told), len(exact)) if "." in told else exact.index(".")
    return told[:length] == exact[:length]


# -- ranges -----------------------------------------------------------------------------------


def missing_ranges(held: Iterable[tuple[int, int]], size: int) -> list[ByteRange]:
    """Give what is not held of a file of `size` bytes. held: (start, end), end exclusive."""
    return [ByteRange(start, end) for start, end in RecordSet(held).missing(0, size)]


def fewest(ranges: Sequence[ByteRange], most: int = MOST_RANGES) -> list[ByteRange]:
    """Join ranges across the smallest gaps between them, until there are at most `most`."""
    excess = len(ranges) - most
    if excess <= 0:
        return list(ranges)
    joins = heapq.nsmallest(
        excess, range(1, len(ranges)), key=lambda at: ranges[at].start - ranges[at - 1].end
    )
    joined: list[ByteRange] = []
    crossed = set(joins)
    for at, each in enumerate(ranges):
        if at in crossed:
            joined[-1] = ByteRange(joined[-1].start, each.end)
        else:
            joined.append(each)
    return joined


def largest(ranges: Iterable[tuple[int, int]], most: int = MOST_RANGES) -> list[ByteRange]:
    """Give the largest of the ranges (start, end), at most `most`, in order."""
    whole = [ByteRange(start, end) for start, end in ranges if start < end]
    return sorted(heapq.nlargest(most, whole, key=lambda each: each.size), key=_start)


def records_of(ranges: Iterable[ByteRange]) -> list[tuple[int, int]]:
    """Give the records (start, end) that hold any byte of the ranges; record 0 is byte 0."""
    records = RecordSet((each.start // CHUNK_BYTES, -(-each.end // CHUNK_BYTES)) for each in ranges)
    return list(records.ranges())


def _start(each: ByteRange) -> int:
    return each.start
