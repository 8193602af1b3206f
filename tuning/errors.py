"""The error of this package, and the checks that raise it."""

from __future__ import annotations


class TuningError(ValueError):
    """A setting, a rate, a size or a time that cannot be meant.

    The message is one sentence for a person, without a final full stop.
    """


def check_integer(name: str, value: object, low: int, high: int, unit: str) -> None:
    """Raise TuningError unless `value` is a whole number from `low` to `high`."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return
    raise TuningError(
        f"{name} is {value!r}: give a whole number of {unit} from {low:,} to {high:,}"
    )


def check_number(name: str, value: object, low: float, high: float, unit: str) -> None:
    """Raise TuningError unless `value` is a number from `low` to `high`."""
    # What is not a number (NaN) compares false with both bounds.
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return
    raise TuningError(f"{name} is {value!r}: give a number of {unit} from {low:,g} to {high:,g}")
