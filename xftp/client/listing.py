"""Directories of the server: MLSD where it has it (RFC 3659 section 7), else LIST."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xftp.errors import ArgumentError, PeerError, ReplyError
from xftp.protocol.commands import Command
from xftp.protocol.listings import (
    SITE_LISTING,
    Entry,
    Kind,
    parse_mlsx_line,
    parse_time_val,
)
from xftp.protocol.replies import Reply

from .dialogue import Dialogue
from .flights import Pace
from .streams import fetch_listing

if TYPE_CHECKING:
    import aioftp

_NOT_A_DIRECTORY = frozenset({501, 550})
"""Replies to MLSD for a path that is a file (RFC 3659 section 7.2.1 says 501)."""

_NO_FILES = 450
"""What some servers say of an empty directory."""

_KINDS: dict[str, Kind] = {"file": "file", "dir": "dir"}


async def list_entries(dialogue: Dialogue, path: str) -> list[Entry]:
    """List a directory, without "." and ".."; of a file, the file itself."""
    if dialogue.features is not None and not dialogue.lacks("MLST"):
        entries = await _machine_entries(dialogue, path)
        if entries is not None:
            return entries
    lines = _lines(await fetch_text(dialogue, path))
    return parse_list(lines)


def lists_together(dialogue: Dialogue) -> bool:
    """Tell whether several directories can be listed in one flight."""
    name, word = SITE_LISTING
    listed = (dialogue.features or {}).get(name, "").upper()
    return dialogue.pace is Pace.ALL and word in listed.split(";")


async def list_together(dialogue: Dialogue, paths: Sequence[str]) -> list[list[Entry] | None]:
    """List directories in one flight, on the control connection; only where `lists_together`.

    Gives None for one that has to be listed by itself: it is long, or cannot be listed.
    """
    name, word = SITE_LISTING
    replies = await dialogue.flight(*(Command(name, f"{word} {path}") for path in paths))
    return [_told(reply) for reply in replies]


def _told(reply: Reply) -> list[Entry] | None:
    """Read the reply to SITE MLSD."""
    if not reply.is_positive:
        return None
    lines = [line.removeprefix(" ") for line in reply.lines[1:-1]]
    entries = _parsed(lines, parse_mlsx_line)
    return [entry for entry in entries if entry.kind not in ("cdir", "pdir")]


async def fetch_text(dialogue: Dialogue, path: str) -> bytes:
    """Fetch the listing that is meant for people, as the server sends it."""
    argument = f"./{path}" if path.startswith("-") else path  # servers take "-x" for options
    try:
        return await fetch_listing(dialogue, Command("LIST", argument))
    except ReplyError as error:
        if error.code == _NO_FILES:
            return b""
        raise


async def _machine_entries(dialogue: Dialogue, path: str) -> list[Entry] | None:
    """List by MLSD; None if the server lacks it after all."""
    try:
        listing = await fetch_listing(dialogue, Command("MLSD", path))
    except ReplyError as error:
        if error.code in _NOT_A_DIRECTORY:
            entry = parse_mlst(await dialogue.ask("MLST", path)) if path else None
            if entry is not None and entry.kind not in ("dir", "cdir", "pdir"):
                return [entry]
            raise
        if error.code in (500, 502):
            return None
        raise
    entries = _parsed(_lines(listing), parse_mlsx_line)
    return [entry for entry in entries if entry.kind not in ("cdir", "pdir")]


def parse_mlst(reply: Reply) -> Entry | None:
    """Read the reply to MLST; None if it tells nothing. Raises PeerError."""
    if not reply.is_positive or len(reply.lines) < 3:
        return None
    entry = parse_mlsx_line(reply.lines[1].removeprefix(" "))
    # MLST may name the whole path (RFC 3659 section 7.2); an entry has its own name only.
    return entry._replace(name=entry.name.rstrip("/").rpartition("/")[2] or entry.name)


def parse_list(lines: Iterable[str]) -> list[Entry]:
    """Read the lines of LIST, Unix or Windows; those that are no entry are left out.

    Their times are in the server's own zone, which it does not tell: they are taken as UTC.
    """
    import aioftp  # slow to load, and only needed for servers without MLSD

    parser = aioftp.BaseClient(encoding="latin-1")
    entries = _parsed(lines, lambda line: _list_entry(parser, line))
    return [entry for entry in entries if entry.name not in (".", "..")]


def _parsed(lines: Iterable[str], parse: Callable[[str], Entry]) -> list[Entry]:
    entries = []
    for line in lines:
        try:
            entries.append(parse(line))
        except (PeerError, ValueError):
            continue  # "total 12", an empty line, or what cannot be trusted to be an entry
    return entries


def _list_entry(parser: aioftp.BaseClient, line: str) -> Entry:
    """Read one line of LIST. Raises ValueError.

    aioftp decodes by itself and strictly: bytes that are not UTF-8 go through it as Latin-1.
    """
    raw = line.encode("utf-8", "surrogateescape")
    try:
        parser.encoding = "utf-8"
        raw.decode("utf-8")
    except UnicodeDecodeError:
        parser.encoding = "latin-1"
    path, info = parser.parse_list_line(raw)
    name = str(path).encode(parser.encoding).decode("utf-8", "surrogateescape")
    facts: Mapping[str, str] = {key: str(value) for key, value in info.items()}
    return Entry(
        name=name,
        kind="link" if "link_dst" in facts else _KINDS.get(facts["type"], "other"),
        size=int(facts["size"]) if "size" in facts else None,
        modified=_time(facts.get("modify")),
        facts=facts,
    )


def _time(text: str | None) -> float | None:
    try:
        return None if text is None else parse_time_val(text)
    except ArgumentError:
        return None


def _lines(listing: bytes) -> list[str]:
    text = listing.decode("utf-8", "surrogateescape")
    return [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
