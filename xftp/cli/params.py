"""The values of options: numbers of connections and rates. Bad ones end with status 2."""

from __future__ import annotations

import re

import click

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(bit)?(?:/s)?", re.IGNORECASE)
_MAX_DIGITS = 9


def connection_count(_: click.Context, param: click.Parameter, text: str) -> int:
    """Read a number of data connections; the limits are applied later and said.

    Raises click.BadParameter.
    """
    if not re.fullmatch(r"[0-9]+", text) or not text.strip("0"):
        raise click.BadParameter(
            f"the number of connections is a whole number from 1 upward, not {text!r}"
        )
    return int(text[:_MAX_DIGITS])  # whatever has more digits is beyond every limit too


def rate(_: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read a rate in bytes per second: 500k and 2M as curl reads them, or 50mbit as tc does.

    Raises click.BadParameter.
    """
    if text is None:
        return None
    found = _RATE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"a rate is written as 500k, 2M (bytes/s) or 50mbit, not {text!r}")
    number, power = float(found[1]), " kmgt".index(found[2].lower() or " ")
    bytes_per_s: float = number * 1000**power / 8 if found[3] else number * 1024**power
    if bytes_per_s < 1:
        raise click.BadParameter("the rate is at least 1 byte/s")
    return bytes_per_s
