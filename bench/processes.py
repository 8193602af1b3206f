"""Run a program and say what it, and the server it talks to, used."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_INTERVAL_S = 0.02
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Something could not be measured; the message says what and why."""


@dataclass(frozen=True)
class Usage:
    wall_s: float
    """From the start of the client to its end."""
    client_cpu_s: float
    server_cpu_s: float
    client_peak_bytes: int
    """Largest resident memory (VmHWM), all processes of the client together."""
    server_peak_bytes: int


class ProcessTree:
    """CPU time and peak memory of a process and its descendants, by looking at /proc repeatedly.

    Servers that fork for each session and ignore SIGCHLD never add a child's time to their own,
    so every process is watched for itself; at most one interval of it is missed.
    """

    def __init__(self, pid: int) -> None:
        self.root = pid
        self.peak_bytes = 0
        self._ticks: dict[int, int] = {}

    @property
    def cpu_s(self) -> float:
        return sum(self._ticks.values()) / CLOCK_TICKS_PER_S

    def sample(self) -> None:
        peak_bytes = 0
        pids = [self.root]
        while pids:
            pid = pids.pop()
            try:
                pids += _children(pid)
                self._ticks[pid] = _cpu_ticks(pid)
                peak_bytes += _peak_bytes(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
        self.peak_bytes = max(self.peak_bytes, peak_bytes)


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _cpu_ticks(pid: int) -> int:
    # The name, in parentheses, may hold blanks; utime and stime are fields 14 and 15 (proc(5)).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0  # a zombie has no memory


def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    server_pid: int | None,
    timeout_s: float,
) -> Usage:
    """Run `command` to its end, watching the server meanwhile.

    Raises BenchError with what the command printed if it fails or takes longer than `timeout_s`.
    """
    server = ProcessTree(server_pid) if server_pid is not None else None
    if server:
        server.sample()
    server_cpu_before_s = server.cpu_s if server else 0.0

    with tempfile.TemporaryFile() as output:
        started_s = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        client = ProcessTree(process.pid)
        try:
            _watch(process.pid, [tree for tree in (client, server) if tree], timeout_s)
            wall_s = time.monotonic() - started_s
            _, status, resources = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except TimeoutError as error:
            raise BenchError(f"{shlex.join(command)}: not done after {timeout_s:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        if process.returncode:
            output.seek(0)
            said = output.read().decode(errors="replace").strip() or "nothing was printed"
            raise BenchError(
                f"{shlex.join(command)}: ended with {process.returncode}: {said[-2000:]}"
            )
    return Usage(
        wall_s=wall_s,
        client_cpu_s=resources.ru_utime + resources.ru_stime,
        server_cpu_s=server.cpu_s - server_cpu_before_s if server else 0.0,
        client_peak_bytes=client.peak_bytes,
        server_peak_bytes=server.peak_bytes if server else 0,
    )


def _watch(pid: int, trees: Sequence[ProcessTree], timeout_s: float) -> None:
    """Sample the trees until the process ends, and once more then."""
    deadline_s = time.monotonic() + timeout_s
    ended = os.pidfd_open(pid)
    try:
        while not select.select([ended], [], [], SAMPLE_INTERVAL_S)[0]:
            if time.monotonic() > deadline_s:
                raise TimeoutError
            for tree in trees:
                tree.sample()
        for tree in trees:
            tree.sample()
    finally:
        os.close(ended)
