"""Facts of PART and HELD, and the ranges in them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError
from xftp.protocol.commands import DEFAULT_MAX_LINE_BYTES
from xftp.protocol.hashes import ByteRange
from xftp.protocol.parts import (
    MOST_RANGES,
    PartFacts,
    exact_time_val,
    fewest,
    format_part,
    is_time,
    largest,
    missing_ranges,
    parse_part,
    records_of,
)
from xftp.protocol.recordset import RecordSet

HELD = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 40)), max_size=30).map(
    lambda pieces: list(RecordSet((a, a + n) for a, n in pieces).ranges())
)
SIZE = 500


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", PartFacts()),
        ("Size=0;", PartFacts(0)),
        ("size=5;MODIFY=20260102030405;", PartFacts(5, "20260102030405")),
        ("Modify=20260102030405.123456", PartFacts(None, "20260102030405.123456")),
        ("Ranges=0-0;", PartFacts(ranges=(ByteRange(0, 1),))),
        ("Ranges=0-1,3-4;Colour=red;", PartFacts(ranges=(ByteRange(0, 2), ByteRange(3, 5)))),
        ("Ranges=;", PartFacts(ranges=())),
        ("Size=5;Ranges=4-4;", PartFacts(5, ranges=(ByteRange(4, 5),))),
    ],
)
def test_what_can_be_read(text: str, facts: PartFacts) -> None:
    assert parse_part(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        *("Size", "Size=", "Size=-1;", "Size=x;", f"Size={2**63};", "Size=1;Size=2;", "=1;", ";;"),
        *("Modify=2026;", "Modify=20261302030405;", "Modify=20260102030405." + "1" * 10),
        *("Ranges=5-4;", "Ranges=5;", "Ranges=0-1,2-3;", "Ranges=4-5,0-1;", "Ranges=0-1,1-4;"),
        *("Ranges=0-1,;", "Ranges=a-b;", f"Ranges=0-{2**63};", "Size=5;Ranges=4-5;"),
        "Ranges=" + ",".join(f"{at}-{at}" for at in range(0, 2 * MOST_RANGES + 2, 2)) + ";",
    ],
)
def test_what_is_malformed(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_part(text)


@given(HELD, st.booleans())
def test_there_and_back(held: list[tuple[int, int]], known: bool) -> None:
    ranges = tuple(ByteRange(start, end) for start, end in held)
    facts = PartFacts(SIZE, "20260102030405.5", ranges) if known else PartFacts(ranges=ranges)
    assert parse_part(format_part(facts)) == facts


def test_the_longest_line_fits() -> None:
    top = 2**63 - 2
    ranges = tuple(ByteRange(at, at + 1) for at in range(top - 2 * MOST_RANGES, top, 2))
    text = format_part(PartFacts(top, "20260102030405.123456", ranges))
    assert len(f"PART {text}\r\n") < DEFAULT_MAX_LINE_BYTES


@given(HELD, st.integers(1, 12))
def test_ranges_that_are_joined_hold_what_they_held(held: list[tuple[int, int]], most: int) -> None:
    missing = missing_ranges(held, SIZE)
    joined = fewest(missing, most)
    assert len(joined) == min(len(missing), most)
    assert set(missing) <= set(joined) or len(missing) > most
    wanted = {byte for each in missing for byte in range(each.start, each.end)}
    asked = {byte for each in joined for byte in range(each.start, each.end)}
    assert wanted <= asked
    gaps = sorted(b.start - a.end for a, b in pairwise(missing))
    assert len(asked - wanted) == sum(gaps[: max(0, len(missing) - most)])


@given(HELD, st.integers(1, 12))
def test_the_largest_of_what_is_held(held: list[tuple[int, int]], most: int) -> None:
    kept = [(each.start, each.end) for each in largest(held, most)]
    assert kept == sorted(kept)
    assert set(kept) <= set(held)
    sizes = sorted((end - start for start, end in held), reverse=True)
    assert sorted((end - start for start, end in kept), reverse=True) == sizes[:most]


@given(HELD)
def test_missing_and_held_make_the_file(held: list[tuple[int, int]]) -> None:
    missing = [(each.start, each.end) for each in missing_ranges(held, SIZE)]
    assert list(RecordSet([*held, *missing]).ranges()) == [(0, SIZE)]


@pytest.mark.parametrize(
    ("ranges", "records"),
    [
        ([(0, 1)], [(0, 1)]),
        ([(8191, 8193)], [(0, 2)]),
        ([(0, 8192), (8193, 8194)], [(0, 2)]),
        ([(0, 10), (20, 30), (16384, 16385)], [(0, 1), (2, 3)]),
    ],
)
def test_records_that_hold_a_byte(
    ranges: list[tuple[int, int]], records: list[tuple[int, int]]
) -> None:
    assert records_of(ByteRange(*each) for each in ranges) == records


@pytest.mark.parametrize(
    ("told", "time", "same"),
    [
        ("20010909014640", 1_000_000_000.0, True),
        ("20010909014640", 1_000_000_000.999, True),
        ("20010909014640.000000", 1_000_000_000.5, False),
        ("20010909014640.5", 1_000_000_000.5, True),
        ("20010909014640.500000000", 1_000_000_000.5, True),
        ("20010909014641", 1_000_000_000.5, False),
        ("19691231235959", -0.5, True),
        ("20010909014640", 1e30, False),
    ],
)
def test_times(told: str, time: float, same: bool) -> None:
    assert is_time(told, time) is same


@given(st.floats(-1e9, 4e9))
def test_a_time_is_itself(time: float) -> None:
    exact = exact_time_val(time)
    assert exact is not None
    assert is_time(exact, time)
    assert parse_part(f"Modify={exact};").modified == exact


def test_a_time_that_is_no_date() -> None:
    assert exact_time_val(1e30) is None
