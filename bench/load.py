"""Many sessions at once: `make load`, `python -m bench.load --help`.

One real xftpd, whose limits are raised. Most sessions are logged in and idle but for a NOOP now and
then, whose reply is timed; the others, in a process of their own, move files over several
connections as fast as they can, half of them up and half down, every byte checked. Told are errors,
the daemon's memory and processor time, and how long replies took with and without the transfers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from bench.load_clients import TIMEOUT_S, Outcome, content, transfer
from bench.processes import BenchError, ProcessTree
from bench.report import machine
from xftp.protocol.records import CHUNK_BYTES

HOST = "127.0.0.1"
START_S = 60.0
PROBE_INTERVAL_S = 0.01
"""Between two NOOPs, each in another session."""

QUIET_S = 2.0
"""How long replies are timed before the transfers begin."""

DESCRIPTORS_PER_TRANSFER = 12
SPARE_DESCRIPTORS = 256


@dataclass(frozen=True, slots=True)
class Latency:
    """How long replies to NOOP took."""

    count: int
    median_ms: float
    p99_ms: float
    worst_ms: float

    @classmethod
    def of(cls, times_s: Sequence[float]) -> Latency:
        """Sum up what was measured. Raises BenchError if nothing was."""
        if len(times_s) < 2:
            raise BenchError("no reply to NOOP was timed")
        hundredths = statistics.quantiles(times_s, n=100, method="inclusive")
        values = (statistics.median(times_s), hundredths[98], max(times_s))
        return cls(len(times_s), *(round(value * 1000, 2) for value in values))


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of the load test came to. Memory in bytes, resident."""

    sessions: int
    transferring: int
    connections: int
    began_bytes: int
    """The daemon, with one session."""
    logged_in_bytes: int
    """With all sessions logged in, before the transfers."""
    peak_bytes: int
    """The most there was (VmHWM)."""
    ended_bytes: int
    """Behind the transfers, with all sessions still there."""
    login_s: float
    """From the first to the last login of the idle sessions, one after the other."""
    server_cpu_s: float
    """Processor time of the daemon during the transfers."""
    quiet: Latency
    busy: Latency
    """During the transfers."""
    moved: Outcome

    @property
    def errors(self) -> list[str]:
        """What went wrong."""
        return self.moved.errors


class IdleSessions:
    """Logged-in sessions of blocking sockets, of which one after the other is asked a NOOP."""

    def __init__(self, port: int, count: int) -> None:
        self._socks: list[socket.socket] = []
        for _ in range(count):
            sock = socket.create_connection((HOST, port), TIMEOUT_S)
            self._socks.append(sock)
            _expect(sock, b"220")
            for line, code in ((b"USER ftp", b"331"), (b"PASS x", b"230")):
                _ask(sock, line, code)

    def probe(self, until: threading.Event) -> list[float]:
        """Time replies until the event; give the times in seconds. Raises BenchError, OSError."""
        times_s = []
        for sock in itertools.cycle(self._socks):
            began_s = time.monotonic()
            _ask(sock, b"NOOP", b"200")
            times_s.append(time.monotonic() - began_s)
            if until.wait(PROBE_INTERVAL_S):
                return times_s
        raise BenchError("there is no idle session to ask")

    def check_all(self) -> None:
        """See that every session still answers. Raises BenchError, OSError."""
        for sock in self._socks:
            _ask(sock, b"NOOP", b"200")

    def close(self) -> None:
        """Close without QUIT."""
        for sock in self._socks:
            sock.close()


def _ask(sock: socket.socket, line: bytes, code: bytes) -> None:
    sock.sendall(line + b"\r\n")
    _expect(sock, code)


def _expect(sock: socket.socket, code: bytes) -> None:
    said = b""
    while not said.endswith(b"\r\n"):
        data = sock.recv(4096)
        if not data:
            raise BenchError("an idle session was ended by the server")
        said += data
    if not said.startswith(code + b" ") or said.count(b"\n") != 1:
        raise BenchError(f"an idle session was told {said!r} where {code!r} was due")


@contextlib.contextmanager
def running_daemon(root: Path, options: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """Run xftpd with its limits raised; give its process id and port. Raises BenchError."""
    limit = str(options.sessions + options.transferring + 10)
    command = [
        *(sys.executable, "-m", "xftp.cli.daemon", "--root", str(root), "--anonymous"),
        *("--writable", "--host", HOST, "--port", "0", "--status-socket", "none"),
        *("--sessions", limit, "--sessions-per-address", limit),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if not select.select([process.stdout], [], [], START_S)[0]:
                raise BenchError("xftpd does not begin to listen")
            yield process.pid, int(process.stdout.readline().decode().rpartition(":")[2])
            if process.poll() is not None:
                raise BenchError(f"xftpd ended with status {process.returncode}")
        finally:
            process.kill()


@contextlib.contextmanager
def transferring_clients(
    port: int, options: argparse.Namespace
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process of the sessions that move files; they are logged in, and wait."""
    command = [sys.executable, "-m", "bench.load", "--clients-of", str(port)]
    for name in ("transferring", "seconds", "records", "connections"):
        command += [f"--{name}", str(getattr(options, name))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            _line_of(process)
            yield process
        finally:
            process.kill()


def _line_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise BenchError("the transferring sessions ended early; see above")
    return line


def _go_on(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def resident(pid: int, name: str = "VmRSS") -> int:
    """Give the memory of a process in bytes (proc(5))."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"process {pid} has no {name}")


def run(options: argparse.Namespace) -> Result:
    """Run the load test once. Raises BenchError, OSError."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() else None
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=where)))
        with (root / "file").open("wb") as file:
            file.writelines(content(options.records))
        pid, port = stack.enter_context(running_daemon(root, options))
        stack.callback(IdleSessions(port, 1).close)
        began_bytes, began_s = resident(pid), time.monotonic()
        idle = IdleSessions(port, options.sessions - options.transferring)
        stack.callback(idle.close)
        login_s = time.monotonic() - began_s
        clients = stack.enter_context(transferring_clients(port, options))
        logged_in_bytes = resident(pid)
        quiet_s = _probe_while(idle, lambda: time.sleep(QUIET_S))
        server = ProcessTree(pid)
        server.sample()
        cpu_s = server.cpu_s
        told = b""

        def move() -> None:
            nonlocal told
            _go_on(clients)
            told = _line_of(clients)

        busy_s = _probe_while(idle, move)
        server.sample()
        idle.check_all()
        result = Result(
            options.sessions,
            options.transferring,
            options.connections,
            began_bytes,
            logged_in_bytes,
            resident(pid, "VmHWM"),
            resident(pid),
            login_s,
            server.cpu_s - cpu_s,
            Latency.of(quiet_s),
            Latency.of(busy_s),
            Outcome(**json.loads(told)),
        )
        _check_files(root, options, result)
        return result


def _check_files(root: Path, options: argparse.Namespace, result: Result) -> None:
    """See that every upload is there, and right."""
    expected = b"".join(content(options.records))
    for number in range(1, options.transferring, 2):
        if (root / f"new-{number}").read_bytes() != expected:
            result.errors.append(f"new-{number} is not what was sent")


def _probe_while(idle: IdleSessions, work: Callable[[], None]) -> list[float]:
    """Time replies while `work` is done in another thread."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def run_it() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=run_it)
    thread.start()
    try:
        times_s = idle.probe(is_over)
    finally:
        thread.join()
    if failures:
        raise failures[0]
    return times_s


def told(result: Result) -> str:
    """Tell the result to a person."""
    idle_bytes = result.logged_in_bytes - result.began_bytes
    moved, lines = result.moved, []
    lines.append(
        f"{result.sessions} sessions logged in, {result.transferring} of them transferring over "
        f"{result.connections} connections each"
    )
    lines.append(
        f"errors: {len(result.errors)}; {moved.downloads} downloads and {moved.uploads} uploads, "
        f"{moved.bytes_moved / 1e9:.1f} GB in {moved.seconds:.1f} s, "
        f"{result.server_cpu_s:.1f} s of the daemon's processor time"
    )
    lines += result.errors[:20]
    lines.append(
        f"memory: {result.began_bytes / 1e6:.0f} MB at first, {idle_bytes / 1e6:.1f} MB more with "
        f"all logged in ({idle_bytes / result.sessions / 1e3:.1f} kB each), at most "
        f"{result.peak_bytes / 1e6:.0f} MB, {result.ended_bytes / 1e6:.0f} MB behind the transfers"
    )
    for name, latency in (("idle", result.quiet), ("transfers", result.busy)):
        lines.append(
            f"replies, {name}: median {latency.median_ms} ms, 99% within {latency.p99_ms} ms, "
            f"worst {latency.worst_ms} ms ({latency.count} NOOPs)"
        )
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make load", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, default=1000, help="in all [%(default)s]")
    parser.add_argument("--transferring", type=int, default=200, help="of those [%(default)s]")
    parser.add_argument("--connections", type=int, default=4, help="of a transfer [%(default)s]")
    parser.add_argument("--seconds", type=float, default=30.0, help="of transfers [%(default)s]")
    parser.add_argument(
        "--records",
        type=int,
        default=512,
        help=f"{CHUNK_BYTES} bytes each, of a file [%(default)s]",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--clients-of", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.clients_of is None and not 0 < given.transferring < given.sessions:
        parser.error("some sessions transfer, and some do not")
    return given


def _raise_descriptor_limit(options: argparse.Namespace) -> None:
    """Allow this process, and those that it starts, enough open files. Raises BenchError."""
    needed = options.sessions + options.transferring * DESCRIPTORS_PER_TRANSFER + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise BenchError(f"{needed} open files are needed, and {hard} may be opened (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


def _be_clients(options: argparse.Namespace) -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(
            transfer(
                HOST,
                options.clients_of,
                sessions=options.transferring,
                seconds=options.seconds,
                records=options.records,
                connections=options.connections,
            )
        )
    return 0


def main() -> int:
    """Run the load test; 1 if anything went wrong."""
    options = _arguments()
    if options.clients_of is not None:
        return _be_clients(options)
    try:
        _raise_descriptor_limit(options)
        result = run(options)
    except (BenchError, OSError) as error:
        print(f"load: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(asdict(result) | {"machine": machine()}))
    else:
        print(f"{machine()}, load average {os.getloadavg()[0]:.1f}\n{told(result)}")
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
