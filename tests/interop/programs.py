"""Third-party programs and our own as processes, and the folders they work in."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

T = TypeVar("T")

IPV4 = "127.0.0.1"
IPV6 = "::1"
USER = "bob"
PASSWORD = "open sesame"
TIMEOUT_S = 60.0
XFTPD = (sys.executable, "-m", "xftp.cli.daemon")
XFTP = (sys.executable, "-m", "xftp.cli.client")

_PROJECT = Path(__file__).parents[2]
_SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_COMMAND = re.compile(r"DEBUG \S+ -> ([A-Z]+)")
_REPLY = re.compile(r"DEBUG \S+ <- ([0-9]{3})")
_SESSION_BEGINS = re.compile(r"INFO \S+ connected$", re.MULTILINE)
_SESSION_ENDS = re.compile(r"INFO \S+ left$", re.MULTILINE)

NAMES = {
    "space": b"two words",
    "blanks-around": b" blanks around ",
    "utf8": "größe ☃ 日本.bin".encode(),
    "latin1": b"caf\xe9 \xa4.bin",
    "byte255": b"\xff.bin",
    "signs": b"#?%25 [1] *~'\"\\.bin",
    "dash": b"-l",
    "long": b"x" * 255,
}
"""File names that go wrong easily."""

both_families = pytest.mark.parametrize("site", [IPV4, IPV6], indirect=True, ids=["ipv4", "ipv6"])
"""Runs a test against a server on 127.0.0.1 and against one on ::1."""


def find(name: str) -> str:
    """Give the path of a program, or skip the test."""
    directories = os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM_DIRECTORIES])
    path = shutil.which(name, path=directories)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def environment(home: Path) -> dict[str, str]:
    """Give an environment in which no setting of this machine's user counts."""
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home.with_name(home.name + "-cache")),  # tests look at what is left
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(_PROJECT),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


def wait_for(condition: Callable[[], T], what: str, timeout_s: float = TIMEOUT_S) -> T:
    """Wait until `condition` gives something true, and return that."""
    deadline_s = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline_s, f"waited {timeout_s:.0f} s in vain: {what}"
        time.sleep(0.01)
    return result


@contextlib.contextmanager
def running(
    command: Sequence[str | bytes], *, cwd: Path, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that prints to `log`, and end it, by its process id, with the block."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env or environment(cwd),
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def content(size: int, seed: int = 1) -> bytes:
    """Give random bytes, the same ones every time."""
    return Random(seed).randbytes(size)


@dataclass(frozen=True)
class Ended:
    """A program that has ended."""

    code: int
    output: bytes
    """What it printed on standard output."""
    errors: str
    """What it printed on standard error."""

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.output.decode("utf-8", "surrogateescape")

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.text.splitlines()


@dataclass(frozen=True)
class Daemon:
    """A server that runs."""

    host: str
    port: int
    root: Path
    """The directory it serves."""
    log: Path

    @property
    def url(self) -> str:
        """Where it is, without a final slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ftp://{host}:{self.port}"


@dataclass(frozen=True)
class Site:
    """One test's places: a folder of a server that other tests may use too, and one of its own."""

    daemon: Daemon
    there: Path
    """The folder on the server."""
    here: Path
    """The folder of the client: its working directory and its home."""
    log_begins: int

    @property
    def url(self) -> str:
        """The URL of the folder on the server."""
        return f"{self.daemon.url}/{self.there.name}"

    @property
    def address(self) -> tuple[str, str]:
        """Host and port of the server, as a command line wants them."""
        return self.daemon.host, str(self.daemon.port)

    @property
    def is_ipv6(self) -> bool:
        """Whether the server speaks IPv6."""
        return ":" in self.daemon.host

    def run(self, *command: str | bytes, stdin: bytes = b"", check: bool = True) -> Ended:
        """Run a program to its end, which is a good one if `check`."""
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=self.here,
            env=environment(self.here),
            timeout=TIMEOUT_S,
        )
        ended = Ended(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
        assert not check or ended.code == 0, (
            f"{command} ended with {ended.code}\n{ended.text}\n{ended.errors}"
        )
        return ended

    def started(
        self, *command: str | bytes
    ) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        """Start a program; it is ended with the block."""
        return running(command, cwd=self.here, log=self.here / "started.log")

    def kill_when(
        self,
        condition: Callable[[], bool],
        what: str,
        *command: str | bytes,
        is_ours: bool = True,
    ) -> None:
        """Start a program and kill it once `condition` holds.

        is_ours: wait until the daemon has noticed.
        """
        with self.started(*command) as process:
            wait_for(lambda: condition() or process.poll() is not None, what)
            assert process.poll() is None, f"{command} ended before it could be killed"
            process.kill()
        if is_ours:
            self.wait_until_left()

    # -- what the daemon says --------------------------------------------------------------------

    def log(self) -> str:
        """Give the daemon's log of this test."""
        with self.daemon.log.open("rb") as log:
            log.seek(self.log_begins)
            return log.read().decode(errors="replace")

    def commands(self) -> list[str]:
        """Give the verbs that the daemon got in this test."""
        return _COMMAND.findall(self.log())

    def replies(self) -> list[int]:
        """Give the codes of the replies that the daemon gave in this test."""
        return [int(code) for code in _REPLY.findall(self.log())]

    def session_count(self) -> int:
        """Give the number of sessions that this test has begun."""
        return len(_SESSION_BEGINS.findall(self.log()))

    def wait_until_left(self) -> None:
        """Wait until every session of this test has ended."""

        def is_empty() -> bool:
            log = self.log()
            return len(_SESSION_BEGINS.findall(log)) == len(_SESSION_ENDS.findall(log))

        wait_for(is_empty, "the daemon closes its sessions")

    # -- files -----------------------------------------------------------------------------------

    def give(self, name: str, size: int, seed: int = 1) -> bytes:
        """Put a random file on the server; give its bytes."""
        data = content(size, seed)
        (self.there / name).write_bytes(data)
        return data

    def make(self, name: str, size: int, seed: int = 2) -> bytes:
        """Put a random file on the client's side; give its bytes."""
        data = content(size, seed)
        (self.here / name).write_bytes(data)
        return data

    def part_size(self, name: str) -> int:
        """Give the size of what the server keeps of an unfinished upload."""
        try:
            return (self.there / f"{name}.xftp.part").stat().st_size
        except FileNotFoundError:
            return 0
