"""A running xftpd, a directory on it for every test, and a way to run xftp beside it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.cli import made_up
from tuning.congestion import ALGORITHMS

WAIT_S = 30.0
PYTHON_PATH = Path(__file__).parents[2]


@dataclass(frozen=True)
class Place:
    """A directory of the server: where it is on the disk, and what clients call it."""

    path: Path
    address: str
    name: str

    @property
    def url(self) -> str:
        return f"ftp://{self.address}/{self.name}/"

    def url_of(self, name: str, login: str = "") -> str:
        return f"ftp://{login}{self.address}/{self.name}/{name}"


@dataclass
class Client:
    """Runs `xftp` as a process of its own, in `here`, with an empty home."""

    here: Path
    environment: dict[str, str]

    def __call__(
        self,
        *arguments: str,
        stdin: bytes = b"",
        expect: int | None = 0,
        **environment: str,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run to the end, and check the exit status unless `expect` is None."""
        done = subprocess.run(
            self.command(arguments),
            input=stdin,
            capture_output=True,
            cwd=self.here,
            env=self.environment | environment,
            timeout=WAIT_S,
        )
        assert expect is None or done.returncode == expect, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done

    def start(self, *arguments: str, **pipes: int) -> subprocess.Popen[bytes]:
        """Start, to be interrupted or fed later."""
        return subprocess.Popen(
            self.command(arguments),
            cwd=self.here,
            env=self.environment,
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes),
        )

    @staticmethod
    def command(arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "xftp.cli.client", *arguments]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, and fail when it takes too long."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.01)


def first_line(process: subprocess.Popen[bytes]) -> str:
    """Wait for the first line a process prints."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], WAIT_S)[0], "nothing was printed"
    return process.stdout.readline().decode()


@contextlib.contextmanager
def running_daemon(root: Path, *options: str, log: int | IO[bytes] | None = None) -> Iterator[str]:
    """Run xftpd on a free port, with standard error to `log`; give HOST:PORT."""
    command = [sys.executable, "-m", "xftp.cli.daemon", "--root", str(root)]
    command += ["--host", "127.0.0.1", "--port", "0", "--anonymous", "--writable", *options]
    environment = os.environ | {"PYTHONPATH": str(PYTHON_PATH)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment) as process:
        try:
            yield first_line(process).removeprefix("listening on ").strip()
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Run xftpd; give its root and HOST:PORT."""
    root = tmp_path_factory.mktemp("root")
    with running_daemon(root, "--user", "joe:open sesame") as address:
        yield root, address


@pytest.fixture
def place(daemon: tuple[Path, str], tmp_path: Path) -> Place:
    """Give a directory of the server for this test only."""
    root, address = daemon
    path = root / tmp_path.name
    path.mkdir()
    return Place(path, address, path.name)


@pytest.fixture
def xftp(tmp_path: Path) -> Client:
    """Give the client, in an empty directory."""
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "XFTP_", "NETRC"))
    }
    environment |= {"HOME": str(home), "PYTHONPATH": str(PYTHON_PATH)}
    return Client(here, environment)


# -- settings of sockets -------------------------------------------------------------------------


@pytest.fixture(params=["nothing loaded", "all loaded"])
def is_loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Pretend that the algorithms of ours are, or are not, in the kernel."""
    there: bool = request.param == "all loaded"
    ours = frozenset(ALGORITHMS) if there else frozenset()
    monkeypatch.setattr("xftp.cli.tuning.available", lambda: frozenset({"reno", "cubic"}) | ours)
    return there


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with socket.socket() as opened:
        yield opened


@pytest.fixture
def make(tmp_path: Path) -> made_up.Make:
    """Give a maker of machines, in which everything is as it should be but what it is told."""
    return made_up.maker(tmp_path)
