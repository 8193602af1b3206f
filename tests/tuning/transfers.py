"""Real bytes over the emulated link, and what the sender's kernel says meanwhile."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from bench.emulated_path import SERVER, Link
from tuning.congestion import ParameterMap, Parameters, choose
from tuning.tcp_info import TcpInfo, tcp_info

UNFILLED_SEGMENTS = 3
"""What a window may lack at a sample; all but one in some hundred lack none."""

BUFFER_BYTES = 32 << 20
"""Larger than every window of the tests, so that the congestion window is the limit."""

PATTERN = random.Random(97).randbytes(1 << 20)
SAMPLE_EVERY_S = 0.002

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
"""asm-generic/socket.h: past the system's ceiling, for root."""

Until = Callable[[float, TcpInfo], bool]
"""Seconds since the first byte and the sender's state: enough?"""


@dataclass
class Observed:
    """One transfer, from the sender's side."""

    first: TcpInfo
    """Right after the connection was made, before any data."""

    samples: list[tuple[float, TcpInfo]] = field(default_factory=list)
    """Times in seconds since the first byte was given to the kernel."""

    received_bytes: int = 0
    intact: bool = True
    duration_s: float = 0.0

    @property
    def last(self) -> TcpInfo:
        return self.samples[-1][1]

    @property
    def least_rtt_s(self) -> float:
        assert self.last.min_rtt_s is not None
        return self.last.min_rtt_s

    @property
    def mean_rtt_s(self) -> float:
        return sum(info.rtt_s for _, info in self.samples) / len(self.samples)

    @property
    def was_filled(self) -> bool:
        """Whether the window was the limit all the time."""
        return all(
            info.snd_cwnd_segments - info.unacked_segments <= UNFILLED_SEGMENTS
            for _, info in self.samples
        )

    def acks(self, info: TcpInfo) -> int:
        """Count the segments, all of them ACKs, that came in since the connection was made."""
        assert info.segs_in is not None and self.first.segs_in is not None
        return info.segs_in - self.first.segs_in

    def delivered(self, info: TcpInfo) -> int:
        """Count the segments acknowledged since the connection was made."""
        assert info.delivered_segments is not None and self.first.delivered_segments is not None
        return info.delivered_segments - self.first.delivered_segments


def info_of(sock: socket.socket) -> TcpInfo:
    info = tcp_info(sock)
    assert info is not None
    return info


@contextmanager
def connected(
    link: Link,
    *,
    client: Callable[[socket.socket], None] = lambda sock: None,
    listener: Callable[[socket.socket], None] = lambda sock: None,
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Connect the two ends; the callables tune each before connect and listen."""
    with link.server.entered(), socket.socket() as listening:
        _enlarge(listening)
        listener(listening)
        listening.bind((SERVER, 0))
        listening.listen()
        with link.client.entered():
            active = socket.socket()
        with active:
            _enlarge(active)
            client(active)
            active.settimeout(10)
            listening.settimeout(10)
            active.connect(listening.getsockname())
            passive, _ = listening.accept()
            with passive:
                yield active, passive


def transfer(
    link: Link,
    name: str,
    parameters: Parameters | None,
    parameter_map: ParameterMap,
    *,
    size_bytes: int = 4 << 20,
    until: Until | None = None,
) -> Observed:
    """Send from the client with an algorithm, to the end or until a condition holds."""

    def tune(sock: socket.socket) -> None:
        choose(sock, name, parameters, parameter_map)

    with connected(link, client=tune) as (sender, receiver):
        return observe(sender, receiver, size_bytes=size_bytes, until=until)


def observe(
    sender: socket.socket,
    receiver: socket.socket,
    *,
    size_bytes: int,
    until: Until | None = None,
) -> Observed:
    """Send over a connection, sampling the sender's TCP_INFO; closes the sender.

    All bytes go to the kernel at once where its buffer has the room: a writer that comes and goes
    while ACKs arrive leaves the window unfilled for moments, and then it does not grow.
    """
    observed = Observed(info_of(sender))
    content = memoryview(PATTERN * (size_bytes // len(PATTERN) + 1))[:size_bytes]
    receiver.settimeout(30)
    begin = time.monotonic()
    writer = threading.Thread(target=_write, args=(sender, content))
    reader = threading.Thread(target=_read, args=(receiver, content, observed, begin))
    writer.start()
    reader.start()
    while reader.is_alive():
        at, info = time.monotonic() - begin, info_of(sender)
        observed.samples.append((at, info))
        if until is not None and until(at, info):
            # What is left need not arrive.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            break
        time.sleep(SAMPLE_EVERY_S)
    writer.join()
    sender.close()
    reader.join()
    assert observed.intact and observed.received_bytes > 0
    assert until is not None or observed.received_bytes == size_bytes
    return observed


def _write(sender: socket.socket, content: memoryview) -> None:
    sender.sendall(content)
    sender.shutdown(socket.SHUT_WR)


def _read(receiver: socket.socket, content: memoryview, observed: Observed, begin: float) -> None:
    with suppress(ConnectionResetError):
        while chunk := receiver.recv(1 << 18):
            start = observed.received_bytes
            observed.intact &= content[start : start + len(chunk)] == chunk
            observed.received_bytes += len(chunk)
    observed.duration_s = time.monotonic() - begin


def _enlarge(sock: socket.socket) -> None:
    for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
