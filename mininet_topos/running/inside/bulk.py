"""Plain TCP, as iperf: bulk.py receive|send '{"address": …, "port": …, …}'.

The receiver takes one connection and reads it to its end; the sender connects and sends
`size_bytes`, or for `duration_s`, or until SIGTERM. Both report bytes and seconds; the receiver's
seconds are those from the connection's arrival to the last byte.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from .common import Ended, run_end, say, tuned_socket
from .crowd import clamp_window

_BLOCK_BYTES = 1 << 16


def receive(told: Mapping[str, Any]) -> dict[str, float]:
    """Take one connection to its end."""
    received, began_s, last_s = 0, None, 0.0
    try:
        with tuned_socket(told) as listener:
            listener.bind((told["address"], told["port"]))
            listener.listen(1)
            say("ready")
            connection, _ = listener.accept()
        began_s = last_s = time.monotonic()
        buffer = bytearray(_BLOCK_BYTES)
        with connection:
            while count := connection.recv_into(buffer):
                if not received and told.get("window_bytes"):
                    clamp_window(connection, told["window_bytes"])
                received += count
                last_s = time.monotonic()
    except Ended:
        pass
    return {"bytes": received, "seconds": last_s - began_s if began_s is not None else 0.0}


def send(told: Mapping[str, Any]) -> dict[str, float]:
    """Connect and send."""
    size, duration_s = told.get("size_bytes"), told.get("duration_s")
    block = bytes(_BLOCK_BYTES)
    sent, began_s = 0, time.monotonic()
    try:
        with tuned_socket(told) as connection:
            # What waits unsent would only make the sender seem faster than the path.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 1 << 16)
            connection.connect((told["address"], told["port"]))
            say("ready")
            until_s = None if duration_s is None else began_s + duration_s
            while (size is None or sent < size) and (until_s is None or time.monotonic() < until_s):
                left = _BLOCK_BYTES if size is None else min(_BLOCK_BYTES, size - sent)
                sent += connection.send(memoryview(block)[:left])
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # the receiver closes once it has everything
    except Ended:
        pass
    return {"bytes": sent, "seconds": time.monotonic() - began_s}


if __name__ == "__main__":
    sys.exit(run_end(receive, send))
