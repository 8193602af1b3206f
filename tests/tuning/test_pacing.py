"""A paced socket fills the rate it was given on the wire, headers included, and no more."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from statistics import linear_regression

import pytest

from bench.emulated_path import CLIENT, SERVER, path
from bench.wire import segments
from mininet_topos.links import Way
from tuning import SocketTuning

from .route_support import needs_routes

pytestmark = [*needs_routes, pytest.mark.slow]

RATE_BPS = 8e6
SIZE_BYTES = 1_500_000
HEADER_BYTES = 52
"""IPv4 and TCP with time stamps."""

UNPACED_SEGMENTS = 50
"""The kernel paces from the eleventh on; slow start has filled the rate by then."""


@pytest.mark.parametrize("algorithm", ["cubic", "bbr"])
def test_the_rate_on_the_wire(tmp_path: Path, algorithm: str) -> None:
    """Without the share for headers it is 1.034 of the rate."""
    capture = tmp_path / "capture"
    with path(Way(delay_s=0.01), Way(delay_s=0.01), capture=capture) as link:
        with link.server.entered():
            listener = socket.create_server((SERVER, 0))
        with link.client.entered():
            sender = socket.socket()
        with listener, sender:
            tuning = SocketTuning(congestion=algorithm, pacing_rate_bps=RATE_BPS)
            if tuning.apply(sender):
                pytest.skip(f"this kernel has no {algorithm}")
            sender.connect(listener.getsockname())
            receiver, _ = listener.accept()
            with receiver:
                receiver.settimeout(30)
                writer = threading.Thread(target=_send, args=(sender,))
                writer.start()
                while receiver.recv(1 << 18):
                    pass
                writer.join()
    sent = [s for s in segments(capture) if s.source[0] == CLIENT and s.payload_bytes]
    times_s, wire_bytes, total = [], [], 0
    for segment in sent[UNPACED_SEGMENTS:]:
        times_s.append(segment.at_s)
        wire_bytes.append(float(total))
        total += segment.payload_bytes + HEADER_BYTES
    slope, _ = linear_regression(times_s, wire_bytes)
    assert 0.9 < slope * 8 / RATE_BPS < 1.015


def _send(sender: socket.socket) -> None:
    sender.sendall(bytes(SIZE_BYTES))
    sender.shutdown(socket.SHUT_WR)
