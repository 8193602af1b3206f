"""Directory listings and times: MLSD and MLST, MDTM, and the `ls -l` lines of LIST.

entry    = [ 1*( fact ";" ) ] SP name,  fact = fact-name "=" value   RFC 3659 section 7.2
time-val = YYYYMMDDHHMMSS [ "." 1*digit ], in UTC                    RFC 3659 section 2.3
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from xftp.errors import ArgumentError, FileNameError, PeerError

Kind = Literal["file", "dir", "cdir", "pdir", "link", "other"]

RECENT_S = 31_556_952 // 2
"""Half a mean Gregorian year: `ls -l` shows the time of younger files, the year of others."""

SITE_LISTING = ("SITE", "MLSD")
"""FEAT's line of a server that tells short listings on the control connection, and its word."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_SIZE_DIGITS = 20  # 2**64 has as many
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_KINDS: dict[str, Kind] = {"file": "file", "dir": "dir", "cdir": "cdir", "pdir": "pdir"}
# RFC 3659 section 7.5.1 leaves other types to the systems; these two spellings are in use.
_LINK_TYPE = re.compile(r"os\.unix=(?:slink|symlink)(?::|\Z)", re.IGNORECASE)
_SIZE = re.compile(rf"[0-9]{{1,{_MAX_SIZE_DIGITS}}}")
_TIME_VAL = re.compile(r"([0-9]{4})" + r"([0-9]{2})" * 5 + r"(\.[0-9]+)?")
# RCHAR and SCHAR of RFC 3659 section 7.2, widened to every visible character but the separators.
_FACT_NAME = re.compile(r"[^\s;=\0]+")
_FACT_VALUE = re.compile(r"[^\s;\0]*")
_LINE_ENDS = re.compile("[\r\n\0]")


class Entry(NamedTuple):
    """One entry of a machine-readable listing (RFC 3659 section 7)."""

    name: str
    """As the server gave it: check it with `safe_name` before it becomes a local name."""

    kind: Kind
    """The type fact; "other" also without one."""

    size: int | None
    """Bytes, if the server told."""

    modified: float | None
    """Unix time in seconds, UTC, if the server told."""

    facts: Mapping[str, str]
    """All facts, their names in lower case."""


# -- MLSD and MLST ----------------------------------------------------------------------------


def parse_mlsx_line(line: str) -> Entry:
    """Read one entry of MLSD or MLST, without its line end and without the indent of MLST.

    Raises PeerError when it is malformed. RFC 3659 section 7.2.
    """
    text, space, name = line.partition(" ")
    if not space or not name:
        raise PeerError("a line of the listing holds no name")
    facts = _parse_facts(text)
    return Entry(
        name=name,
        kind=_kind(facts.get("type", "")),
        size=_parse_size(facts.get("size")),
        modified=_parse_modified(facts.get("modify")),
        facts=facts,
    )


def format_mlsx_line(entry_facts: Mapping[str, str], name: str) -> str:
    """Write one entry of MLSD or MLST, without line end.

    Raises FileNameError for a name that a line cannot carry, ArgumentError for such a fact.
    RFC 3659 section 7.2.
    """
    for fact, value in entry_facts.items():
        if not (_FACT_NAME.fullmatch(fact) and _FACT_VALUE.fullmatch(value)):
            raise ArgumentError(f"the fact {fact!r} cannot be sent")
    facts = "".join(f"{fact}={value};" for fact, value in entry_facts.items())
    return f"{facts} {_one_line(name)}"


def _parse_facts(text: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    # Some servers forget the last ";".
    for fact in text.removesuffix(";").split(";") if text else ():
        name, equals, value = fact.partition("=")
        if not equals or not name:
            raise PeerError("a fact of the listing is malformed")
        facts[name.lower()] = value
    return facts


def _kind(type_fact: str) -> Kind:
    if _LINK_TYPE.match(type_fact):
        return "link"
    return _KINDS.get(type_fact.lower(), "other")


def _parse_size(text: str | None) -> int | None:
    if text is None:
        return None
    if not _SIZE.fullmatch(text):
        raise PeerError("a size of the listing is not a number")
    return int(text)


def _parse_modified(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_time_val(text)
    except ArgumentError as error:
        raise PeerError(f"a time of the listing is malformed: {error}") from error


# -- times ------------------------------------------------------------------------------------


def parse_time_val(text: str) -> float:
    """Read a time of MDTM, MFMT or a modify fact as Unix time in seconds.

    Raises ArgumentError for what is no date of the years 1 to 9999. RFC 3659 section 2.3.
    """
    found = _TIME_VAL.fullmatch(text)
    if found is None:
        raise ArgumentError("expected a time as YYYYMMDDHHMMSS")
    year, month, day, hour, minute, second = (int(field) for field in found.groups()[:6])
    # datetime knows no leap second, which RFC 3659 allows: it is the start of the next minute.
    leap_s = 1 if second == 60 else 0
    try:
        when = datetime(year, month, day, hour, minute, second - leap_s, tzinfo=UTC)
    except ValueError as error:
        raise ArgumentError("there is no such date or time") from error
    return (when - _EPOCH).total_seconds() + leap_s + float(found[7] or 0)


def format_time_val(unix_time: float) -> str:
    """Write a time for MDTM, MFMT or a modify fact.

    unix_time: seconds. Fractions are cut off: not every client reads them. Raises
    ArgumentError outside the years 1 to 9999. RFC 3659 section 2.3.
    """
    when = _utc(unix_time)
    date = f"{when.year:04}{when.month:02}{when.day:02}"
    return f"{date}{when.hour:02}{when.minute:02}{when.second:02}"


def _utc(unix_time: float) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=math.floor(unix_time))
    except (OverflowError, ValueError) as error:
        raise ArgumentError("the time is outside the years 1 to 9999") from error


# -- LIST -------------------------------------------------------------------------------------


def format_list_line(
    name: str,
    mode: int,
    links: int,
    owner: str,
    group: str,
    size: int,
    modified: float,
    now: float,
) -> str:
    """Write one line of LIST as `ls -l` does, in English and UTC, without line end.

    mode: st_mode; size: bytes; modified, now: Unix time in seconds. Raises FileNameError for
    a name that a line cannot carry, ArgumentError for a time outside the years 1 to 9999.
    RFC 959 leaves the form open; clients expect this one.
    """
    # A space in a column would shift the others for every client that splits at spaces.
    owner, group = ("_".join(column.split()) or "-" for column in (owner, group))
    columns = f"{stat.filemode(mode)} {links:>3} {owner:<8} {group:<8} {size:>12}"
    return f"{columns} {_list_date(modified, now)} {_one_line(name)}"


def _list_date(modified: float, now: float) -> str:
    when = _utc(modified)
    day = f"{_MONTHS[when.month - 1]} {when.day:>2}"
    if 0 <= now - modified < RECENT_S:
        return f"{day} {when.hour:02}:{when.minute:02}"
    return f"{day} {when.year:>5}"


# -- names ------------------------------------------------------------------------------------


def safe_name(name: str) -> bool:
    """Tell whether a name from a peer is one entry of a directory, and of one line."""
    return name not in ("", ".", "..") and "/" not in name and not _LINE_ENDS.search(name)


def _one_line(name: str) -> str:
    if not name or _LINE_ENDS.search(name):
        raise FileNameError("a name is empty or holds a line end")
    return name
