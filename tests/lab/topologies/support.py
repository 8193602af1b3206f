"""What the tests of running labs share."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mininet_topos.lifecycle import leftovers
from mininet_topos.namespaces import Kind, inside
from mininet_topos.network import Host, Lab

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 30.0


def missing() -> str | None:
    """Say what this machine lacks to run a lab."""
    if os.geteuid() != 0:
        return "needs root: makes network namespaces"
    for program in ("mnexec", "ping"):
        if shutil.which(program) is None:
            return f"needs {program}: make test installs it as root"
    if not Path("/dev/net/tun").is_char_device():
        return "needs /dev/net/tun"
    return None


needs_lab = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    give_up_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_s, f"{what} did not happen in {TIMEOUT_S:g} s"
        time.sleep(0.02)


def open_socket(host: Host, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Open a socket in a host's namespace; it stays there."""
    with inside(host.pid, Kind.NETWORK):
        opened = socket.socket(socket.AF_INET, kind)
    opened.settimeout(TIMEOUT_S)
    return opened


@contextmanager
def connected(client: Host, server: Host) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a TCP connection between two hosts: the client's, the server's."""
    with open_socket(server) as listener, open_socket(client) as dialling:
        listener.bind((server.ip, 0))
        listener.listen(1)
        dialling.connect((server.ip, listener.getsockname()[1]))
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(TIMEOUT_S)
            yield dialling, accepted


def exactly(sock: socket.socket, size_bytes: int) -> bytes:
    """Receive so many bytes."""
    received = bytearray()
    while len(received) < size_bytes:
        data = sock.recv(size_bytes - len(received))
        assert data, f"the connection ended after {len(received)} of {size_bytes} bytes"
        received += data
    return bytes(received)


def network_of(pid: int) -> int | None:
    """Give the number of a process's network namespace; None: it is gone, or not ours to see."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def alive(pid: int) -> bool:
    """Tell whether a process runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def lab_processes(lab: Lab) -> set[int]:
    """Give the processes in the PID namespace of a running lab, in the numbers of this one."""
    assert lab.keeper_pid is not None
    inner = os.stat(f"/proc/{lab.keeper_pid}/ns/pid").st_ino
    found = set()
    for pid in processes():
        try:
            if os.stat(f"/proc/{pid}/ns/pid").st_ino == inner:
                found.add(pid)
        except OSError:
            continue
    return found


def lab_names() -> set[str]:
    """Give the names that running labs of this machine hold."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split("@xftp-lab/", 1)[1] for line in lines if "@xftp-lab/" in line}


def assert_nothing_left(name: str, pids: set[int]) -> None:
    """Check that a lab is gone: its processes, with them its namespaces, its name, its mounts."""
    eventually(lambda: not any(alive(pid) for pid in pids), f"the end of {sorted(pids)}")
    assert name not in {left.name for left in leftovers()}
    assert name not in lab_names()
    assert "xftp-lab" not in Path("/proc/self/mounts").read_text()
    interfaces = {interface for _, interface in socket.if_nameindex()}
    assert not {one for one in interfaces if "-eth" in one or "-tun" in one}


class Script:
    """A Python program of its own that has a lab, and tells of it line by line."""

    def __init__(self, text: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        """Wait for the next line; fail with what the program complained of, if it ends."""
        assert self.process.stdout is not None and self.process.stderr is not None
        ready = select.select([self.process.stdout], [], [], TIMEOUT_S)[0]
        assert ready, "the program says nothing"
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"the program ended: {self.process.stderr.read()}")
        return line.strip()

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()
