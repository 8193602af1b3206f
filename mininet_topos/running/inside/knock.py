"""Wait until an FTP server greets: knock.py ADDRESS PORT SECONDS; exit status 1 if it does not."""

from __future__ import annotations

import contextlib
import socket
import sys
import time


def greeted(address: str, port: int, timeout_s: float) -> bool:
    """Say whether the server said 220 in time."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError), socket.create_connection((address, port), 5) as control:
            if control.recv(4096).startswith(b"220"):
                return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(0 if greeted(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])) else 1)
