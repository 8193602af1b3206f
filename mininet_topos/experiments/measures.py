"""From an outcome to a number with a unit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .outcome import Outcome

Measure = Callable[[Outcome], float | None]
"""None: this outcome does not have it."""

Baseline = Callable[[str, float], tuple[str, float]]
"""From a point's series and x to those of the point it is compared with."""

Rivals = Callable[[str, float], Sequence[tuple[str, float]]]
"""The same for several points, of which the best counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is read from every outcome of an experiment."""

    name: str
    """Unique in the experiment; figures, published values and rules refer to it."""

    label: str
    """Of an axis, with the unit: "throughput, KB/s"."""

    measure: Measure
    """Takes the number out of an outcome."""

    baseline: Baseline | None = None
    """With one, the number is the gain over it in percent: 100 (value / baseline - 1)."""

    rivals: Rivals | None = None
    """With them, the number is the least of those that were measured divided by ours: of times,
    how many times faster than the best of them."""

    series: frozenset[str] = frozenset()
    """Only of these series; empty: of all."""

    digits: int = 3
    """Significant digits in tables."""

    def applies(self, outcome: Outcome) -> bool:
        """Say whether this metric is meant for the outcome's series."""
        return not self.series or outcome.series in self.series

    def value(self, outcome: Outcome, baseline: Outcome | None = None) -> float | None:
        """Measure an outcome, against its baseline if the metric has one."""
        value = self.measure(outcome)
        if self.baseline is None or value is None:
            return value
        reference = self.measure(baseline) if baseline is not None else None
        if reference is None or reference == 0:
            return None
        return 100 * (value / reference - 1)

    def lead(self, outcome: Outcome, rivals: Sequence[Outcome]) -> float | None:
        """Compare an outcome with the best of its rivals; None if there is nothing to compare."""
        own = self.measure(outcome)
        theirs = [value for each in rivals if (value := self.measure(each)) is not None]
        return min(theirs) / own if own and theirs else None


def throughput(flow: str = "", *, unit_bytes: float = 1.0) -> Measure:
    """Payload per second of the data phase, in units of `unit_bytes` per second."""
    return lambda outcome: outcome.flow(flow).throughput_bytes_per_s / unit_bytes


def utilisation(goodput_bytes_per_s: float, flow: str = "") -> Measure:
    """Throughput in percent of what the link can carry of payload."""
    return lambda outcome: 100 * outcome.flow(flow).throughput_bytes_per_s / goodput_bytes_per_s


def steady_utilisation(
    goodput_bytes_per_s: float, first: float, last: float, flow: str = ""
) -> Measure:
    """The same between two shares of the file, from the sender's record of acknowledgments."""

    def measure(outcome: Outcome) -> float | None:
        rate = outcome.flow(flow).rate_between(first, last)
        return None if rate is None else 100 * rate / goodput_bytes_per_s

    return measure


def data_time(flow: str = "") -> Measure:
    """Seconds from the first data connection to the end of the data."""
    return lambda outcome: outcome.flow(flow).data_s


def whole_time(flow: str = "") -> Measure:
    """Seconds of the whole program, control connection included."""
    return lambda outcome: outcome.flow(flow).seconds


def retransmits(flow: str = "") -> Measure:
    """Segments that the sender sent again, as last recorded."""

    def measure(outcome: Outcome) -> float | None:
        history = outcome.flow(flow).history
        return history[-1][3] if history else None

    return measure


def longest_stall(flow: str = "") -> Measure:
    """Longest time in which nothing was acknowledged to the sender, between the first byte and the
    last, in seconds; too long by one interval of the records at most."""

    def measure(outcome: Outcome) -> float | None:
        rows = outcome.flow(flow).history
        moved = [row[0] for before, row in itertools.pairwise(rows) if row[1] > before[1]]
        if len(moved) < 2:
            return None
        return max(b - a for a, b in itertools.pairwise(moved))

    return measure


def queue_drops(link: str, direction: str = "forward") -> Measure:
    """Packets that the queue before a link did not take."""

    def measure(outcome: Outcome) -> float | None:
        counters = outcome.links.get(link, {}).get(direction)
        return None if counters is None else float(counters["queue_drops"])

    return measure


def value(name: str) -> Measure:
    """A number that the point computed itself."""
    return lambda outcome: outcome.values.get(name)


def jain_index(rates: list[float]) -> float:
    """Jain's fairness index: (sum x)² / (n sum x²); 1 is fair, 1/n is one flow having all."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0
