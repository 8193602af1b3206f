"""Outcomes: rates from records, and their stored form."""

from __future__ import annotations

import json

import pytest

from mininet_topos.errors import ExperimentError
from mininet_topos.experiments.outcome import FlowOutcome, Outcome

HISTORY = [[1.0, 0, 8, 0, 1], [2.0, 100, 8, 0, 1], [4.0, 500, 8, 2, 1], [6.0, 1000, 8, 3, 1]]


def flow(**more: object) -> FlowOutcome:
    values = {
        "kind": "Xftp",
        "command": "xftp get",
        "started_s": 0.5,
        "seconds": 8.0,
        "data_s": 5.0,
        "bytes": 1000,
        "history": HISTORY,
        **more,
    }
    return FlowOutcome(**values)  # type: ignore[arg-type]


def test_throughput_is_of_the_data_phase() -> None:
    assert flow().throughput_bytes_per_s == 200
    assert flow(data_s=0.0).throughput_bytes_per_s == 0


def test_rate_between_shares_of_the_file() -> None:
    # 300 bytes at 3.0 s, 750 at 5.0 s.
    assert flow().rate_between(0.3, 0.75) == pytest.approx(225)


@pytest.mark.parametrize("history", [[], HISTORY[:1]])
def test_no_rate_without_a_record(history: list[list[float]]) -> None:
    assert flow(history=history).rate_between(0.3, 0.75) is None


def test_rate_from_to() -> None:
    assert flow().rate_from_to(2.0, 6.0) == pytest.approx(225)
    assert flow().rate_from_to(0.0, 6.0) is None
    assert flow().rate_from_to(3.0, 3.0) is None


def test_there_and_back() -> None:
    made = Outcome(series="a", x=2, flows={"ftp": flow()}, values={"v": 1.5}, repeat=3)
    assert Outcome.from_json(json.loads(json.dumps(made.as_json()))) == made


@pytest.mark.parametrize("stored", [{}, {"series": "a", "x": 1, "flows": {"f": {"odd": 1}}}])
def test_what_is_no_outcome_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ExperimentError, match="no stored outcome"):
        Outcome.from_json(stored)


def test_the_only_flow_needs_no_name() -> None:
    made = Outcome(series="a", x=1, flows={"ftp": flow()})
    assert made.flow() is made.flow("ftp")
    with pytest.raises(ExperimentError, match="no flow web"):
        made.flow("web")
    with pytest.raises(ExperimentError, match="name one"):
        Outcome(series="a", x=1).flow()
