"""Real bytes over the emulated link, and what the sender's kernel says meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tuning.congestion import ParameterMap, Parameters, choose
from tuning.tcp_info import TcpInfo, tcp_info

from .namespaces import SERVER, Link

BUFFER_BYTES = 32 << 20
"""Larger than every window of the tests, so that the congestion window is the limit."""

PATTERN = bytes(range(256)) * 4096
SAMPLE_EVERY_S = 0.002
UNSENT_BYTES = 1 << 20
"""So little waits unsent that a test need not wait for it to arrive."""


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
    until: Callable[[float, TcpInfo], bool],
    size_bytes: int | None = None,
    read_every_s: float = 0.0,
) -> Observed:
    """Send from the client with an algorithm until a condition holds or the bytes are through."""

    def tune(sock: socket.socket) -> None:
        choose(sock, name, parameters, parameter_map)

    with connected(link, client=tune) as (sender, receiver):
        return observe(
            sender, receiver, until=until, size_bytes=size_bytes, read_every_s=read_every_s
        )


def observe(
    sender: socket.socket,
    receiver: socket.socket,
    *,
    until: Callable[[float, TcpInfo], bool],
    size_bytes: int | None = None,
    read_every_s: float = 0.0,
) -> Observed:
    """Send over a connection, sampling the sender's TCP_INFO.

    A reader that empties the socket at once makes the kernel acknowledge at once: `read_every_s`
    lets segments come in pairs.
    """
    observed = Observed(info_of(sender))
    stop = threading.Event()
    done = threading.Event()
    sender.settimeout(0.2)
    receiver.settimeout(20)

    def write() -> None:
        sent = 0
        while not stop.is_set() and (size_bytes is None or sent < size_bytes):
            start = sent % 256
            room = len(PATTERN) - start if size_bytes is None else size_bytes - sent
            try:
                sent += sender.send(PATTERN[start : start + room])
            except TimeoutError:
                continue
        sender.shutdown(socket.SHUT_WR)

    def read() -> None:
        while chunk := receiver.recv(1 << 18):
            start = observed.received_bytes % 256
            expected = (PATTERN + PATTERN[:256])[start : start + len(chunk)]
            observed.intact = observed.intact and chunk == expected
            observed.received_bytes += len(chunk)
            time.sleep(read_every_s)
        observed.duration_s = time.monotonic() - begin
        done.set()

    begin = time.monotonic()
    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        while not done.is_set():
            at, info = time.monotonic() - begin, info_of(sender)
            observed.samples.append((at, info))
            if until(at, info):
                break
            time.sleep(SAMPLE_EVERY_S)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert observed.intact and observed.received_bytes > 0
    return observed


def _enlarge(sock: socket.socket) -> None:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        forced = 32 if option == socket.SO_SNDBUF else 33  # SO_SNDBUFFORCE, SO_RCVBUFFORCE
        sock.setsockopt(socket.SOL_SOCKET, forced, BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
