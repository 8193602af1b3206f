"""When it pays to send a record once more, and when a connection counts as dead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xftp.protocol.records import RECORD_BYTES
from xftp.protocol.repeating import Endurance, Progress, pays

GEO = Progress(
    outstanding_bytes=470_000,
    rate_bytes_per_s=780_000,
    rtt_s=0.6,
    rtt_deviation_s=0.01,
    timeouts=0,
    silent_s=0.05,
)
IDLE = replace(GEO, outstanding_bytes=0, silent_s=0.0)


@pytest.mark.parametrize("rtt_s", [0.0001, 0.04, 0.6])
def test_among_healthy_connections_nothing_is_repeated(rtt_s: float) -> None:
    rate = 1e7
    donor = replace(GEO, rtt_s=rtt_s, rate_bytes_per_s=rate, outstanding_bytes=int(rate * rtt_s))
    taker = replace(IDLE, rtt_s=rtt_s, rate_bytes_per_s=rate)
    assert not pays(donor, taker, RECORD_BYTES)


@pytest.mark.parametrize(
    "donor",
    [
        replace(GEO, rate_bytes_per_s=100_000),
        replace(GEO, timeouts=2, silent_s=1.0),
        replace(GEO, silent_s=1.1),
    ],
    ids=["slow", "timed out", "overdue"],
)
def test_what_an_idle_connection_brings_sooner_is_repeated(donor: Progress) -> None:
    assert pays(donor, IDLE, 8 * RECORD_BYTES)
    assert not pays(donor, replace(IDLE, rate_bytes_per_s=10_000), 8 * RECORD_BYTES)


def test_a_connection_in_trouble_takes_nothing_over() -> None:
    assert not pays(replace(GEO, timeouts=3, silent_s=4.0), replace(GEO, timeouts=1), RECORD_BYTES)


def test_patience_grows_with_the_round_trip_time() -> None:
    endurance = Endurance()
    lan = replace(GEO, rtt_s=0.001, rtt_deviation_s=0.0)
    assert endurance.silent_limit_s(lan) == 3.0
    # Three tries after 0.8, 2.4 and 5.6 s have failed: no lost segment or two looks like that.
    assert endurance.silent_limit_s(GEO) > 0.8 * (1 + 2 + 4)
    assert endurance.idle_limit_s(0.6) == 12.0
    assert endurance.dial_s > 7 + 0.6, "three lost SYNs"
