"""Plans: the advice for a link, and the times that go with it."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tuning.errors import TuningError
from tuning.model import Link, Response
from tuning.planning import (
    DEFAULT_SIZE_BYTES,
    MAX_BUFFER_BYTES,
    buffer_bytes,
    initial_window_for,
    notsent_lowat_bytes,
    plan,
    tuning_for,
)


def test_the_measured_link() -> None:
    """50 Mbit/s, 600 ms, 50 MB: 13.7 s untuned and 9.53 s tuned were measured."""
    made = plan(50e6, 0.6, size_bytes=50_000_000)
    assert made.window_needed_bytes == 3_750_000
    assert made.untuned.total_s == pytest.approx(13.7, rel=0.03)
    assert made.with_n.total_s == pytest.approx(9.53, rel=0.03)
    assert made.at_limit.total_s == pytest.approx(9.49, abs=0.01)
    assert made.at_limit.total_s <= made.with_n.total_s <= made.with_one.total_s
    assert made.with_one.total_s <= made.untuned.total_s


def test_the_t1_of_the_thesis() -> None:
    """With windows of 24 KB five connections are needed (equation 2.5)."""
    made = plan(1.536e6, 0.56, size_bytes=5 * 2**20, window_limit_bytes=24_576)
    assert made.window_needed_bytes == 107_520
    assert made.connections_for_window == 5
    assert made.connections == 5
    assert made.receive_buffer_bytes == 24_576


def test_one_connection_where_more_do_not_help() -> None:
    made = plan(100e6, 0.001)
    assert made.connections == 1
    assert made.size_bytes == DEFAULT_SIZE_BYTES


def test_loss_asks_for_more_connections_of_cubic_and_not_of_ours() -> None:
    cubic = plan(50e6, 0.6, loss=1e-3, size_bytes=50_000_000)
    ours = plan(50e6, 0.6, loss=1e-3, size_bytes=50_000_000, response=Response.RATE)
    assert cubic.connections == 8
    assert cubic.connections_for_loss == 20
    assert ours.connections <= 3
    assert ours.connections_for_loss == 1
    assert ours.with_n.total_s < cubic.with_n.total_s


def test_a_fixed_initial_window_asks_for_more_connections() -> None:
    free = plan(50e6, 0.6, size_bytes=10_000_000)
    fixed = plan(50e6, 0.6, size_bytes=10_000_000, initial_window_segments=10)
    assert fixed.initial_window_segments == 10
    assert fixed.connections > free.connections
    assert fixed.with_n.slow_start_s > free.with_n.slow_start_s


def test_the_limit_of_connections_is_kept() -> None:
    assert plan(50e6, 0.6, loss=1e-2, max_connections=3).connections == 3


def test_the_sysctls_are_those_that_grant_the_buffers() -> None:
    made = plan(50e6, 0.6, window_limit_bytes=212_992)
    wanted = dict(made.sysctls)
    assert wanted["net.core.rmem_max"] > 212_992 == made.receive_buffer_bytes
    unlimited = plan(50e6, 0.6)
    assert dict(unlimited.sysctls)["net.core.wmem_max"] == unlimited.send_buffer_bytes


def test_the_tuning_of_a_plan_can_be_applied() -> None:
    made = plan(1.536e6, 0.56)
    tuning = made.tuning()
    assert tuning.pacing_rate_bps == made.link.rate_bps / made.connections
    with socket.socket() as sock:
        refused = tuning.apply(sock, set_initial_window=lambda sock, segments: None)
    assert refused == ()


def test_json() -> None:
    made = plan(50e6, 0.6, loss=1e-3)
    values = json.loads(json.dumps(made.as_json()))
    assert values["version"] == 1
    assert values["link"]["rtt_s"] == 0.6
    assert values["with_n"]["total_s"] == made.with_n.total_s
    assert values["sysctls"]["net.core.rmem_max"] == made.sysctls[0][1]


@pytest.mark.parametrize(
    "values",
    [
        {"rate_bps": 0},
        {"rtt_s": 0},
        {"loss": 1.0},
        {"size_bytes": 0},
        {"window_limit_bytes": 0},
        {"window_limit_bytes": 10**12},
        {"initial_window_segments": 0},
        {"initial_window_segments": 10_000},
        {"max_connections": 0},
        {"max_connections": 1000},
        {"setup_round_trips": -1},
    ],
)
def test_refused(values: dict[str, Any]) -> None:
    with pytest.raises(TuningError):
        plan(**({"rate_bps": 50e6, "rtt_s": 0.6} | values))


# -- one of N connections ---------------------------------------------------------------------


def test_each_connection_gets_its_part() -> None:
    link = Link(rate_bps=50e6, rtt_s=0.6)
    tuning = tuning_for(link, 8)
    assert tuning.send_buffer_bytes == tuning.receive_buffer_bytes == 1_875_000
    assert tuning.pacing_rate_bps == 6.25e6
    assert tuning.initial_window_segments == 323
    assert tuning.notsent_lowat_bytes == 39_062


def test_parts_have_bounds() -> None:
    tiny, huge = Link(rate_bps=32e3, rtt_s=0.01), Link(rate_bps=1e12, rtt_s=1.0)
    assert (buffer_bytes(tiny, 8), buffer_bytes(huge, 1)) == (16_384, MAX_BUFFER_BYTES)
    assert (initial_window_for(tiny, 8), initial_window_for(huge, 1)) == (1, 1000)
    assert (notsent_lowat_bytes(32e3), notsent_lowat_bytes(1e12)) == (16_384, MAX_BUFFER_BYTES)


@pytest.mark.parametrize("connections", [0, -1, 65, 2.5])
def test_impossible_numbers_of_connections(connections: Any) -> None:
    with pytest.raises(TuningError):
        tuning_for(Link(rate_bps=50e6, rtt_s=0.6), connections)
