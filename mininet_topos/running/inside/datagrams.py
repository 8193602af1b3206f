"""Numbered UDP packets: datagrams.py receive|send '{"address": …, "port": …, "packets": …, …}'.

Each carries its number and when it was sent, by the monotonic clock that all hosts of a machine
share. The receiver ends when nothing has come for a while; it reports how many arrived, the first
number that did not, the rate between the first and the last arrival, and one-way delays. With
`echo` it sends each back, and the sender waits for that before the next, and reports the times.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from .common import Ended, run_end, say

HEADERS_BYTES = 28
"""Of IP and UDP."""

SILENCE_S = 2.0
"""After which no more packets are expected; longer than any queue of the lab's links."""

BUFFER_BYTES = 1 << 24
SO_RCVBUFFORCE = 33  # asm-generic/socket.h

_STAMP = struct.Struct("=Id")


def receive(told: Mapping[str, Any]) -> dict[str, Any]:
    """Note every packet until there are no more."""
    arrivals: list[tuple[int, float, float]] = []
    with _socket() as listener, contextlib.suppress(Ended, TimeoutError):
        listener.bind((told["address"], told["port"]))
        say("ready")
        while True:
            packet, sender = listener.recvfrom(2048)
            arrivals.append((*_STAMP.unpack_from(packet), time.monotonic()))
            listener.settimeout(SILENCE_S)
            if told["echo"]:
                listener.sendto(packet, sender)
    return summary(arrivals, told["packets"])


def summary(arrivals: Sequence[tuple[int, float, float]], sent: int) -> dict[str, Any]:
    """Sum up (number, sent at, arrived at)."""
    numbers = {number for number, _, _ in arrivals}
    delays_s = [arrived_s - sent_s for _, sent_s, arrived_s in arrivals]
    seconds = arrivals[-1][2] - arrivals[0][2] if arrivals else 0.0
    return {
        "packets": len(arrivals),
        "first_lost": next((number for number in range(sent) if number not in numbers), None),
        "seconds": seconds,
        "packets_per_s": (len(arrivals) - 1) / seconds if seconds > 0 else 0.0,
        "least_delay_s": min(delays_s, default=0.0),
        "mean_delay_s": fmean(delays_s) if delays_s else 0.0,
    }


def send(told: Mapping[str, Any]) -> dict[str, Any]:
    """Send all in their times; with echo read what comes back."""
    rest = bytes(told["packet_bytes"] - HEADERS_BYTES - _STAMP.size)
    rtts_s: list[float] = []
    with _socket() as out, contextlib.suppress(Ended):
        out.connect((told["address"], told["port"]))
        say("ready")
        began_s = time.monotonic()
        for number in _in_time(told["packets"], told["packets_per_s"], began_s):
            out.send(_STAMP.pack(number, time.monotonic()) + rest)
            if told["echo"]:
                out.settimeout(SILENCE_S)
                with contextlib.suppress(TimeoutError):
                    _, sent_s = _STAMP.unpack_from(out.recv(2048))
                    rtts_s.append(time.monotonic() - sent_s)
        took_s = time.monotonic() - began_s
    return {
        "seconds": took_s,
        "packets_per_s": told["packets"] / took_s,
        "rtts_s": rtts_s,
    }


def _in_time(packets: int, packets_per_s: float | None, began_s: float) -> Iterator[int]:
    for number in range(packets):
        if packets_per_s is not None:
            wait_s = began_s + number / packets_per_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
        yield number


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    return made


if __name__ == "__main__":
    sys.exit(run_end(receive, send))
