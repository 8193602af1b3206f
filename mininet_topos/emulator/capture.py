"""A pcap file of the packets that enter a link, for tcpdump, Wireshark and our own plots.

The format is that of libpcap with nanoseconds (IETF draft-ietf-opsawg-pcap, section 4), without
link layer. Its times are of the monotonic clock, and so compare with those of other processes on
the machine but say nothing of the time of day.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEAD_BYTES = 128
"""What is kept of a packet: IPv4 or IPv6 and TCP headers with all their options, and a little."""

_MAGIC_NANOSECONDS = 0xA1B23C4D
_VERSION = (2, 4)
_LINK_TYPE_RAW_IP = 101
_FILE_HEADER = struct.Struct("=IHHiIII")
_PACKET_HEADER = struct.Struct("=IIII")


class Noted(NamedTuple):
    """A packet as it entered the link, before queue, loss and delay."""

    at_s: float
    """On the monotonic clock."""

    size_bytes: int
    head: bytes
    """Its first HEAD_BYTES."""


class CaptureFile:
    """The file while it is written; complete once it is closed."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises OSError, as do all its methods."""
        self._file: BinaryIO = path.open("wb")
        self._file.write(
            _FILE_HEADER.pack(_MAGIC_NANOSECONDS, *_VERSION, 0, 0, HEAD_BYTES, _LINK_TYPE_RAW_IP)
        )

    def note(self, at_s: float, packet: bytes) -> None:
        """Write a packet's time, size and begin."""
        head = packet[:HEAD_BYTES]
        seconds = int(at_s)
        nanoseconds = int((at_s - seconds) * 1e9)
        header = _PACKET_HEADER.pack(seconds, nanoseconds, len(head), len(packet))
        self._file.write(header + head)

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def read_capture(path: Path) -> Iterator[Noted]:
    """Read the packets in the order in which they entered the link.

    Raises ValueError for what CaptureFile has not written on this kind of machine.
    """
    with path.open("rb") as file:
        header = file.read(_FILE_HEADER.size)
        if len(header) < _FILE_HEADER.size or _FILE_HEADER.unpack(header)[0] != _MAGIC_NANOSECONDS:
            raise ValueError(f"{path} is no capture of a link")
        while header := file.read(_PACKET_HEADER.size):
            seconds, nanoseconds, head_bytes, size_bytes = _PACKET_HEADER.unpack(header)
            yield Noted(seconds + nanoseconds / 1e9, size_bytes, file.read(head_bytes))
