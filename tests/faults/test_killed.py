"""Real processes killed while data moves: no success is reported, and the next run completes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from xftp.transport.kept import kept_length

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0
SIZE = 6_000_000
RATE = "3M"
"""Slow enough for a transfer to be interrupted, 2 s in all."""

PART = ".xftp.part"


@dataclass
class Programs:
    """Starts xftpd and xftp, and ends whatever is left."""

    home: Path
    served: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.home,
            env=os.environ
            | {
                "HOME": str(self.home),
                "XDG_CACHE_HOME": str(self.home.parent / "cache"),
                "PYTHONPATH": str(ROOT),
                "RUNTIME_DIRECTORY": str(self.home.parent),
            },
        )
        self.running.append(process)
        return process

    def daemon(self, port: int = 0) -> tuple[subprocess.Popen[bytes], int]:
        """Start xftpd; give it and its port."""
        process = self.start(
            "xftp.cli.daemon",
            *("--root", str(self.served), "--host", "127.0.0.1", "--port", str(port)),
            *("--anonymous", "--writable"),
        )
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], WAIT_S)[0], "xftpd printed nothing"
        line = process.stdout.readline().decode()
        return process, int(line.rpartition(":")[2])

    def xftp(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start("xftp.cli.client", *arguments)

    def succeed(self, *arguments: str) -> None:
        process = self.xftp(*arguments)
        _, said = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, said.decode()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path / "home", tmp_path / "served")
    programs.home.mkdir()
    programs.served.mkdir()
    yield programs
    for process in programs.running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT_S)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.005)


def has_begun(part: Path) -> bool:
    """Tell whether a good deal of a partial file is there."""
    with contextlib.suppress(FileNotFoundError):
        return part.stat().st_size > SIZE // 5
    return False


def random_file(path: Path) -> str:
    data = random.Random(5).randbytes(SIZE)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kept(directory: Path, name: str) -> int | None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        return kept_length(descriptor, name)
    finally:
        os.close(descriptor)


CONNECTIONS = pytest.mark.parametrize("connections", [1, 4, 8])


@CONNECTIONS
def test_daemon_killed_during_a_download(programs: Programs, connections: int) -> None:
    expected = random_file(programs.served / "file")
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/file"
    client = programs.xftp("get", "-n", str(connections), "--limit-rate", RATE, url)
    wait_until(lambda: has_begun(programs.home / f"file{PART}"))
    daemon.kill()
    _, said = client.communicate(timeout=WAIT_S)
    assert client.returncode in (1, 3)
    assert said.startswith(b"xftp: ")
    assert not (programs.home / "file").exists()
    programs.daemon(port)
    programs.succeed("get", "-n", str(connections), "--resume", url)
    assert digest(programs.home / "file") == expected
    assert os.listdir(programs.home) == ["file"]


@CONNECTIONS
def test_daemon_killed_during_an_upload(programs: Programs, connections: int) -> None:
    expected = random_file(programs.home / "file")
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/"
    client = programs.xftp("put", "-n", str(connections), "--limit-rate", RATE, "file", url)
    wait_until(lambda: has_begun(programs.served / f"file{PART}"))
    daemon.kill()
    client.communicate(timeout=WAIT_S)
    assert client.returncode in (1, 3)
    assert not (programs.served / "file").exists()
    programs.daemon(port)
    programs.succeed("put", "-n", str(connections), "--resume", "file", url)
    assert digest(programs.served / "file") == expected
    assert os.listdir(programs.served) == ["file"]


@CONNECTIONS
def test_client_killed_during_an_upload(programs: Programs, connections: int) -> None:
    """The old file stays whole; what came is kept, and counts as far as it has no holes."""
    expected = random_file(programs.home / "file")
    _, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/"
    client = programs.xftp("put", "-n", str(connections), "--limit-rate", RATE, "file", url)
    part = programs.served / f"file{PART}"
    wait_until(lambda: has_begun(part))
    client.kill()
    client.communicate(timeout=WAIT_S)
    wait_until(lambda: (kept(programs.served, "file") or 0) > 0)
    length = kept(programs.served, "file")
    assert length is not None
    assert part.read_bytes()[:length] == (programs.home / "file").read_bytes()[:length]
    assert not (programs.served / "file").exists()
    programs.succeed("put", "-n", str(connections), "--resume", "file", url)
    assert digest(programs.served / "file") == expected
    assert os.listdir(programs.served) == ["file"]


@CONNECTIONS
def test_client_killed_during_a_download(programs: Programs, connections: int) -> None:
    expected = random_file(programs.served / "file")
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/file"
    client = programs.xftp("get", "-n", str(connections), "--limit-rate", RATE, url)
    wait_until(lambda: has_begun(programs.home / f"file{PART}"))
    client.kill()
    client.communicate(timeout=WAIT_S)
    assert not (programs.home / "file").exists()
    programs.succeed("get", "-n", str(connections), "--resume", url)
    assert digest(programs.home / "file") == expected
    assert daemon.poll() is None


def test_old_file_stays_whole_while_a_new_one_is_killed(programs: Programs) -> None:
    (programs.served / "file").write_bytes(b"the old content")
    random_file(programs.home / "file")
    _, port = programs.daemon()
    client = programs.xftp(
        *("put", "-n", "4", "--overwrite", "--limit-rate", RATE),
        *("file", f"ftp://127.0.0.1:{port}/"),
    )
    wait_until(lambda: has_begun(programs.served / f"file{PART}"))
    client.kill()
    client.communicate(timeout=WAIT_S)
    assert (programs.served / "file").read_bytes() == b"the old content"


def test_terminated_daemon_finishes_the_running_transfer(programs: Programs) -> None:
    expected = random_file(programs.served / "file")
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/file"
    client = programs.xftp("get", "-n", "4", "--limit-rate", RATE, url)
    wait_until(lambda: has_begun(programs.home / f"file{PART}"))
    daemon.send_signal(signal.SIGTERM)
    _, said = client.communicate(timeout=WAIT_S)
    assert client.returncode == 0, said.decode()
    assert digest(programs.home / "file") == expected
    assert daemon.wait(WAIT_S) == 0
