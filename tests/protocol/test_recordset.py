"""Record sets against plain Python sets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import RecordError
from xftp.protocol import recordset
from xftp.protocol.recordset import RecordSet

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=30)


@given(RANGES)
def test_behaves_like_a_set(pieces: list[tuple[int, int]]) -> None:
    plain: set[int] = set()
    records = RecordSet()
    for start, length in pieces:
        new = set(range(start, start + length)) - plain
        assert records.add(start, start + length) == len(new)
        plain |= new
        assert len(records) == len(plain)
    assert [n in records for n in range(80)] == [n in plain for n in range(80)]
    ranges = list(records.ranges())
    assert {n for start, end in ranges for n in range(start, end)} == plain
    assert all(before[1] < after[0] for before, after in pairwise(ranges)), "ranges touch"
    assert records.end == max(plain, default=-1) + 1
    assert records.contiguous == next(n for n in range(100) if n not in plain)


@given(RANGES, st.integers(0, 70), st.integers(0, 70))
def test_missing(pieces: list[tuple[int, int]], start: int, end: int) -> None:
    records = RecordSet((a, a + n) for a, n in pieces)
    missing = [n for a, b in records.missing(start, end) for n in range(a, b)]
    assert missing == [n for n in range(start, end) if n not in records]


@given(RANGES, RANGES)
def test_remove(pieces: list[tuple[int, int]], removed: list[tuple[int, int]]) -> None:
    records = RecordSet((a, a + n) for a, n in pieces)
    plain = {number for a, n in pieces for number in range(a, a + n)}
    for start, length in removed:
        records.remove(start, start + length)
        plain -= set(range(start, start + length))
        assert len(records) == len(plain)
    assert [n in records for n in range(80)] == [n in plain for n in range(80)]


def test_too_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordset, "MAX_RANGES", 10)
    records = RecordSet((n, n + 1) for n in range(0, 20, 2))
    records.add(1, 2)  # closing a gap is always possible
    records.add(30, 31)
    with pytest.raises(RecordError, match="more than 10 pieces"):
        records.add(40, 41)
