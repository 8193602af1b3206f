"""Run the cases in turn, round after round, and check every file that arrives."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.cases import Case, Direction, Move
from bench.peers import HOST, Place, Server, find
from bench.processes import BenchError, Usage, measure
from mininet_topos.errors import MissingToolError
from mininet_topos.running.bytecode import compile_programs

CHUNK_BYTES = 1 << 20
TRIAL_BYTES = 8 << 20
"""Each case first moves a small file, to find out what cannot run here."""
OURS = ("xftp", "curl+xftpd")
"""What must run: without any of the others there is still a benchmark."""
START_ALLOWANCE_S = 60
SLOWEST_BYTES_PER_S = 10e6


@dataclass
class Results:
    size_bytes: int
    usages: dict[Case, list[Usage]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


@contextlib.contextmanager
def workplace(parent: Path, needed_bytes: int) -> Iterator[Place]:
    """Make a directory with what the servers need in it; remove it at the end."""
    try:
        compile_programs()
    except MissingToolError as error:
        raise BenchError(str(error)) from error
    free_bytes = min(shutil.disk_usage(parent).free, _available_memory_bytes(parent))
    if free_bytes < needed_bytes:
        raise BenchError(
            f"{parent} has room for {free_bytes / 1e9:.1f} GB, {needed_bytes / 1e9:.1f} GB are "
            "needed: choose a smaller --size or another --directory"
        )
    with tempfile.TemporaryDirectory(prefix="xftp-bench-", dir=parent) as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # servers that drop root must reach it
        root = scratch / "served"
        incoming = root / "incoming"
        incoming.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(incoming, "nobody")
        # The user's netrc, curlrc and the like would change what is measured.
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("XDG_") and not key.lower().endswith("_proxy")
        }
        environment |= {"HOME": str(scratch), "GLOBUS_HOSTNAME": HOST}
        yield Place(root, scratch, environment)


def _available_memory_bytes(directory: Path) -> int:
    """Return the memory left if the directory is one that lives in memory."""
    if not directory.resolve().is_relative_to("/dev/shm"):
        return shutil.disk_usage(directory).free
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise BenchError("/proc/meminfo names no MemAvailable")


def run_all(
    cases: Sequence[Case],
    place: Place,
    size_bytes: int,
    repeat: int,
    say: Callable[[str], None],
) -> Results:
    """Measure every case `repeat` times; the rounds interleave them, so that noise is shared."""
    results = Results(size_bytes)
    trial = place.root / "trial"
    write_random(trial, TRIAL_BYTES)
    for case in cases:
        say(f"trying {case.label}")
        try:
            run_one(case, place, trial)
        except BenchError as error:
            if case.family in OURS:
                raise
            results.left_out.append(f"{case.label}: {error}")
        else:
            results.usages[case] = []

    source = place.root / "file"
    write_random(source, size_bytes)
    # The first use of memory is slow on a virtual machine; nobody should be measured with it.
    warm = place.scratch / "warm"
    shutil.copyfile(source, warm)
    warm.unlink()
    for round_number in range(1, repeat + 1):
        for case, usages in results.usages.items():
            say(f"round {round_number} of {repeat}: {case.label}")
            usages.append(run_one(case, place, source))
    return results


def run_one(case: Case, place: Place, source: Path) -> Usage:
    """Start the server, move the file, compare it with its source, remove it."""
    directory = place.root / "incoming" if case.direction is Direction.PUT else place.scratch
    target = directory / "arrived"
    program = find(case.program)
    size_bytes = source.stat().st_size
    timeout_s = START_ALLOWANCE_S + size_bytes / SLOWEST_BYTES_PER_S
    try:
        with contextlib.ExitStack() as stack:
            server: Server | None = None
            if case.server is not None:
                server = stack.enter_context(case.server(place))
            command = [program, *case.arguments(Move(server, source, target))]
            server_pid = server.pid if server else None
            usage = measure(command, place.environment, server_pid, timeout_s)
        if not target.is_file() or not same_content(source, target):
            raise BenchError(f"{case.label}: what arrived is not what was sent")
    finally:
        target.unlink(missing_ok=True)
    return usage


def write_random(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for start in range(0, size_bytes, CHUNK_BYTES):
            file.write(os.urandom(min(CHUNK_BYTES, size_bytes - start)))


def write_sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(size_bytes)


def same_content(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb", buffering=0) as first, other.open("rb", buffering=0) as second:
        while chunk := first.read(CHUNK_BYTES):
            if second.read(CHUNK_BYTES) != chunk:
                return False
    return True
