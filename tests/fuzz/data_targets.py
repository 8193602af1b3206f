"""Data connections: records, those that are held, receipts, and what load balancers put before."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ipaddress

from tests.fuzz.pieces import cut
from xftp.errors import PeerError, RecordError
from xftp.protocol.proxy_protocol import HEAD_BYTES, MOST_ADDRESS_BYTES
from xftp.protocol.receipts import ALL_HELD, RECEIPT_BYTES, ReceiptReader
from xftp.protocol.records import CHUNK_BYTES, HEADER_BYTES, IncomingBatch, parse_short
from xftp.protocol.recordset import RecordSet
from xftp.server.proxies import read_header

_CAPACITY = 4
_NUMBERS = 64

Record = tuple[int, bytes]


def records(data: bytes) -> None:
    """A batch finds the records that reading one after the other finds, however they are cut.

    Wire form of the fuzzer's bytes: whether a size is known and its last two bytes; then for each
    record a number, a byte to fill it with, and whether bytes are missing.
    """
    head, rest = data[:4], data[4:]
    size = None
    if head[:1] > b"\x7f":
        size = int.from_bytes(head[1:4], "big") % (_NUMBERS * CHUNK_BYTES) + 1
    description, pieces = cut(rest)
    stream = _stream(description, size)
    # The pieces of the description are few bytes; those of the stream are as many chunks of 97.
    lengths = [len(piece) * 97 for piece in pieces] or [len(stream) or 1]
    expected, left = _one_by_one(stream, size)
    try:
        found, rest_found = _in_batches(stream, lengths, size)
    except RecordError:
        assert size is not None and any(number * CHUNK_BYTES >= size for number, _ in expected)
        return
    assert (found, rest_found) == (expected, left)
    assert size is None or all(number * CHUNK_BYTES < size for number, _ in found)
    with contextlib.suppress(RecordError):
        short = parse_short(rest_found)
        assert short is None or len(short[1]) < CHUNK_BYTES


def _stream(description: bytes, size: int | None) -> bytes:
    """Make the bytes of a data connection: 3 bytes describe a record."""
    stream = bytearray()
    for at in range(0, len(description) - 2, 3):
        number, fill, missing = description[at : at + 3]
        number = number % _NUMBERS if number < 250 else 2**32 - 256 + number
        length = CHUNK_BYTES
        if size is not None and number == (size - 1) // CHUNK_BYTES:
            length = size - number * CHUNK_BYTES
        if missing > 0xF0:  # as if a byte or more had been lost: everything behind is out of step
            length = max(0, length - (missing - 0xF0))
        stream += number.to_bytes(HEADER_BYTES, "big") + bytes([fill]) * length
    return bytes(stream)


def _one_by_one(stream: bytes, size: int | None) -> tuple[list[Record], bytes]:
    """Read records as the protocol's text has it, with no batch and no hurry."""
    found: list[Record] = []
    at = 0
    while at + HEADER_BYTES <= len(stream):
        number = int.from_bytes(stream[at : at + HEADER_BYTES], "big")
        length = CHUNK_BYTES
        if size is not None and number == (size - 1) // CHUNK_BYTES:
            length = size - number * CHUNK_BYTES
        end = at + HEADER_BYTES + length
        if end > len(stream):
            break
        found.append((number, stream[at + HEADER_BYTES : end]))
        at = end
    return found, stream[at:]


def _in_batches(stream: bytes, lengths: list[int], size: int | None) -> tuple[list[Record], bytes]:
    """Read records as the receiver does. Raises RecordError."""
    batch, rest = IncomingBatch(_CAPACITY), b""
    found: list[Record] = []
    at = turn = 0
    while at < len(stream):
        batch.begin(rest)
        room = batch.room(lengths[turn % len(lengths)])
        assert len(room) > 0, "a batch always has room for the rest of a record"
        piece = stream[at : at + len(room)]
        room[: len(piece)] = piece
        batch.filled(len(piece))
        for run in batch.take(size):
            assert run.count == len(run.payloads)
            found += [(run.first + n, bytes(each)) for n, each in enumerate(run.payloads)]
        rest = batch.rest()
        at, turn = at + len(piece), turn + 1
    return found, rest


def record_set(data: bytes) -> None:
    """Ranges that are added and removed are those of a plain set of numbers."""
    held, model = RecordSet(), set()
    for at in range(0, len(data) - 2, 3):
        operation, start, length = data[at : at + 3]
        numbers = set(range(start, start + length % 32))
        if operation % 4:
            assert held.add(start, start + len(numbers)) == len(numbers - model)
            model |= numbers
        else:
            held.remove(start, start + len(numbers))
            model -= numbers
    assert len(held) == len(model)
    assert [n for start, end in held.ranges() for n in range(start, end)] == sorted(model)
    assert all(end < start for (_, end), (start, _) in zip(*_neighbours(held), strict=True))
    missing = {n for start, end in held.missing(0, 300) for n in range(start, end)}
    assert missing == set(range(300)) - model
    assert held.end == max(model, default=-1) + 1
    assert held.contiguous == min(set(range(301)) - model)


def _neighbours(held: RecordSet) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    ranges = list(held.ranges())
    return ranges[:-1], ranges[1:]


def receipts(data: bytes) -> None:
    """However receipts are cut, the reader comes to the same; it never believes too much."""
    sent = int.from_bytes(data[:2], "big")
    stream, pieces = cut(data[2:])
    by_byte = _receipts([stream[at : at + 1] for at in range(len(stream))], sent)
    assert _receipts(pieces, sent) == by_byte
    is_bad, count, all_held = by_byte
    assert 0 <= count <= sent
    whole = len(stream) - len(stream) % RECEIPT_BYTES
    numbers = [
        int.from_bytes(stream[at : at + RECEIPT_BYTES], "big")
        for at in range(0, whole, RECEIPT_BYTES)
    ]
    if not is_bad:
        assert all(number == ALL_HELD or number <= sent for number in numbers)
        assert all_held == (ALL_HELD in numbers)


def _receipts(pieces: list[bytes], sent: int) -> tuple[bool, int, bool]:
    """Read; give whether it failed, and what is known then."""
    reader = ReceiptReader()
    try:
        for piece in pieces:
            reader.feed(piece, sent)
    except PeerError:
        return True, reader.count, reader.all_held
    return False, reader.count, reader.all_held


def proxy_header(data: bytes) -> None:
    """A header names two literal addresses or none, and nothing behind it is read."""
    stream = io.BytesIO(data)

    async def read_exactly(size: int) -> bytes:
        assert 0 <= size <= MOST_ADDRESS_BYTES
        found = stream.read(size)
        if len(found) < size:
            raise EOFError
        return found

    with contextlib.suppress(PeerError):
        header = asyncio.run(read_header(read_exactly))
        if data.startswith(b"PROXY "):
            assert stream.tell() == data.index(b"\r\n") + 2
        else:
            length = int.from_bytes(data[14:16], "big")
            assert stream.tell() == HEAD_BYTES + length <= HEAD_BYTES + MOST_ADDRESS_BYTES
        if header is not None:
            for host in (header.source_host, header.destination_host):
                assert str(ipaddress.ip_address(host)) == host and "%" not in host
            assert 0 <= header.source_port < 2**16 and 0 <= header.destination_port < 2**16
