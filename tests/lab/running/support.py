"""Results made up for tests."""

from __future__ import annotations

from typing import Any

from mininet_topos.experiments.outcome import FlowOutcome, Outcome
from mininet_topos.running.results import Results


def flow(rate: float, seconds: float = 10.0) -> FlowOutcome:
    """Give a flow of that many bytes per second, with its record."""
    history = [[t / 4, rate * t / 4, 20 + t, t // 10, 1] for t in range(int(4 * seconds) + 1)]
    return FlowOutcome(
        kind="Xftp",
        command="xftp get",
        started_s=0.0,
        seconds=seconds + 2,
        data_s=seconds,
        bytes=int(rate * seconds),
        history=history,
    )


def way() -> dict[str, Any]:
    """Give one direction's counters as stored."""
    return {
        "packets_out": 1000,
        "late_packets": 3,
        "most_lateness_s": 0.004,
        "queue_drops": 2,
        "early_drops": 0,
        "losses": 0,
        "outage_losses": 0,
    }


def outcome(series: str, x: float, rate: float, repeat: int = 0, **more: Any) -> Outcome:
    """Give a run of one flow over one link."""
    values: dict[str, Any] = {
        "flows": {"ftp": flow(rate)},
        "links": {"satellite": {"forward": way(), "backward": way()}},
        "queues": {"satellite": {"forward": [[0, 0, 0], [5, 7, 700]], "backward": []}},
        "lab": {"hosts": {"server": {"tcp": {"sack": False}, "deviations": ["no plain Reno"]}}},
        **more,
    }
    return Outcome(series=series, x=x, repeat=repeat, **values)


def results(name: str, *outcomes: Outcome, **more: Any) -> Results:
    """Give an experiment's results."""
    values: dict[str, Any] = {
        "title": "made up",
        "source": "nowhere",
        "quick": False,
        "repeats": 1,
        "finished": "2026-01-02T03:04:05+00:00",
        "machine": {"kernel": "6.x", "cores": 2, "programs": {"curl": ""}},
        **more,
    }
    return Results(experiment=name, outcomes=outcomes, **values)
