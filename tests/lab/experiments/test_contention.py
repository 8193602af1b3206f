"""F4: parts, fairness and standing queues from made-up records."""

from __future__ import annotations

import pytest

from mininet_topos.experiments import f4
from mininet_topos.experiments.outcome import FlowOutcome, Outcome

MB = 1_000_000


def flow(begin_s: float, end_s: float, rate: float, connections: int) -> FlowOutcome:
    """Give a flow that sends at a rate, in bytes per second, after a silent first second."""
    samples = range(int((end_s - begin_s) * 4) + 1)
    history = [[begin_s + n / 4, max(0.0, n / 4 - 1) * rate, 100, 0, connections] for n in samples]
    return FlowOutcome(
        kind="Xftp",
        command="xftp",
        started_s=begin_s,
        seconds=end_s - begin_s,
        data_s=end_s - begin_s,
        bytes=int(history[-1][1]),
        history=history,
    )


def together(own: float, other: float, connections: int = 4) -> Outcome:
    return Outcome(
        series=f4.BESIDE,
        x=connections,
        flows={
            "xftp": flow(15, 75, own, connections),
            "ordinary": flow(0, 75, other, 1),
        },
    )


def test_four_shares_of_five_are_fair() -> None:
    outcome = together(4 * MB, 1 * MB)
    assert f4.share(outcome) == pytest.approx(80)
    assert f4.shares_taken(outcome) == pytest.approx(1)
    assert f4.fairness(outcome) == pytest.approx(1)


def test_more_than_its_shares() -> None:
    outcome = together(5 * MB, 0.2 * MB)
    taken, fair = f4.shares_taken(outcome), f4.fairness(outcome)
    assert taken is not None and taken > 1.1
    assert fair is not None and fair < 0.9


def test_the_count_of_connections_is_what_was_seen() -> None:
    assert f4.connections(together(1, 1, connections=6)) == 6


def test_a_transfer_that_ends_before_it_settles_has_no_part() -> None:
    short = together(4 * MB, MB)
    short.flows["xftp"] = flow(15, 24, 4 * MB, 4)
    assert f4.share(short) is None


def test_alone_there_is_no_part() -> None:
    alone = Outcome(series=f4.ALONE, x=4, flows={"xftp": flow(0, 60, MB, 4)})
    assert f4.share(alone) is None
    assert f4.fairness(alone) is None


def queue(*sizes: float) -> Outcome:
    rows = [[n / 4, size / 1500, size] for n, size in enumerate(sizes)]
    return Outcome(series="", x=0, queues={"satellite": {"forward": rows, "backward": []}})


def test_a_burst_that_goes_within_an_rtt_does_not_stand() -> None:
    standing = f4.standing_queue("satellite")
    bdp = f4.BDP_BYTES
    assert standing(queue(0, 2 * bdp, 2 * bdp, 0, 0, 0)) == 0
    assert standing(queue(*[0] * 4, *[1.5 * bdp] * 8, *[0] * 4)) == pytest.approx(1.5)
    assert standing(queue(*[3 * bdp, bdp] * 6)) == pytest.approx(1)


def test_without_a_record_nothing_is_said_of_the_queue() -> None:
    assert f4.standing_queue("satellite")(queue(1, 2)) is None
    assert f4.standing_queue("satellite")(Outcome(series="", x=0)) is None
