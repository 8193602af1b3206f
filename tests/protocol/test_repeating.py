"""When it pays to send a record once more, and when a connection counts as dead."""

from __future__ import annotations

import pytest

from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES
from xftp.protocol.repeating import (
    DRAIN_WINDOW_S,
    LAST_PART,
    LIVE_RECORDS,
    LIVE_SHARE,
    Drain,
    Endurance,
    Progress,
    RepeatBudget,
    pays,
)

GEO = Progress(
    outstanding_bytes=470_000,
    rate_bytes_per_s=780_000,
    rtt_s=0.6,
    rtt_deviation_s=0.01,
    timeouts=0,
    silent_s=0.05,
)
IDLE = GEO._replace(outstanding_bytes=0, silent_s=0.0)


@pytest.mark.parametrize("rtt_s", [0.0001, 0.04, 0.6])
def test_among_healthy_connections_nothing_is_repeated(rtt_s: float) -> None:
    rate = 1e7
    donor = GEO._replace(rtt_s=rtt_s, rate_bytes_per_s=rate, outstanding_bytes=int(rate * rtt_s))
    taker = IDLE._replace(rtt_s=rtt_s, rate_bytes_per_s=rate)
    assert not pays(donor, taker, RECORD_BYTES)


@pytest.mark.parametrize(
    "donor",
    [
        GEO._replace(rate_bytes_per_s=100_000),
        GEO._replace(timeouts=2, silent_s=1.0),
        GEO._replace(silent_s=1.1),
    ],
    ids=["slow", "timed out", "overdue"],
)
def test_what_an_idle_connection_brings_sooner_is_repeated(donor: Progress) -> None:
    assert pays(donor, IDLE, 8 * RECORD_BYTES)
    assert not pays(donor, IDLE._replace(rate_bytes_per_s=10_000), 8 * RECORD_BYTES)


def test_a_live_connection_that_is_one_round_trip_late_is_waited_for() -> None:
    """That is what one lost segment costs; without a sign of life it would not be waited for."""
    one_late = GEO._replace(rate_bytes_per_s=GEO.outstanding_bytes / (1.9 * GEO.rtt_s))
    two_late = GEO._replace(rate_bytes_per_s=GEO.outstanding_bytes / (2.1 * GEO.rtt_s))
    assert not pays(one_late, IDLE, RECORD_BYTES)
    assert pays(two_late, IDLE, RECORD_BYTES)
    assert pays(one_late._replace(silent_s=1.1), IDLE, RECORD_BYTES)


def test_what_is_held_behind_a_loss_is_not_waited_for_at_the_rate() -> None:
    slow = GEO._replace(rate_bytes_per_s=200_000)
    assert pays(slow, IDLE, RECORD_BYTES)
    assert not pays(slow._replace(sacked_bytes=400_000), IDLE, RECORD_BYTES)
    assert GEO._replace(sacked_bytes=10**9).finish_s() > 0


LAST_LOST = GEO._replace(outstanding_bytes=1_448, unanswered_s=0.7, unheard_s=0.1)
"""The last segment of a connection was lost: a round trip later nothing has come."""


def test_what_was_sent_last_and_is_not_acknowledged_in_time_is_repeated() -> None:
    """The kernel would send it again after two round trips only."""
    assert pays(LAST_LOST, IDLE, RECORD_BYTES)


@pytest.mark.parametrize(
    "donor",
    [
        LAST_LOST._replace(unanswered_s=0.63),
        LAST_LOST._replace(unheard_s=0.03),
        LAST_LOST._replace(unheard_s=0.1, rtt_deviation_s=0.06),
        LAST_LOST._replace(unanswered_s=0.0),
        LAST_LOST._replace(unheard_s=0.7),
    ],
    ids=["may yet come", "others come", "it varies", "all is acknowledged", "about to be sent"],
)
def test_it_is_waited_for_where_it_may_have_arrived(donor: Progress) -> None:
    assert not pays(donor, IDLE, RECORD_BYTES)


def test_what_is_unanswered_is_given_to_none_that_is_so_itself() -> None:
    assert not pays(LAST_LOST, LAST_LOST, RECORD_BYTES)


MENDING = GEO._replace(outstanding_bytes=40_000, sacked_bytes=38_000, is_mending=True)


def test_at_the_very_end_what_sits_behind_a_loss_goes_twice() -> None:
    assert not pays(MENDING, IDLE, RECORD_BYTES)
    assert pays(MENDING, IDLE, RECORD_BYTES, at_last=True)


def test_that_takes_nothing_from_what_is_repeated_anyway() -> None:
    """A donor that sends nothing for long is helped by the slowest taker, at the end as before."""
    donor = MENDING._replace(timeouts=5, silent_s=1.0, sacked_bytes=0)
    slow = IDLE._replace(rate_bytes_per_s=6_000)
    assert pays(donor, slow, RECORD_BYTES)
    assert pays(donor, slow, RECORD_BYTES, at_last=True)


@pytest.mark.parametrize(
    ("donor", "taker"),
    [
        (GEO, IDLE),
        (MENDING, IDLE._replace(is_mending=True)),
        (MENDING, IDLE._replace(rate_bytes_per_s=1_000)),
    ],
    ids=["nothing is lost", "the other lost something", "the other is slow"],
)
def test_but_not_where_that_brings_nothing(donor: Progress, taker: Progress) -> None:
    assert not pays(donor, taker, RECORD_BYTES, at_last=True)


LOST = GEO._replace(timeouts=1, silent_s=1.0)


@pytest.mark.parametrize(
    ("size", "records"),
    [
        (0, LIVE_RECORDS),
        (10_000_000, LIVE_RECORDS),
        (10**9, int(LIVE_SHARE * 10**9) // CHUNK_BYTES),
    ],
)
def test_what_is_repeated_of_live_connections_is_bounded(size: int, records: int) -> None:
    budget = RepeatBudget(size)
    repeated = [0, 0]
    for at_last in (False, True):
        while count := budget.most_records(GEO, 5, at_last=at_last):
            budget.spend(GEO, count * CHUNK_BYTES)
            repeated[at_last] += count
    assert sum(repeated) == records
    assert repeated[1] == pytest.approx(LAST_PART * records, abs=1)


def test_what_sits_where_a_loss_is_presumed_is_always_repeated() -> None:
    budget = RepeatBudget(10_000_000)
    for _ in range(1000):
        assert budget.most_records(LOST, 16) == 16
        budget.spend(LOST, 16 * CHUNK_BYTES)
    assert budget.most_records(GEO, 16) == 16


def test_a_connection_in_trouble_takes_nothing_over() -> None:
    assert not pays(GEO._replace(timeouts=3, silent_s=4.0), GEO._replace(timeouts=1), RECORD_BYTES)


def test_patience_grows_with_the_round_trip_time() -> None:
    endurance = Endurance()
    lan = GEO._replace(rtt_s=0.001, rtt_deviation_s=0.0)
    assert endurance.silent_limit_s(lan, 0.0) == 3.0
    # Three tries after 0.8, 2.4 and 5.6 s have failed: no lost segment or two looks like that.
    assert endurance.silent_limit_s(GEO, 0.6) > 0.8 * (1 + 2 + 4)
    assert endurance.idle_limit_s(0.6) == 12.0
    assert endurance.dial_s > 7 + 0.6, "three lost SYNs"


def test_patience_grows_with_what_a_gateway_holds() -> None:
    """It acknowledges at once, and a slow link takes one connection's data after the other's."""
    lan = GEO._replace(rtt_s=0.001, rtt_deviation_s=0.0)
    drain = Drain()
    for second in range(8):
        drain.note(float(second), second * 65_536, 8 * 65_536)
    assert drain.seconds == 8.0
    assert Endurance().silent_limit_s(lan, drain.seconds) == 16.0


def test_the_drain_is_that_of_the_last_seconds() -> None:
    drain = Drain()
    drain.note(0.0, 0, 1000)
    assert drain.seconds == 0.0, "nothing has come yet"
    for tenth in range(1, 200):
        drain.note(tenth / 10, tenth * 1000, 50_000)
    assert drain.seconds == pytest.approx(5.0)
    before, started = 199 * 1000, 19.9
    for tenth in range(1, round(20 * DRAIN_WINDOW_S)):  # ten times slower from now on
        drain.note(started + tenth / 10, before + tenth * 100, 50_000)
    assert drain.seconds == pytest.approx(50.0, rel=0.05)
    drain.note(started + 100.0, before + 10_000, 0)
    assert drain.seconds == 0.0


def test_silence_of_all_slows_the_drain() -> None:
    drain = Drain()
    drain.note(0.0, 0, 1000)
    drain.note(1.0, 1000, 1000)
    drain.note(2.0, 1000, 1000)
    assert drain.seconds == 2.0
