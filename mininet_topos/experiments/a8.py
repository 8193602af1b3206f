"""A8: the equations of Allman's thesis, computed to the printed digits; nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tuning import model

from .measures import Metric, value
from .rules import Rule, near
from .spec import Calculation, Experiment, Figure, Point, Published

ACTS_RTT_S, TERRESTRIAL_RTT_S = 0.56, 0.08
T1_BPS = 1.536e6
LARGEST_WINDOW_BYTES = 65_535
SUNOS_WINDOW_BYTES = 24 * 1024
SERIES = "equation"


@dataclass(frozen=True, slots=True)
class _Example:
    """One worked example."""

    equation: str
    what: str
    compute: Callable[[], float]
    published: float
    step: float
    """One of the last printed digit: rounding may be off by it, as 2.1 doubles a rounded 1.2."""


def _figure_1_1() -> float:
    sent = [
        model.slow_start_segments_sent(3.92, rtt_s, 128)
        for rtt_s in (TERRESTRIAL_RTT_S, ACTS_RTT_S)
    ]
    return sent[0] / sent[1]


def _figure_1_2() -> float:
    sent = [
        model.congestion_avoidance_segments_sent(35.84, rtt_s, 128, 64)
        for rtt_s in (TERRESTRIAL_RTT_S, ACTS_RTT_S)
    ]
    return sent[0] / sent[1]


def _bound(window_bytes: float, connections: int = 1) -> float:
    return model.max_throughput_bps(window_bytes, ACTS_RTT_S, connections) / 8


def _connections() -> float:
    needed = model.window_needed_bytes(T1_BPS, ACTS_RTT_S)
    return float(model.connections_needed(needed, SUNOS_WINDOW_BYTES))


EXAMPLES = (
    _Example(
        "1.1",
        "time of slow start to 128 segments, s",
        lambda: model.slow_start_time_s(128, ACTS_RTT_S),
        3.92,
        0.005,
    ),
    _Example("fig. 1.1", "slow start at 80 ms against 560 ms, times", _figure_1_1, 22, 0.5),
    _Example("fig. 1.2", "avoidance at 80 ms against 560 ms, times", _figure_1_2, 9, 0.5),
    _Example(
        "1.2", "bound of a 64 KB window, B/s", lambda: _bound(LARGEST_WINDOW_BYTES), 117_027, 1
    ),
    _Example(
        "2.1",
        "bound of two such windows, B/s",
        lambda: _bound(LARGEST_WINDOW_BYTES, 2),
        234_054,
        1,
    ),
    _Example("2.2", "bound of a 24 KB window, B/s", lambda: _bound(SUNOS_WINDOW_BYTES), 43_886, 1),
    _Example(
        "2.4",
        "window that fills a T1, B",
        lambda: model.window_needed_bytes(T1_BPS, ACTS_RTT_S),
        107_520,
        1,
    ),
    _Example("2.5", "connections of 24 KB that fill a T1", _connections, 5, 0.5),
    _Example(
        "2.6",
        "share of the window that 4 connections keep after a loss, %",
        lambda: 100 * model.combined_window_after_loss(1.0, 4),
        87.5,
        0.05,
    ),
    _Example(
        "3.1",
        "what an initial window of 32 segments saves, s",
        lambda: (
            model.slow_start_time_s(128, ACTS_RTT_S) - model.slow_start_time_s(128, ACTS_RTT_S, 32)
        ),
        2.8,
        0.05,
    ),
)


def points(quick: bool) -> tuple[Point, ...]:
    """Give one point per example; x numbers them."""

    def calculation(compute: Callable[[], float]) -> Calculation:
        return Calculation(compute=lambda: {"value": compute()})

    return tuple(
        Point(series=SERIES, x=number, scenario=calculation(example.compute))
        for number, example in enumerate(EXAMPLES, 1)
    )


def _rule(number: int, example: _Example) -> Rule:
    rule = near("value", SERIES, number, example.published, example.step / example.published)
    return Rule(
        f"{example.equation}, {example.what}: {example.published:,g} to the printed digits",
        rule.check,
    )


EXPERIMENT = Experiment(
    name="A8",
    title="The equations of long links",
    source="Allman 1997, equations 1.1 to 3.1, figures 1.1 and 1.2",
    measures="slow-start time, window bounds, window and connections needed: computed, not run",
    points=points,
    metrics=(Metric(name="value", label="value (unit beside each row)", measure=value("value")),),
    figures=(
        Figure(
            metric="value",
            title="Worked examples of the equations",
            x_label="equation",
            kind="bars",
            log_y=True,
            x_names={number: each.equation for number, each in enumerate(EXAMPLES, 1)},
            zero_based=False,
        ),
    ),
    published=tuple(
        Published(metric="value", series=SERIES, x=number, value=each.published, note=each.what)
        for number, each in enumerate(EXAMPLES, 1)
    ),
    rules=tuple(_rule(number, each) for number, each in enumerate(EXAMPLES, 1)),
)
