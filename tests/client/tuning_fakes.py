"""Tunings of both sides that only note what happens to them."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xftp.client.options import Direction
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

DATA = os.urandom(100_001)
ASKED = MultOptions(
    congestion="reno", initial_window_segments=40, rate_bps=5_000_000, send_buffer_bytes=70_000
)
WIRE = "Congestion=reno;InitialWindow=40;Rate=5000000;SendBuffer=70000;"


@dataclass
class Own:
    """The tuning of this side's sockets: notes where it is applied."""

    ports: list[int] = field(default_factory=list)
    """Of each socket when it was set: 0 before bind, connect and listen."""
    closed: int = 0

    def apply(self, sock: socket.socket) -> None:
        self.ports.append(sock.getsockname()[1])

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        return {"congestion": "observed", "min_rtt_s": None}

    def close(self) -> None:
        self.closed += 1


@dataclass
class Maker:
    """A TuningMaker that notes what it is told."""

    asks: MultOptions = ASKED
    own: Own = field(default_factory=Own)
    told: list[tuple[str, int]] = field(default_factory=list)
    rtts_s: list[float | None] = field(default_factory=list)

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None, peer_host: str
    ) -> tuple[Tuning, MultOptions]:
        self.told.append((direction, connections))
        self.rtts_s.append(rtt_s)
        return self.own, self.asks


@dataclass
class FakeTuner:
    """The server's side: reduces the send buffer to `most`, refuses what it does not list."""

    keys: tuple[str, ...] = ("Congestion", "InitialWindow", "Rate", "SendBuffer", "ReceiveBuffer")
    most: int = 10**9
    applied: list[tuple[MultOptions, int]] = field(default_factory=list)

    def grant(self, asked: MultOptions, peer_host: str) -> MultOptions:
        size = asked.send_buffer_bytes
        return replace(asked, send_buffer_bytes=size and min(size, self.most))

    def tuning(self, granted: MultOptions, connections: int, peer_host: str) -> Tuning:
        tuner = self

        class Theirs(Own):
            def apply(self, sock: socket.socket) -> None:
                tuner.applied.append((granted, connections))

        return Theirs()
