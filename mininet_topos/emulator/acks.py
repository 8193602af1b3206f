"""Acknowledgements thinned as by a receiver that delays its ACKs (RFC 9293 section 3.8.6.3).

Receivers in a lab can be made to acknowledge every segment (route attribute quickack), but not to
acknowledge every second one throughout: Linux begins with quick ACKs. The link can do it for them.
"""

from __future__ import annotations

import struct

DELAYED_ACK_S = 0.04
"""Longest that an ACK waits for the next; Linux's TCP_DELACK_MIN."""

_TCP = 6  # IANA protocol numbers
_FLAGS = 0x3F
_FIN, _RST, _ACK = 0x01, 0x04, 0x10  # RFC 9293 section 3.1
_WITH_TIMESTAMPS_BYTES = 32
"""A TCP header with time stamps and no SACK block (RFC 7323 section 3.2)."""

_PORTS_AND_NUMBERS = struct.Struct("!4xIBB")


class AckThinner:
    """Holds every second pure ACK of a connection until the next, which says all that it says.

    An ACK that repeats the last number, or has SACK blocks, tells of a gap: receivers send it at
    once. IPv4 only; all else passes, and lets go what its connection holds.
    """

    def __init__(self) -> None:
        self._held: dict[bytes, tuple[float, bytes]] = {}  # the longest held first
        self._last_numbers: dict[bytes, int] = {}
        self.thinned = 0

    @property
    def due_s(self) -> float | None:
        """Give when the next held ACK has waited for long enough."""
        return next(iter(self._held.values()))[0] if self._held else None

    @property
    def holds(self) -> int:
        """Give how many ACKs are held."""
        return len(self._held)

    def pass_on(self, now_s: float, packet: bytes) -> list[bytes]:
        """Take a packet that arrives, and give what goes on now."""
        connection = _connection(packet)
        if connection is None:
            return [packet]
        held = self._held.pop(connection, None)
        number = _pure_ack_number(packet)
        if number is None:
            if packet[_tcp_begin(packet) + 13] & (_FIN | _RST):
                self._last_numbers.pop(connection, None)
            return [packet] if held is None else [held[1], packet]
        repeats = self._last_numbers.get(connection) == number
        self._last_numbers[connection] = number
        if repeats:
            return [packet] if held is None else [held[1], packet]
        if held is None:
            self._held[connection] = (now_s + DELAYED_ACK_S, packet)
            return []
        self.thinned += 1
        return [packet]

    def release(self, now_s: float) -> list[bytes]:
        """Give the ACKs that have waited for long enough."""
        released = []
        while self._held:
            connection, (due_s, packet) = next(iter(self._held.items()))
            if due_s > now_s:
                break
            del self._held[connection]
            released.append(packet)
        return released


def _tcp_begin(packet: bytes) -> int:
    return (packet[0] & 0x0F) * 4


def _connection(packet: bytes) -> bytes | None:
    """Give addresses and ports of a TCP segment; None for anything else, fragments among it."""
    if packet[0] >> 4 != 4 or packet[9] != _TCP or packet[6] & 0x3F or packet[7]:
        return None
    begin = _tcp_begin(packet)
    return packet[12:20] + packet[begin : begin + 4] if len(packet) >= begin + 20 else None


def _pure_ack_number(packet: bytes) -> int | None:
    begin = _tcp_begin(packet)
    number, offset, flags = _PORTS_AND_NUMBERS.unpack_from(packet, begin + 4)
    header_bytes = (offset >> 4) * 4
    is_pure = flags & _FLAGS == _ACK and begin + header_bytes == len(packet)
    return number if is_pure and header_bytes <= _WITH_TIMESTAMPS_BYTES else None
