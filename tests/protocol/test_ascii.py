"""Line ends of TYPE A, whatever way the data is cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.protocol.ascii import FromNetwork, ToNetwork

TO_NETWORK = [
    (b"", b""),
    (b"a\nb\n", b"a\r\nb\r\n"),
    (b"a\r\nb\r\n", b"a\r\nb\r\n"),
    (b"\n\n", b"\r\n\r\n"),
    (b"\r\n\n", b"\r\n\r\n"),
    (b"\r\r\n", b"\r\r\n"),
    (b"a\rb\r", b"a\rb\r"),
    (b"\n\r", b"\r\n\r"),
    (b"\xff\0\xc3\xa9", b"\xff\0\xc3\xa9"),
]

FROM_NETWORK = [
    (b"", b""),
    (b"a\r\nb\r\n", b"a\nb\n"),
    (b"a\nb", b"a\nb"),
    (b"\r\n\r\n", b"\n\n"),
    (b"\r\r\n", b"\r\n"),
    (b"\r\r\r", b"\r\r\r"),
    (b"a\rb\r", b"a\rb\r"),
    (b"\n\r", b"\n\r"),
    (b"\xff\0\xc3\xa9", b"\xff\0\xc3\xa9"),
]

lines = st.lists(st.one_of(st.sampled_from([b"\r", b"\n", b"\r\n", b""]), st.binary(max_size=4)))


def run(converter: ToNetwork | FromNetwork, pieces: Iterable[bytes]) -> bytes:
    return b"".join([converter.convert(piece) for piece in pieces]) + converter.finish()


def all_cuts(data: bytes) -> list[list[bytes]]:
    singles = [data[index : index + 1] for index in range(len(data))]
    with_nothing_between = [piece for single in singles for piece in (b"", single)]
    return [
        singles,
        with_nothing_between,
        *([data[:cut], data[cut:]] for cut in range(len(data) + 1)),
    ]


@pytest.mark.parametrize(("data", "expected"), TO_NETWORK)
def test_lines_for_the_network_end_in_crlf(data: bytes, expected: bytes) -> None:
    for pieces in all_cuts(data):
        assert run(ToNetwork(), pieces) == expected


@pytest.mark.parametrize(("data", "expected"), FROM_NETWORK)
def test_lines_from_the_network_end_in_lf(data: bytes, expected: bytes) -> None:
    for pieces in all_cuts(data):
        assert run(FromNetwork(), pieces) == expected


@given(lines)
def test_cuts_do_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert run(ToNetwork(), pieces) == run(ToNetwork(), [whole])
    assert run(FromNetwork(), pieces) == run(FromNetwork(), [whole])


@given(lines)
def test_a_file_comes_back_with_every_line_end_as_lf(pieces: list[bytes]) -> None:
    wire = run(ToNetwork(), pieces)
    assert wire.count(b"\n") == wire.count(b"\r\n")
    assert run(FromNetwork(), [wire]) == b"".join(pieces).replace(b"\r\n", b"\n")
