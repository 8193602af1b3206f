"""Both ends killed in the middle: the next run moves what is missing, and little else."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from xftp.protocol.records import CHUNK_BYTES
from xftp.transport.kept import Kept, find_kept, working_names

from .test_killed import WAIT_S, Programs, digest, programs, wait_until

__all__ = ["programs"]

SIZE = 4_000_000
RATE = "2M"
INTERVAL = 500_000
"""What may come between two entries of the journal here."""

CHECKPOINT_TAKES_S = 0.5
"""What comes while an entry is made is not in it: at RATE a megabyte."""

SLACK = 2 * INTERVAL + int(CHECKPOINT_TAKES_S * (2 << 20))

OFTEN = """
import runpy, sys
from xftp.transport import checkpoints
checkpoints.CHECKPOINT_BYTES = int(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Runs a program whose journal is kept up to date more often: a test moves less than 64 MB."""


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let xftp and xftpd run with `OFTEN`."""
    really = subprocess.Popen

    def started(command: list[str], **options: object) -> object:
        assert command[:2] == [sys.executable, "-m"]
        changed = [sys.executable, "-c", OFTEN, str(INTERVAL), *command[2:]]
        return really(changed, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", started)


def found(directory: Path) -> Kept | None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        return find_kept(descriptor, "file")
    finally:
        os.close(descriptor)


def written(directory: Path) -> int:
    """Count the bytes of the partial file that were written, wherever they are."""
    try:
        status = (directory / working_names("file")[0]).stat()
    except FileNotFoundError:
        return 0
    return min(status.st_size, status.st_blocks * 512)


def report_of(process: subprocess.Popen[bytes]) -> dict[str, object]:
    out, said = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, said.decode()
    report = json.loads(out)
    assert isinstance(report, dict)
    return report


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("connections", [1, 4, 8])
@pytest.mark.parametrize("victim", ["client", "daemon"])
@pytest.mark.parametrize("verb", ["get", "put"])
def test_the_second_run_moves_what_is_missing(
    programs: Programs, verb: str, victim: str, connections: int
) -> None:
    moment = random.Random(f"{verb} {victim} {connections}").uniform(0.2, 0.8)
    source, target = programs.home, programs.served
    if verb == "get":
        source, target = target, source
    data = random.Random(5).randbytes(SIZE)
    (source / "file").write_bytes(data)
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/file"
    ends = [url] if verb == "get" else ["file", url]
    command = [verb, "--json", "-n", str(connections)]
    client = programs.xftp(*command, "--limit-rate", RATE, *ends)
    wait_until(lambda: written(target) > moment * SIZE)
    (client if victim == "client" else daemon).kill()
    client.communicate(timeout=WAIT_S)
    assert client.returncode not in (0, None)
    is_receiver = (verb == "get") == (victim == "client")
    if victim == "daemon":
        daemon.communicate(timeout=WAIT_S)
        programs.daemon(port)
    elif not is_receiver:  # the daemon has to notice
        wait_until(lambda: not is_locked(target))
    assert not (target / "file").exists()
    there, kept = written(target), found(target)
    assert kept is not None
    if connections > 1:
        assert_held_is_right(target, kept, data)
    # The receiver of a plain stream that is killed loses nothing: the page cache outlives it.
    lost = SLACK if is_receiver and connections > 1 else CHUNK_BYTES
    assert kept.byte_count >= there - lost

    report = report_of(programs.xftp(*command, *ends))
    assert digest(target / "file") == hashlib.sha256(data).hexdigest()
    assert sorted(os.listdir(target)) == ["file"]
    on_wire = sum(each["bytes"] for each in report["connections"])  # type: ignore[attr-defined]
    holes = len(kept.held) + 1
    assert on_wire <= 1.001 * (SIZE - kept.byte_count + 2 * holes * CHUNK_BYTES)
    assert report["offset"] == kept.byte_count


def assert_held_is_right(directory: Path, kept: Kept, data: bytes) -> None:
    """See that the bytes are there that the journal says are."""
    part = (directory / working_names("file")[0]).read_bytes()
    for start, end in kept.held:
        assert part[start:end] == data[start:end]


def is_locked(directory: Path) -> bool:
    """Tell whether a transfer is still writing the partial file."""
    part = directory / working_names("file")[0]
    inode = part.stat().st_ino
    return any(
        line.split()[5].endswith(f":{inode}")
        for line in Path("/proc/locks").read_text().splitlines()
        if " FLOCK " in line and "->" not in line
    )
