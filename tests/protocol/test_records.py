"""Records: the layout of appendix B.4, and any order, split and repetition of them."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xftp.errors import RecordError, TooLargeError
from xftp.protocol.records import (
    CHUNK_BYTES,
    HEADER_BYTES,
    MAX_RECORDS,
    RECORD_BYTES,
    IncomingBatch,
    OutgoingBatch,
    parse_short,
    record_count,
    span_bytes,
    wire_bytes,
)
from xftp.protocol.recordset import RecordSet


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def record(number: int, data: bytes) -> bytes:
    """Make the record `number` of `data` by hand, as appendix B.4 says."""
    chunk = data[number * 8192 : (number + 1) * 8192]
    return number.to_bytes(4, "big") + chunk


def seal(data: bytes, first: int, count: int) -> bytes:
    """Make records with OutgoingBatch."""
    batch = OutgoingBatch(count)
    size = span_bytes(first, count, len(data))
    at = first * CHUNK_BYTES
    for place in batch.payloads(size):
        place[:] = data[at : at + len(place)]
        at += len(place)
    return bytes(batch.seal(first, size))


class Rebuilt:
    """A file rebuilt from what several connections bring."""

    def __init__(self, size: int, connections: int, capacity: int = 4) -> None:
        self.size = size
        self.data = bytearray(size)
        self.held = RecordSet()
        self.rests = [b""] * connections
        self.batch = IncomingBatch(capacity)

    def feed(self, connection: int, data: bytes) -> None:
        batch = self.batch
        while data:
            batch.begin(self.rests[connection])
            room = batch.room(len(data))
            room[:] = data[: len(room)]
            batch.filled(len(room))
            data = data[len(room) :]
            for run in batch.take(self.size):
                self.held.add(run.first, run.first + run.count)
                at = run.first * CHUNK_BYTES
                for payload in run.payloads:
                    self.data[at : at + len(payload)] = payload
                    at += len(payload)
            self.rests[connection] = batch.rest()


def test_layout_of_a_record() -> None:
    data = content(3 * 8192)
    assert seal(data, 1, 1) == b"\0\0\0\1" + data[8192:16384]
    assert (HEADER_BYTES, CHUNK_BYTES, RECORD_BYTES) == (4, 8192, 8196)


@pytest.mark.parametrize("first", [0, 1, 255, 256, 65535, 2**24, 2**32 - 2])
def test_sequence_numbers_are_big_endian(first: int) -> None:
    sealed = OutgoingBatch(2).seal(first, 2 * CHUNK_BYTES)
    assert bytes(sealed[:4]) == first.to_bytes(4, "big")
    assert bytes(sealed[8196:8200]) == (first + 1).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("size", "count"),
    [(0, 0), (1, 1), (8191, 1), (8192, 1), (8193, 2), (81920, 10), (8192 * 2**32, 2**32)],
)
def test_count(size: int, count: int) -> None:
    assert record_count(size) == count
    assert wire_bytes(size) == size + 4 * count


def test_more_records_than_numbers() -> None:
    with pytest.raises(TooLargeError):
        record_count(MAX_RECORDS * CHUNK_BYTES + 1)


@pytest.mark.parametrize("size", [1, 100, 8191, 8192, 8193, 3 * 8192, 5 * 8192 + 17])
def test_batch_equals_records_made_by_hand(size: int) -> None:
    data = content(size)
    count = record_count(size)
    assert seal(data, 0, count) == b"".join(record(n, data) for n in range(count))


def test_every_split_of_a_record() -> None:
    """Two records cut into two pieces at every byte boundary."""
    data = content(8192 + 100)
    wire = seal(data, 0, 2)
    batch = IncomingBatch(2)
    for cut in range(len(wire) + 1):
        taken = rest = b""
        for piece in (wire[:cut], wire[cut:]):
            batch.begin(rest)
            batch.room(len(piece))[:] = piece
            batch.filled(len(piece))
            for run in batch.take(len(data)):
                taken += b"".join(run.payloads)
            rest = batch.rest()
        assert taken == data, cut
        assert rest == b""


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_order_split_and_repetition_rebuilds_the_file(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12 * CHUNK_BYTES), "size")
    connections = data.draw(st.integers(1, 8), "connections")
    original = content(size, seed=size)
    count = record_count(size)
    repeated = data.draw(st.lists(st.integers(0, count - 1), max_size=4), "repeated")
    order = data.draw(st.permutations([*range(count), *repeated]), "order")
    streams = [bytearray() for _ in range(connections)]
    for number in order:
        streams[data.draw(st.integers(0, connections - 1))] += record(number, original)
    rebuilt = Rebuilt(size, connections)
    while any(streams):
        at = data.draw(st.sampled_from([i for i, stream in enumerate(streams) if stream]))
        piece = data.draw(st.integers(1, 3 * RECORD_BYTES))
        rebuilt.feed(at, bytes(streams[at][:piece]))
        del streams[at][:piece]
    assert bytes(rebuilt.data) == original
    assert list(rebuilt.held.missing(0, count)) == []
    assert not any(rebuilt.rests)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_missing_record_is_reported_as_exactly_that(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12 * CHUNK_BYTES), "size")
    count = record_count(size)
    missing = data.draw(st.sets(st.integers(0, count - 1), min_size=1), "missing")
    original = content(size)
    rebuilt = Rebuilt(size, 1)
    for number in set(range(count)) - missing:
        rebuilt.feed(0, record(number, original))
    told = {n for start, end in rebuilt.held.missing(0, count) for n in range(start, end)}
    assert told == missing


def test_number_beyond_the_end() -> None:
    batch = IncomingBatch(2)
    wire = record(5, content(6 * 8192))
    batch.room(len(wire))[:] = wire
    batch.filled(len(wire))
    with pytest.raises(RecordError, match="record 5 lies beyond the end of 40960 bytes"):
        batch.take(5 * 8192)


def fill(batch: IncomingBatch, wire: bytes) -> None:
    batch.begin(b"")
    batch.room(len(wire))[:] = wire
    batch.filled(len(wire))


def test_rest_without_a_known_size() -> None:
    data = content(8192 + 10)
    batch = IncomingBatch(3)
    fill(batch, seal(data, 0, 2))
    assert [(run.first, run.count) for run in batch.take(None)] == [(0, 1)]
    assert parse_short(batch.rest()) == (1, data[8192:])


def test_ends_of_a_connection() -> None:
    assert parse_short(b"") is None
    assert parse_short(b"\0\0\1\2") == (258, b"")
    for cut in (1, 2, 3):
        with pytest.raises(RecordError, match="inside a sequence number"):
            parse_short(bytes(cut))


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    data = content(10 * 8192)
    wire = b"".join(record(number, data) for number in numbers)
    batch = IncomingBatch(10)
    fill(batch, wire)
    return [(run.first, run.count) for run in batch.take(None)]


@pytest.mark.parametrize(
    ("numbers", "runs"),
    [
        ([0, 1, 2, 3], [(0, 4)]),
        ([3, 2, 1], [(3, 1), (2, 1), (1, 1)]),
        ([4, 5, 0, 1, 9], [(4, 2), (0, 2), (9, 1)]),
        ([7, 7, 8], [(7, 1), (7, 2)]),
    ],
)
def test_runs(numbers: list[int], runs: list[tuple[int, int]]) -> None:
    assert runs_of(numbers) == runs
