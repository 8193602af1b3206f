"""Many sessions at once, a part of them transferring: the small form of `make load`."""

from __future__ import annotations

import json
import subprocess
import sys

from .daemon import MIB, ROOT

SESSIONS, TRANSFERRING, CONNECTIONS = 100, 20, 4


def test_many_sessions() -> None:
    """No error, and memory that is bounded; how fast it is, the machine decides."""
    command = [sys.executable, "-m", "bench.load", "--json", "--seconds", "1", "--records", "128"]
    command += ["--sessions", str(SESSIONS), "--transferring", str(TRANSFERRING)]
    command += ["--connections", str(CONNECTIONS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    moved = found["moved"]
    assert moved["errors"] == []
    assert moved["downloads"] >= TRANSFERRING // 2 and moved["uploads"] >= TRANSFERRING // 2
    assert found["quiet"]["count"] > 0 and found["busy"]["count"] > 0
    assert found["logged_in_bytes"] - found["began_bytes"] < SESSIONS * 100_000
    # A sending connection has half a megabyte, a receiving transfer a few.
    assert found["peak_bytes"] - found["logged_in_bytes"] < TRANSFERRING * CONNECTIONS * MIB
