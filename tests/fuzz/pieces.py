"""How the bytes of a fuzzer become a stream that is cut up on its way."""

from __future__ import annotations

from collections.abc import Iterator


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """Give a stream, and the same stream cut up.

    The first byte says how many of the bytes behind it are the lengths of the pieces, which are
    used over and over; the stream is the rest.
    """
    count = data[0] % 8 if data else 0
    lengths = [length or 256 for length in data[1 : 1 + count]] or [1]
    stream = data[1 + count :]
    return stream, list(_pieces(stream, lengths))


def _pieces(stream: bytes, lengths: list[int]) -> Iterator[bytes]:
    at = turn = 0
    while at < len(stream):
        length = lengths[turn % len(lengths)]
        yield stream[at : at + length]
        at, turn = at + length, turn + 1


def as_text(data: bytes) -> str:
    """Give the text that a line of the control connection holds: no line end, any other byte."""
    return data.translate(None, b"\r\n\0").decode("utf-8", "surrogateescape")


def as_lines(data: bytes) -> list[str]:
    """Give the lines of a reply, or of a listing."""
    return [as_text(line) for line in data.split(b"\n")]
