"""The values of options: numbers, rates, sizes and names. Bad ones end with status 2.

And how several options are added to a command at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import click

_Value = TypeVar("_Value")
Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(bit)?(?:/s)?", re.IGNORECASE)
_MAX_DIGITS = 9

AUTO = "auto"


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Give a command these options, which --help then lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


class Seconds(click.FloatRange):
    """A number of seconds; what is no number at all fits into no range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it. Raises click.BadParameter."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


def port_range(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Read a range of ports: 50000-50100. Raises click.BadParameter."""
    if value is None:
        return ()
    first, dash, last = value.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise click.BadParameter(f"{value!r} is no range of ports like 50000-50100", ctx, param)
    if not 1024 <= int(first) <= int(last) <= 65535:
        raise click.BadParameter(f"{value}: ports go from 1024 to 65535, the lower one first")
    return tuple(range(int(first), int(last) + 1))


def connection_count(_: click.Context, param: click.Parameter, text: str) -> int | None:
    """Read a number of data connections, None for "auto"; the limits are applied later and said.

    Raises click.BadParameter.
    """
    if text.lower() == AUTO:
        return None
    if not re.fullmatch(r"[0-9]+", text) or not text.strip("0"):
        raise click.BadParameter(
            f"the number of connections is a whole number from 1 upward, or auto, not {text!r}"
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


# -- sockets ------------------------------------------------------------------------------------
#
# The package that checks these values is imported only when one is given.


def link_rate(_: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read the rate of a link in bits per second. Raises click.BadParameter."""
    return None if text is None else _tuned(lambda tuning: tuning.parse_rate(text))


def buffer_size(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read the size of a socket's buffer in bytes. Raises click.BadParameter."""

    def read(tuning: ModuleType) -> int:
        size = int(tuning.parse_size(text))
        sockopts = tuning.sockopts
        low, high = sockopts.MIN_BUFFER_BYTES, sockopts.MAX_BUFFER_BYTES
        tuning.errors.check_integer("the buffer", size, low, high, "bytes")
        return size

    return None if text is None else _tuned(read)


def initial_window(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read an initial window in segments. Raises click.BadParameter."""

    def read(tuning: ModuleType) -> int:
        if text is None or not re.fullmatch(r"[0-9]{1,9}", text):
            raise click.BadParameter(f"an initial window is a number of segments, not {text!r}")
        high = tuning.sockopts.MAX_INITIAL_WINDOW_SEGMENTS
        tuning.errors.check_integer("the initial window", int(text), 1, high, "segments")
        return int(text)

    return None if text is None else _tuned(read)


def algorithm(_: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Read the name of a congestion-control algorithm. Raises click.BadParameter."""

    def read(tuning: ModuleType) -> str | None:
        tuning.SocketTuning(congestion=text)
        return text

    return None if text is None else _tuned(read)


def profile_name(_: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Read the name of a profile. Raises click.BadParameter."""

    def read(tuning: ModuleType) -> str | None:
        if text != tuning.AUTO:
            tuning.profiles.find(text)
        return text

    return None if text is None else _tuned(read)


def _tuned(read: Callable[[ModuleType], _Value]) -> _Value:
    import tuning
    import tuning.profiles
    import tuning.sockopts

    try:
        return read(tuning)
    except tuning.TuningError as error:
        raise click.BadParameter(str(error)) from error
