"""The TCP segments that an emulated path saw, from its capture.

A packet is noted as it leaves its sender, before queue, loss and delay.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.emulator.capture import read_capture

_TCP = 6  # IANA protocol numbers
_SYN, _ACK = 0x02, 0x10  # RFC 9293 section 3.1
_END, _NO_OPERATION, _WINDOW_SCALE = 0, 1, 3  # RFC 9293 section 3.1, RFC 7323 section 2.2


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment of IPv4 on the wire."""

    at_s: float
    """When it left its sender, on the monotonic clock."""

    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    acknowledged: int | None
    window_field: int
    """As the header has it: not scaled."""

    window_scale: int | None
    """What a SYN tells: how far this end's later windows are shifted."""

    syn: bool
    payload_bytes: int


def segments(capture: Path) -> Iterator[Segment]:
    """Read the TCP segments that were noted, in the order they were sent."""
    for noted in read_capture(capture):
        segment = _segment(*noted)
        if segment is not None:
            yield segment


def _segment(at_s: float, size_bytes: int, head: bytes) -> Segment | None:
    if head[0] >> 4 != 4 or head[9] != _TCP:
        return None
    begin = (head[0] & 0x0F) * 4
    source, target, sequence, acknowledged, offset, flags, window = struct.unpack_from(
        "!HHIIBBH", head, begin
    )
    header_bytes = (offset >> 4) * 4
    return Segment(
        at_s=at_s,
        source=(_address(head[12:16]), source),
        target=(_address(head[16:20]), target),
        sequence=sequence,
        acknowledged=acknowledged if flags & _ACK else None,
        window_field=window,
        window_scale=_window_scale(head[begin + 20 : begin + header_bytes]),
        syn=bool(flags & _SYN),
        payload_bytes=size_bytes - begin - header_bytes,
    )


def _address(raw: bytes) -> str:
    return ".".join(str(byte) for byte in raw)


def _window_scale(options: bytes) -> int | None:
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _NO_OPERATION:
            at += 1
            continue
        if options[at] == _WINDOW_SCALE:
            return options[at + 2]
        at += options[at + 1]
    return None
