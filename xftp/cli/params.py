"""The values of options: numbers of connections and rates."""

from __future__ import annotations

import re

import click

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(bit|)(?:/s)?", re.IGNORECASE)
_MAX_DIGITS = 9


class ConnectionCount(click.ParamType):
    """A number of data connections, 1 or more; the limits are applied later and said."""

    name = "N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the number. Raises click.BadParameter, which ends with status 2."""
        text = str(value)
        if not re.fullmatch(r"[0-9]+", text) or not text.strip("0"):
            self.fail(
                f"the number of connections is a whole number from 1 upward, not {text!r}",
                param,
                ctx,
            )
        return int(text[:_MAX_DIGITS])  # whatever has more digits is beyond every limit too


class Rate(click.ParamType):
    """A rate in bytes per second: 500k and 2M as curl reads them, or 50mbit as tc does."""

    name = "RATE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the rate. Raises click.BadParameter, which ends with status 2."""
        if isinstance(value, float):
            return value
        found = _RATE.fullmatch(str(value))
        if found is None:
            self.fail(f"a rate is written as 500k, 2M (bytes/s) or 50mbit, not {value!r}")
        number, prefix, bit = float(found[1]), found[2].lower(), bool(found[3])
        power = " kmgt".index(prefix) if prefix else 0
        rate = number * 1000**power / 8 if bit else number * 1024**power
        if rate < 1:
            self.fail("the rate is at least 1 byte/s", param, ctx)
        return rate
