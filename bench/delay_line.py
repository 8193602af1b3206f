"""A long path between two TUN devices: python -m bench.delay_line JSON.

Every packet read from one descriptor is written to the other one delay later. A direction may also
have a rate with a drop-tail queue before it, and lose packets at random. It may
also pass on every second ACK only, as a receiver that delays its ACKs sends them. The lab has the
real emulator; this is what a test of congestion control cannot do without.

It ends when its standard input does, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import BinaryIO

from bench import wire

MAX_PACKET_BYTES = 65536
READ_AT_ONCE = 64

PURE_ACK_BYTES = 52
"""IPv4 and TCP with time stamps and nothing else: at most this."""

DELAYED_ACK_S = 0.04
"""Longest that an ACK waits for the next; Linux's TCP_DELACK_MIN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What happens to packets in one direction."""

    delay_s: float
    """From the end of a packet's transmission to its arrival."""

    rate_bps: float | None = None
    """Bits per second, IP headers included; None: no limit."""

    queue_bytes: int | None = None
    """Room for packets that wait for the rate; None: no limit."""

    loss: float = 0.0
    """Probability that a packet is lost after its transmission."""

    delayed_acks: bool = False
    """Pass on every second pure ACK only."""

    seed: int = 1
    """Of the losses."""


class Direction:
    """One way of the path at work."""

    def __init__(self, source: int, target: int, way: Way, capture: BinaryIO | None = None) -> None:
        self.source, self.target = source, target
        self._way = way
        self._capture = capture
        self._random = random.Random(way.seed)
        self._idle_from = 0.0
        self._held: tuple[float, bytes] | None = None
        self._waiting: deque[tuple[float, bytes]] = deque()

    def take(self, now: float) -> None:
        """Read what the device has, and note when each packet is due at the other end."""
        for _ in range(READ_AT_ONCE):
            try:
                packet = os.read(self.source, MAX_PACKET_BYTES)
            except BlockingIOError:
                return
            if self._capture is not None:
                self._capture.write(wire.note(now, packet))
            if self._way.delayed_acks and self._is_held(now, packet):
                continue
            self._send(now, packet)

    def _is_held(self, now: float, packet: bytes) -> bool:
        """Hold an ACK until the next, which says all that it says, or until it has waited."""
        was_held, self._held = self._held, None
        if len(packet) > PURE_ACK_BYTES:
            if was_held is not None:
                self._send(now, was_held[1])
            return False
        if was_held is None:
            self._held = (now + DELAYED_ACK_S, packet)
        return was_held is None

    def _send(self, now: float, packet: bytes) -> None:
        due = self._end_of_transmission(now, len(packet))
        if due is not None and self._random.random() >= self._way.loss:
            self._waiting.append((due + self._way.delay_s, packet))

    def _end_of_transmission(self, now: float, size_bytes: int) -> float | None:
        way = self._way
        if way.rate_bps is None:
            return now
        begin = max(now, self._idle_from)
        queued_bytes = (begin - now) * way.rate_bps / 8
        if way.queue_bytes is not None and queued_bytes + size_bytes > way.queue_bytes:
            return None
        self._idle_from = begin + size_bytes * 8 / way.rate_bps
        return self._idle_from

    def give(self, now: float) -> float | None:
        """Write what is due; tell when the next packet is."""
        if self._held is not None and self._held[0] <= now:
            self._send(now, self._held[1])
            self._held = None
        while self._waiting and self._waiting[0][0] <= now:
            os.write(self.target, self._waiting.popleft()[1])
        times = [
            first[0] for first in (self._held, self._waiting[0] if self._waiting else None) if first
        ]
        return min(times, default=None)


def run(directions: list[Direction]) -> None:
    """Forward packets until standard input ends."""
    sources = {direction.source: direction for direction in directions}
    for descriptor in sources:
        os.set_blocking(descriptor, False)
    stop = sys.stdin.fileno()
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        due = [at for direction in directions if (at := direction.give(now)) is not None]
        timeout_s = max(0.0, min(due) - time.monotonic()) if due else None
        # select and not epoll: its time-out is not rounded to milliseconds.
        for descriptor in select.select([stop, *sources], [], [], timeout_s)[0]:
            if descriptor == stop:
                return
            sources[descriptor].take(time.monotonic())


def main() -> None:
    """Run two ways between two descriptors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
    os.nice(-15)  # the path goes on however busy the machine is
    told = json.loads(sys.argv[1])
    there, back = Way(**told["to_server"]), Way(**told["to_client"])
    client, server = told["client"], told["server"]
    capture = open(told["capture"], "wb") if told["capture"] else None  # noqa: SIM115
    try:
        run([Direction(client, server, there, capture), Direction(server, client, back, capture)])
    finally:
        if capture is not None:
            capture.close()


if __name__ == "__main__":
    main()
