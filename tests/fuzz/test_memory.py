"""What is sent without end costs a parser no more than it may hold."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable

import pytest

from xftp.errors import PeerError, RecordError
from xftp.protocol.commands import CommandParser
from xftp.protocol.receipts import ALL_HELD, ReceiptReader, format_receipt
from xftp.protocol.recordset import RecordSet
from xftp.protocol.replies import ReplyParser
from xftp.protocol.strangers import Opening

BLOCK_BYTES = 1 << 15
BLOCKS = 16
MOST_BYTES = 1 << 18

STREAMS = [b"x", b"\xff", b"\r", b"\n", b" ", b"\0", b"a b\r\n", b"211-x\r\n", b"\xff\xfb", b"1"]


def fed(feed: Callable[[bytes], object], stream: bytes) -> int:
    """Feed half a megabyte of a stream; give the memory that is held then, in bytes."""
    block = stream * (BLOCK_BYTES // len(stream))
    tracemalloc.start()
    try:
        with contextlib.suppress(PeerError):
            for _ in range(BLOCKS):
                feed(block)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("stream", STREAMS)
def test_command_lines(stream: bytes) -> None:
    assert fed(CommandParser().feed, stream) < MOST_BYTES


@pytest.mark.parametrize("stream", STREAMS)
def test_replies(stream: bytes) -> None:
    assert fed(ReplyParser().feed, stream) < MOST_BYTES


@pytest.mark.parametrize("stream", STREAMS)
def test_first_bytes(stream: bytes) -> None:
    assert fed(Opening().feed, stream) < MOST_BYTES


@pytest.mark.parametrize("stream", [format_receipt(ALL_HELD), format_receipt(7), b"\0\0\0\0\0"])
def test_receipts(stream: bytes) -> None:
    reader = ReceiptReader()
    assert fed(lambda block: reader.feed(block, 1 << 62), stream) < MOST_BYTES


def test_strewn_records() -> None:
    held = RecordSet()
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="pieces"):
            for number in range(0, 1 << 20, 2):
                held.add(number, number + 1)
        assert tracemalloc.get_traced_memory()[0] < 32 * MOST_BYTES
    finally:
        tracemalloc.stop()
