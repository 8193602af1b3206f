"""Rates, sizes and times as people write them.

rate   "50mbit" "50Mbit/s" "6.25MB/s" "2M"   bits per second; a capital B means bytes
size   "4MB" "64k" "1GiB"                    bytes; k M G and KiB are powers of 1024, kB of 1000
time   "600ms" "0.6s"                        seconds; the unit is never guessed
loss   "1e-3" "0.1%"                         a share of the segments

The prefixes of sizes are those of the GNU coreutils manual, "Block size". Prefixes may be
written in either case, since nobody means a millibit.
"""

from __future__ import annotations

import math
import re

from .errors import TuningError

MIN_RATE_BPS = 1e3
"""Below this a full segment takes twelve seconds; "50" was meant as "50M"."""

MAX_RATE_BPS = 1e13
"""More than any link has."""

MAX_SIZE_BYTES = 2**60
"""An exbibyte: more than any file system here holds."""

MIN_TIME_S = 1e-6
MAX_TIME_S = 3600.0
"""The RTT to Saturn, more or less."""

MAX_LOSS = 0.5
"""With half of the segments lost no TCP moves anything."""

_MAX_LENGTH = 40
"""Longer texts are a mistake, and not repeated in full."""

_PREFIXES = ("", "k", "m", "g", "t")
_NUMBER = r"\s*(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+)\s*"
_RATE = re.compile(
    _NUMBER + r"(?P<prefix>[kKmMgGtT]?)(?P<binary>[iI]?)"
    r"(?P<unit>b|B|(?i:bits?)|(?i:bytes?)|)(?P<per>/s|/sec|ps|)\s*"
)
_SIZE = re.compile(
    _NUMBER + r"(?P<prefix>[kKmMgGtT]?)(?P<binary>[iI]?)(?P<unit>B|b|(?i:bytes?)|)\s*"
)
_TIME = re.compile(_NUMBER + r"(?P<unit>us|µs|μs|ms|s|sec|min|)\s*")
_LOSS = re.compile(_NUMBER + r"(?P<unit>%?)\s*")

_TIME_UNITS_S = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0}

_RATE_EXAMPLES = "50mbit, 1.5Mbit/s or 6.25MB/s"
_SIZE_EXAMPLES = "64k, 4MB or 1GiB"
_TIME_EXAMPLES = "600ms or 0.6s"
_LOSS_EXAMPLES = "1e-3 or 0.1%"


def parse_rate(text: str) -> float:
    """Read a rate; give bits per second.

    "b", "bit", "bps" and no unit mean bits, "B" and "byte" bytes. Raises TuningError.
    """
    found = _match(_RATE, text, "rate", _RATE_EXAMPLES)
    prefix, unit = found["prefix"], found["unit"]
    _refuse_lone_i(found, text, "rate", _RATE_EXAMPLES)
    bits = 8 if unit == "B" or unit.lower().startswith("byte") else 1
    base = 1024 if found["binary"] else 1000
    rate_bps = float(found["number"]) * bits * _power(base, prefix)
    if rate_bps == 0:
        raise TuningError(f"the rate {text.strip()!r} is zero: nothing would ever arrive")
    if rate_bps < MIN_RATE_BPS:
        raise TuningError(
            f"the rate {text.strip()!r} is less than 1 kbit/s: was {found['number']}M meant?"
        )
    if rate_bps > MAX_RATE_BPS:
        raise TuningError(f"the rate {text.strip()!r} is more than any link has (10 Tbit/s)")
    return rate_bps


def parse_size(text: str) -> int:
    """Read a size; give bytes. Raises TuningError."""
    found = _match(_SIZE, text, "size", _SIZE_EXAMPLES)
    prefix, unit = found["prefix"], found["unit"]
    _refuse_lone_i(found, text, "size", _SIZE_EXAMPLES)
    base = 1000 if prefix and unit and not found["binary"] else 1024
    size = float(found["number"]) * _power(base, prefix)
    if size > MAX_SIZE_BYTES:
        raise TuningError(f"the size {text.strip()!r} is more than any file has (1 EiB)")
    if size < 1:
        raise TuningError(f"the size {text.strip()!r} is less than one byte")
    if not size.is_integer() and not prefix:
        raise TuningError(f"the size {text.strip()!r} is not a whole number of bytes")
    return round(size)


def parse_time(text: str) -> float:
    """Read a time; give seconds. The unit is needed: "600" could be either. Raises TuningError."""
    found = _match(_TIME, text, "time", _TIME_EXAMPLES)
    if not found["unit"]:
        number = found["number"]
        raise TuningError(f"the time {text.strip()!r} has no unit: write {number}ms or {number}s")
    time_s = float(found["number"]) * _TIME_UNITS_S[found["unit"]]
    if not MIN_TIME_S <= time_s <= MAX_TIME_S:
        raise TuningError(f"the time {text.strip()!r} is not between 1us and one hour")
    return time_s


def parse_loss(text: str) -> float:
    """Read a loss rate; give the share of segments lost, 0 to 0.5. Raises TuningError."""
    found = _match(_LOSS, text, "loss", _LOSS_EXAMPLES)
    loss = float(found["number"]) / (100 if found["unit"] else 1)
    if loss > MAX_LOSS:
        raise TuningError(f"the loss {text.strip()!r} is more than half of the segments")
    return loss


def format_rate(rate_bps: float) -> str:
    """Write a rate with up to four digits: 1.536 Mbit/s. `parse_rate` reads it back."""
    return _format(rate_bps, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"), digits=4)


def format_size(size_bytes: float) -> str:
    """Write a size in powers of 1000 with up to three digits: 4.19 MB. `parse_size` reads it."""
    return _format(size_bytes, ("B", "kB", "MB", "GB", "TB"))


def format_time(time_s: float) -> str:
    """Write a time with up to three digits: 600 ms, 9.53 s. `parse_time` reads it back."""
    return _format(time_s * 1e6, ("us", "ms", "s")) if time_s else "0 s"


def format_loss(loss: float) -> str:
    """Write a loss rate in per cent: 0.1%. `parse_loss` reads it back."""
    return f"{_rounded(loss * 100)}%"


def _match(pattern: re.Pattern[str], text: str, kind: str, examples: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found and len(text) <= _MAX_LENGTH:
        return found
    shown = repr(text.strip()[:_MAX_LENGTH])
    if re.fullmatch(r"\s*-\s*[0-9.].*", text):
        raise TuningError(f"the {kind} {shown} is negative: write it as {examples}")
    raise TuningError(f"{shown} is not a {kind}: write it as {examples}")


def _power(base: int, prefix: str) -> float:
    return float(base) ** _PREFIXES.index(prefix.lower())


def _refuse_lone_i(found: re.Match[str], text: str, kind: str, examples: str) -> None:
    """Refuse the i of Ki without its K."""
    if found["binary"] and not found["prefix"]:
        raise TuningError(f"{text.strip()!r} is not a {kind}: write it as {examples}")


def _format(value: float, units: tuple[str, ...], digits: int = 3) -> str:
    step = 0
    while step + 1 < len(units) and float(_rounded(value, digits)) >= 1000:
        value, step = value / 1000, step + 1
    return f"{_rounded(value, digits)} {units[step]}"


def _rounded(value: float, digits: int = 3) -> str:
    """Round to significant digits, without an exponent or idle zeros."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
