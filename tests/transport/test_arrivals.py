"""Which records have arrived, and what that says of the file."""

from __future__ import annotations

import pytest

from xftp.errors import TransferAborted
from xftp.protocol.records import CHUNK_BYTES, Run
from xftp.transport.arrivals import Arrivals

PIECE = memoryview(bytes(CHUNK_BYTES))


def run(first: int, count: int) -> Run:
    return Run(first, count, [PIECE] * count)


def numbers(runs: list[Run]) -> list[int]:
    return [number for each in runs for number in range(each.first, each.first + each.count)]


def test_the_first_copy_counts_even_before_it_is_written() -> None:
    """While a thread writes one copy, the next may come over another connection."""
    arrivals = Arrivals(10 * CHUNK_BYTES, 0)
    first = arrivals.take([run(0, 4)])
    again = arrivals.take([run(2, 4), run(0, 1)])
    assert numbers(first) == [0, 1, 2, 3]
    assert numbers(again) == [4, 5]
    assert arrivals.repeated_bytes == 3 * CHUNK_BYTES
    assert len(arrivals.held) == 0
    assert arrivals.written(again) + arrivals.written(first) == 6


def test_a_record_twice_in_one_buffer() -> None:
    arrivals = Arrivals(None, 0)
    assert numbers(arrivals.take([run(0, 2), run(1, 2), run(0, 3)])) == [0, 1, 2]
    assert arrivals.repeated_bytes == 4 * CHUNK_BYTES


def test_whole_is_what_is_written() -> None:
    arrivals = Arrivals(2 * CHUNK_BYTES, 0)
    runs = arrivals.take([run(0, 2)])
    assert not arrivals.is_whole
    assert str(arrivals.missing_error) == "2 of 2 records did not arrive"
    arrivals.written(runs)
    assert arrivals.is_whole


def test_without_a_size_it_is_never_known_to_be_whole() -> None:
    arrivals = Arrivals(None, 0)
    arrivals.written(arrivals.take([run(0, 2)]))
    assert not arrivals.is_whole


def test_byte_ranges_have_the_part_before_the_offset_and_end_with_the_file() -> None:
    arrivals = Arrivals(5 * CHUNK_BYTES - 1, 100)
    arrivals.written(arrivals.take([run(0, 1), run(3, 2)]))
    assert arrivals.byte_ranges() == [
        (0, 100 + CHUNK_BYTES),
        (100 + 3 * CHUNK_BYTES, 100 + 5 * CHUNK_BYTES - 1),
    ]


def test_the_size_follows_from_a_short_last_record() -> None:
    arrivals = Arrivals(None, 0)
    arrivals.written(arrivals.take([run(0, 2)]))
    arrivals.written(arrivals.take_short(2, b"end"))
    arrivals.end_without_size()
    assert arrivals.size == 2 * CHUNK_BYTES + 3
    assert arrivals.byte_ranges() == [(0, arrivals.size)]


def test_a_short_record_in_the_middle_is_none() -> None:
    arrivals = Arrivals(None, 0)
    arrivals.written(arrivals.take([run(0, 2)]))
    arrivals.written(arrivals.take_short(1, b"cut"))
    with pytest.raises(TransferAborted, match=r"ended inside record 1"):
        Arrivals(2 * CHUNK_BYTES, 0).take_short(1, b"cut")
