"""What the receiver tells the sender."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import PeerError
from xftp.protocol.receipts import ALL_HELD, ReceiptReader, Reminders, format_receipt


@given(st.lists(st.integers(0, 2**40)), st.integers(1, 20), st.booleans())
def test_receipts_are_read_however_they_are_cut(
    counts: list[int], piece: int, all_held: bool
) -> None:
    counts = sorted(counts)
    stream = b"".join(format_receipt(count) for count in counts)
    if all_held:
        stream += format_receipt(ALL_HELD)
    reader = ReceiptReader()
    for at in range(0, len(stream), piece):
        reader.feed(stream[at : at + piece], 2**40)
    assert reader.count == (counts[-1] if counts else 0)
    assert reader.all_held == all_held


@pytest.mark.parametrize("counts", [[11], [5, 4]])
def test_impossible_receipts_are_an_error(counts: list[int]) -> None:
    reader = ReceiptReader()
    with pytest.raises(PeerError, match="a receipt for"):
        reader.feed(b"".join(map(format_receipt, counts)), 10)


def due_at(arrivals: set[int], looks: int = 100, rtt_s: float = 0.04) -> list[int]:
    """Give the looks, ten a second, at which to tell again; arrivals: those behind an arrival."""
    reminders, heard_at, due = Reminders(), 0.0, []
    for look in range(looks):
        if look in arrivals:
            heard_at = look / 10 - 0.01
        if reminders.are_due(look / 10, heard_at, rtt_s):
            due.append(look)
    return due


def test_receipts_are_told_again_when_a_steady_flow_stops() -> None:
    due = due_at(set(range(20)), 200)
    assert due[:3] == [20, 21, 22], "at once: the outage may be short"
    gaps = [later - before for before, later in pairwise(due)]
    assert gaps == sorted(gaps), "and ever less often"
    assert all(gap <= 1 + (look - 19) / 4 + 1 for gap, look in zip(gaps, due[1:], strict=True))
    assert len(due) < 25


def test_not_more_than_twice_in_a_round_trip() -> None:
    due = due_at(set(range(20)), 60, rtt_s=2.0)
    assert min(later - before for before, later in pairwise(due)) >= 10


@pytest.mark.parametrize("every", [2, 3, 8])
def test_a_flow_with_pauses_is_not_reminded(every: int) -> None:
    """They would cost as much as it brings."""
    assert due_at(set(range(0, 400, every)), 400) == []


def test_silence_from_the_beginning() -> None:
    assert due_at({0}) == []
