"""Runs are drawn alike from the same seed, and can be written down and repeated."""

from __future__ import annotations

import pytest

from .scenario import BY_NAME, FAULTS, Range, Scenario, campaign, draw, parse

EVERYTHING = Range()
DRAWN = campaign(1, 2000, EVERYTHING)


def test_the_same_seed_gives_the_same_runs() -> None:
    assert campaign(1, 20, EVERYTHING) == DRAWN[:20]
    assert draw(1, 19, EVERYTHING) == DRAWN[19]
    assert campaign(2, 20, EVERYTHING) != DRAWN[:20]


def test_what_is_written_down_is_read_again() -> None:
    for scenario in DRAWN:
        assert parse(str(scenario)) == scenario


def test_everything_comes() -> None:
    assert {each.fault for each in DRAWN} == set(BY_NAME)
    for name, values in (
        ("direction", {"down", "up"}),
        ("connections", {1, 4, 8}),
        *((name, {False, True}) for name in ("passive", "tls", "slow", "verify")),
    ):
        assert {getattr(each, name) for each in DRAWN} == values, name
    assert {each.moment for each in DRAWN} >= {0.0, 1.0}
    assert min(each.size for each in DRAWN) == 0


def test_what_is_not_allowed_does_not_come() -> None:
    allowed = Range(with_long=False, with_root=False, with_tls=False)
    for scenario in campaign(1, 1000, allowed):
        assert not (scenario.tls or scenario.slow or scenario.retries)
        assert not (scenario.kind.is_long or scenario.kind.needs_root)


def test_hashes_are_compared_where_tcp_promises_nothing() -> None:
    damaged = [each for each in DRAWN if not each.kind.is_honest]
    assert damaged
    assert all(each.verify for each in damaged)


def test_records_are_damaged_where_there_are_some() -> None:
    assert any(fault.is_framed for fault in FAULTS)
    assert all(each.is_framed for each in DRAWN if each.kind.is_framed)


@pytest.mark.parametrize("text", ["fault=dance direction=up connections=1 size=1 moment=0 seed=1"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="dance"):
        parse(text)


def test_defaults_are_left_out() -> None:
    scenario = Scenario("flip", "up", 4, 100, 0.5, 7)
    assert str(scenario) == "fault=flip direction=up connections=4 size=100 moment=0.5 seed=7"
