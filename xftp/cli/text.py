"""Words for people: names that cannot harm a terminal, sizes, rates, lines of a listing."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterable, Mapping

from xftp.protocol.listings import RECENT_S, Entry
from xftp.transport.report import ConnectionReport, TransferReport

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (text direction), surrogate (not UTF-8), line and paragraph separators."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_KIND_LETTERS = {"dir": "d", "cdir": "d", "pdir": "d", "link": "l"}


def printable(text: str) -> str:
    """Show what a server sent so that it cannot write escape sequences: "?" for what is unsafe."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("?" if _is_unsafe(character) else character for character in text)


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in _UNSAFE_CATEGORIES


def size_text(size_bytes: float) -> str:
    """Write a number of bytes with three figures and a decimal unit: "256 MB"."""
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return "1 byte" if size_bytes == 1 else f"{value:.0f} bytes"
    return f"{value:.3g} {_UNITS[unit]}"


def rate_text(bytes_per_s: float) -> str:
    """Write a rate: "610 MB/s"."""
    return f"{size_text(bytes_per_s)}/s"


def seconds_text(seconds: float) -> str:
    """Write a time: "3 ms", "0.42 s", "12.3 s", "2:05 min", "1:02:05 h"."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest_s:02} h" if hours else f"{minutes}:{rest_s:02} min"


def connections_text(count: int) -> str:
    """Write a number of connections: "8 connections"."""
    return f"{count} connection{'' if count == 1 else 's'}"


def summary(name: str, report: TransferReport) -> str:
    """Write the one line that a transfer leaves behind.

    One of several files that moved together has no time and no rate of its own.
    """
    if report.files > 1:
        return f"{printable(name)}: {size_text(report.bytes)}"
    rate = f", {rate_text(report.bytes_per_s)}" if report.bytes and report.seconds > 0 else ""
    resumed = f", resumed at {size_text(report.offset)}" if report.offset else ""
    moved = f"{size_text(report.bytes)} in {seconds_text(report.seconds)}"
    count = connections_text(max(1, len(report.connections)))
    return f"{printable(name)}: {moved}{rate} over {count}{resumed}"


def connection_summary(connection: ConnectionReport, seconds: float) -> str:
    """Write what is known of one connection of a transfer that took `seconds`."""
    words = [size_text(connection.bytes)]
    if seconds > 0:
        words.append(rate_text(connection.bytes / seconds))
    had = connection.socket
    if "congestion" in had:
        words.append(str(had["congestion"]))
    if "initial_window_segments" in had:
        words.append(f"initial window {had['initial_window_segments']}")
    words.extend(_buffers_text(had))
    if connection.rtt_s is not None:
        words.append(f"RTT {_rtt_text(connection.rtt_s)}{_least_text(had.get('min_rtt_s'))}")
    if connection.retransmits is not None:
        again = connection.retransmits
        words.append(f"{again} segment{'' if again == 1 else 's'} sent again")
    delivered = had.get("delivery_rate_bps")
    if isinstance(delivered, int):
        words.append(f"delivered at {rate_text(delivered / 8)}")
    return f"connection {connection.number}: {', '.join(words)}"


def _buffers_text(had: Mapping[str, object]) -> list[str]:
    sizes = (had.get("send_buffer_bytes"), had.get("receive_buffer_bytes"))
    told = [size_text(size) for size in sizes if isinstance(size, int)]
    return [f"buffers {' and '.join(told)}"] if len(told) == 2 else []


def _least_text(min_rtt_s: object) -> str:
    return f" (least {_rtt_text(min_rtt_s)})" if isinstance(min_rtt_s, float) else ""


def _rtt_text(rtt_s: float) -> str:
    """Write a round-trip time with three figures: "0.0142 ms", "561 ms", "1.2 s"."""
    return f"{rtt_s * 1000:.3g} ms" if rtt_s < 0.9995 else f"{rtt_s:.3g} s"


def listing_lines(entries: Iterable[Entry], *, long: bool) -> list[str]:
    """Write the lines of `ls`, in the order of the names, "." and ".." left out."""
    shown = sorted(
        (entry for entry in entries if entry.kind not in ("cdir", "pdir")),
        key=lambda entry: entry.name,
    )
    if not long:
        return [printable(entry.name) + ("/" if entry.kind == "dir" else "") for entry in shown]
    sizes = ["-" if entry.size is None else str(entry.size) for entry in shown]
    width = max(map(len, sizes), default=0)
    return [_long_line(entry, size.rjust(width)) for entry, size in zip(shown, sizes, strict=True)]


def _long_line(entry: Entry, size: str) -> str:
    letter = _KIND_LETTERS.get(entry.kind, "-")
    mode = _mode_text(entry.facts.get("unix.mode", ""))
    return f"{letter}{mode} {size} {_time_text(entry.modified)} {printable(entry.name)}"


def _mode_text(octal: str) -> str:
    """Write the permissions of a UNIX.mode fact as `ls -l` does; "" if it was not sent."""
    if not octal.isascii() or not octal.isdigit() or set(octal) & set("89") or len(octal) > 5:
        return ""
    bits = int(octal, 8)
    return "".join(
        letter if bits >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx")
    )


def _time_text(modified: float | None) -> str:
    """Write a time in the zone of the person, with the hour if it is recent."""
    if modified is None:
        return " " * 12
    try:
        form = "%b %e %H:%M" if 0 <= time.time() - modified < RECENT_S else "%b %e  %Y"
        return time.strftime(form, time.localtime(modified))
    except (OverflowError, ValueError, OSError):
        return "?".rjust(12)
