"""Records damaged on their way, as TCP would never do: bytes in, bytes out.

One `Damage` is shared by the connections of a run; each has a `DamagedStream`. Where there are no
records to be seen (one connection, or TLS) pieces of as many bytes are damaged in their place.
"""

from __future__ import annotations

import random

from xftp.protocol.records import CHUNK_BYTES, HEADER_BYTES

_HELD_BACK = 3
"""Records that overtake one that is out of order."""


class Damage:
    """What is done to the next records once it is armed.

    how: duplicate, reorder, lose, out-of-range, renumber, insert, flip, truncate; size: bytes that
    the numbers count through, None where there are no records; times: how many are damaged.
    """

    def __init__(self, how: str, size: int | None, chance: random.Random, times: int = 1) -> None:
        self.how = how
        self.size = size
        self.chance = chance
        self.left = times
        self.done = 0
        self.is_armed = False

    def stream(self) -> DamagedStream | None:
        """Make the stream of one connection; None once damage was done: the rest goes on as it is.

        A later attempt may count its records from another byte of the file.
        """
        return None if self.done else DamagedStream(self)

    def take_turn(self) -> bool:
        """Tell whether the record at hand is to be damaged."""
        if not self.is_armed or not self.left:
            return False
        self.left -= 1
        self.done += 1
        return True

    @property
    def last_number(self) -> int:
        """The number of the last record."""
        return max(0, (self.size or 0) - 1) // CHUNK_BYTES


class DamagedStream:
    """The way of one connection's bytes through a `Damage`."""

    def __init__(self, damage: Damage) -> None:
        self.is_cut = False
        """Whether the connection ends here."""
        self._damage = damage
        self._rest = bytearray()
        self._late: bytes = b""
        self._late_for = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; give those that go on."""
        if not self._damage.left and not self._rest and not self._late:
            return data
        self._rest += data
        out = bytearray()
        while not self.is_cut and (length := self._next_length()):
            record = bytes(self._rest[:length])
            del self._rest[:length]
            out += self._passed(record)
        return bytes(out)

    def end(self) -> bytes:
        """Give what was held back when the connection ends."""
        rest, self._rest = bytes(self._rest) + self._late, bytearray()
        self._late = b""
        return b"" if self.is_cut else rest

    def _next_length(self) -> int:
        """Give the length of the next record; 0 if it is not whole yet."""
        if self._damage.size is None or not (self._damage.left or self._late):
            return min(len(self._rest), CHUNK_BYTES)
        if len(self._rest) < HEADER_BYTES:
            return 0
        number = int.from_bytes(self._rest[:HEADER_BYTES], "big")
        length = HEADER_BYTES + min(CHUNK_BYTES, self._damage.size - number * CHUNK_BYTES)
        return length if len(self._rest) >= length else 0

    def _passed(self, record: bytes) -> bytes:
        if self._late:
            self._late_for -= 1
            if self._late_for <= 0:
                record, self._late = record + self._late, b""
            return record
        if not self._damage.take_turn():
            return record
        return self._damaged(record)

    def _damaged(self, record: bytes) -> bytes:
        damage, chance = self._damage, self._damage.chance
        match damage.how:
            case "duplicate":
                return record + record
            case "lose":
                return b""
            case "insert":
                return record + chance.randbytes(chance.randrange(1, 100))
            case "flip":
                at = chance.randrange(len(record))
                return flipped(record, at, chance.randrange(8))
            case "reorder":
                self._late, self._late_for = record, _HELD_BACK
                return b""
            case "truncate":
                self.is_cut = True
                return record[: chance.randrange(len(record))]
            case "out-of-range":
                beyond = chance.choice((damage.last_number + 1, (1 << 32) - 1))
                return _numbered(record, beyond)
            case "renumber":
                return _numbered(record, chance.randint(0, damage.last_number))
        raise ValueError(damage.how)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """Flip one bit of one byte."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def _numbered(record: bytes, number: int) -> bytes:
    return number.to_bytes(HEADER_BYTES, "big") + record[HEADER_BYTES:]
