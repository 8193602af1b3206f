"""Traffic for the tests: numbered UDP packets, pings, and what the capture saw of them."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet_topos.emulator.capture import read_capture
from mininet_topos.emulator.pair import Host

PORT = 5001
UDP_HEADERS_BYTES = 28

_ICMP_ECHO, _ICMP_ECHO_REPLY = 8, 0
_UDP = 17
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h


class Receiver:
    """Numbers of the packets that arrived, and when, on the monotonic clock."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self.numbers: list[int] = []
        self.times: list[float] = []

    def run(self) -> None:
        """Receive until the socket is shut down."""
        while received := self._socket.recv(65536):
            self.times.append(time.monotonic())
            self.numbers.append(struct.unpack_from("!I", received)[0])


@contextmanager
def receiving(host: Host) -> Iterator[Receiver]:
    """Receive numbered packets in a thread; the receiver is complete after the block."""
    with host.socket(socket.SOCK_DGRAM) as opened:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 * 2**20)
        opened.bind((host.address, PORT))
        receiver = Receiver(opened)
        thread = threading.Thread(target=receiver.run)
        thread.start()
        try:
            yield receiver
        finally:
            with host.socket(socket.SOCK_DGRAM) as end:  # an empty packet, over its loopback
                end.sendto(b"", (host.address, PORT))
            thread.join()


def send_numbered(
    source: Host, target: Host, packets: int, packet_bytes: int, interval_s: float = 0.0
) -> None:
    """Send numbered packets of a size with IP header, at an interval or at once."""
    rest = bytes(packet_bytes - UDP_HEADERS_BYTES - 4)
    with source.socket(socket.SOCK_DGRAM) as sender:
        begun_s = time.monotonic()
        for number in range(packets):
            wait_s = begun_s + number * interval_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            sender.sendto(struct.pack("!I", number) + rest, (target.address, PORT))


def captured_arrivals(capture: Path) -> list[tuple[float, int]]:
    """Give times and numbers of the UDP packets as they entered the link."""
    return [
        (noted.at_s, struct.unpack_from("!I", noted.head, UDP_HEADERS_BYTES)[0])
        for noted in read_capture(capture)
        if noted.head[9] == _UDP
    ]


def ping_s(source: Host, target: Host, packet_bytes: int, times: int) -> list[float]:
    """Give the round-trip times of pings, one after the other."""
    with source.socket(socket.SOCK_RAW, socket.IPPROTO_ICMP) as opened:
        opened.settimeout(10)
        return [_ping_s(opened, target, packet_bytes, number) for number in range(times)]


def _ping_s(opened: socket.socket, target: Host, packet_bytes: int, number: int) -> float:
    payload = bytes(packet_bytes - UDP_HEADERS_BYTES)  # ICMP's header is as long as UDP's
    unsummed = struct.pack("!BBHHH", _ICMP_ECHO, 0, 0, 1, number) + payload
    request = unsummed[:2] + struct.pack("!H", _checksum(unsummed)) + unsummed[4:]
    begun_s = time.monotonic()
    opened.sendto(request, (target.address, 0))
    while True:
        reply = opened.recv(65536)
        at_s = time.monotonic()
        if reply[20] == _ICMP_ECHO_REPLY and struct.unpack_from("!H", reply, 26)[0] == number:
            return at_s - begun_s


def _checksum(data: bytes) -> int:
    """Give the Internet checksum of an even number of bytes (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF
