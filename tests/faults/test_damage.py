"""Records are damaged as told, however the bytes come."""

from __future__ import annotations

import random

import pytest

from xftp.protocol.records import CHUNK_BYTES, HEADER_BYTES

from .damage import Damage

SIZE = 10 * CHUNK_BYTES + 77
CONTENT = random.Random(3).randbytes(SIZE)
ARMED_AT = 3
"""Records that go by before."""


def record(number: int) -> bytes:
    piece = CONTENT[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
    return number.to_bytes(HEADER_BYTES, "big") + piece


RECORDS = [record(number) for number in range(11)]


def passed(how: str, piece_bytes: int, *, size: int | None = SIZE, times: int = 1) -> bytes:
    damage = Damage(how, size, random.Random(1), times)
    stream = damage.stream()
    assert stream is not None
    before, after = b"".join(RECORDS[:ARMED_AT]), b"".join(RECORDS[ARMED_AT:])
    out = stream.feed(before)
    damage.is_armed = True
    for at in range(0, len(after), piece_bytes):
        out += stream.feed(after[at : at + piece_bytes])
    return out + stream.end()


@pytest.mark.parametrize("piece_bytes", [1, 1000, 8196, 10**6])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("duplicate", [*RECORDS[:4], *RECORDS[3:]]),
        ("lose", [*RECORDS[:3], *RECORDS[4:]]),
        ("reorder", [*RECORDS[:3], *RECORDS[4:7], RECORDS[3], *RECORDS[7:]]),
    ],
)
def test_whole_records(how: str, expected: list[bytes], piece_bytes: int) -> None:
    assert passed(how, piece_bytes) == b"".join(expected)


def test_numbers() -> None:
    beyond = passed("out-of-range", 1000)
    start = ARMED_AT * len(RECORDS[0])
    number = int.from_bytes(beyond[start : start + HEADER_BYTES], "big")
    assert number in (11, 2**32 - 1)
    renumbered = passed("renumber", 1000)
    assert int.from_bytes(renumbered[start : start + HEADER_BYTES], "big") < 11
    assert renumbered[start + HEADER_BYTES :] == b"".join(RECORDS)[start + HEADER_BYTES :]


def test_one_bit() -> None:
    right = b"".join(RECORDS)
    found = passed("flip", 5000)
    different = [
        at for at, (one, other) in enumerate(zip(found, right, strict=True)) if one != other
    ]
    assert len(different) == 1
    assert (found[different[0]] ^ right[different[0]]).bit_count() == 1
    assert ARMED_AT * 8196 <= different[0] < (ARMED_AT + 1) * 8196


def test_more_bytes_and_fewer() -> None:
    right = b"".join(RECORDS)
    assert len(right) < len(passed("insert", 1000)) < len(right) + 100
    cut = passed("truncate", 1000)
    assert ARMED_AT * 8196 <= len(cut) < (ARMED_AT + 1) * 8196
    assert right.startswith(cut)


def test_pieces_where_there_are_no_records() -> None:
    right = b"".join(RECORDS)
    assert len(passed("lose", 8192, size=None)) == len(right) - 8192
    assert len(passed("duplicate", 10**6, size=None, times=2)) == len(right) + 2 * 8192


def test_later_connections_are_left_alone() -> None:
    damage = Damage("lose", SIZE, random.Random(1))
    damage.is_armed = True
    stream = damage.stream()
    assert stream is not None
    assert stream.feed(RECORDS[0]) == b""
    assert damage.stream() is None
