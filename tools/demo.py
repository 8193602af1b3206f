"""Send a real file from a real xftpd to a real xftp and back, over one and several connections.

As root also over an emulated geostationary link, live.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

CONNECTIONS = (1, 8)
START_TIMEOUT_S = 20
TRANSFER_TIMEOUT_S = 600
CHUNK_BYTES = 1 << 20


class DemoError(Exception):
    """A step failed; the message says which and why."""


@dataclass(frozen=True)
class Outcome:
    direction: str
    """"download" or "upload"."""
    connections: int
    seconds: float
    """Wall-clock time of the whole `xftp` command, its start included."""
    same: bool
    """Whether the SHA-256 of what arrived is that of what was sent."""


def program(name: str) -> str:
    """Return the path of a console script of the environment this Python belongs to."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise DemoError(f"{path} is missing: run `make demo`, or `pip install -e .` first")
    return str(path)


def make_random_file(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for start in range(0, size_bytes, CHUNK_BYTES):
            file.write(random.randbytes(min(CHUNK_BYTES, size_bytes - start)))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def await_address(daemon: subprocess.Popen[bytes], log: Path) -> str:
    """Return the HOST:PORT that the daemon prints once it listens."""
    assert daemon.stdout is not None
    stdout = daemon.stdout.fileno()
    printed = b""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while select.select([stdout], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
        if not (data := os.read(stdout, 4096)):
            break
        printed += data
        for line in printed.decode(errors="replace").splitlines(keepends=True):
            if line.startswith("listening on ") and line.endswith("\n"):
                return line.removeprefix("listening on ").strip()
    what = "ended" if daemon.poll() is not None else f"said nothing for {START_TIMEOUT_S} s"
    raise DemoError(f"xftpd {what} before it listened\n{log.read_text(errors='replace').strip()}")


@contextlib.contextmanager
def running_daemon(root: Path, log: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run xftpd on a free loopback port; give its HOST:PORT; stop it at the end."""
    command = [program("xftpd"), "--root", str(root), "--host", "127.0.0.1", "--port", "0"]
    command += ["--anonymous", "--writable"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment) as daemon,
    ):
        try:
            yield await_address(daemon, log)
        finally:
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()


def run_xftp(arguments: list[str], environment: dict[str, str]) -> float:
    """Run one xftp command and return its seconds."""
    started_s = time.monotonic()
    try:
        done = subprocess.run(
            [program("xftp"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=TRANSFER_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"xftp {' '.join(arguments)} hung for {TRANSFER_TIMEOUT_S} s") from error
    seconds = time.monotonic() - started_s
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()
        raise DemoError(f"xftp {' '.join(arguments)} ended with {done.returncode}\n{said}")
    return seconds


def transfers(directory: Path, size_bytes: int) -> Iterator[Outcome]:
    """Move one random file down and up with each number of connections."""
    served = directory / "served"
    served.mkdir()
    source = served / "file"
    make_random_file(source, size_bytes)
    digest = sha256(source)
    # A home of its own keeps the user's netrc and settings out of the demonstration.
    environment = {**os.environ, "HOME": str(directory)}
    environment = {key: value for key, value in environment.items() if not key.startswith("XDG_")}

    with running_daemon(served, directory / "xftpd.log", environment) as address:
        for direction in ("download", "upload"):
            for count in CONNECTIONS:
                if direction == "download":
                    target = directory / f"downloaded-{count}"
                    url = f"ftp://{address}/{source.name}"
                    arguments = ["get", "-n", str(count), "-o", str(target), url]
                else:
                    target = served / f"uploaded-{count}"
                    url = f"ftp://{address}/{target.name}"
                    arguments = ["put", "-n", str(count), str(source), url]
                seconds = run_xftp(arguments, environment)
                same = target.is_file() and sha256(target) == digest
                target.unlink(missing_ok=True)
                yield Outcome(direction, count, seconds, same)


def table_of(outcomes: list[Outcome], size_bytes: int) -> Table:
    table = Table(title=f"{size_bytes / 1e6:g} MB between xftpd and xftp on loopback")
    table.add_column("direction")
    for heading in ("connections", "seconds", "MB/s"):
        table.add_column(heading, justify="right")
    table.add_column("SHA-256")
    for one in outcomes:
        table.add_row(
            one.direction,
            str(one.connections),
            f"{one.seconds:.2f}",
            f"{size_bytes / 1e6 / one.seconds:.0f}",
            "[green]equal[/]" if one.same else "[bold red]DIFFERENT[/]",
        )
    return table


def main() -> int:
    try:
        return demonstrate()
    except KeyboardInterrupt:
        return 130


def demonstrate() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256_000_000, metavar="BYTES")
    parser.add_argument("--no-link", action="store_true", help="stay on loopback")
    arguments = parser.parse_args()
    size_bytes: int = arguments.size
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="xftp-demo-") as directory,
            console.status("Transferring …"),
        ):
            outcomes = list(transfers(Path(directory), size_bytes))
    except DemoError as error:
        print(f"The demonstration failed: {error}", file=sys.stderr)
        return 1
    console.print(table_of(outcomes, size_bytes))
    linked = arguments.no_link or over_a_link(console)
    return 0 if linked and all(one.same for one in outcomes) else 1


def over_a_link(console: Console) -> bool:
    """Show the emulated link, or say why not; False if a transfer failed there."""
    try:
        import demo_geo

        from mininet_topos.errors import LabError, MissingToolError
    except ModuleNotFoundError as error:
        console.print(f"Loopback only: {error}; pip install -e '.[lab]'", highlight=False)
        return True
    if why := demo_geo.why_not():
        console.print(f"Loopback only: {why}", highlight=False)
        return True
    try:
        demo_geo.show(console)
    except MissingToolError as error:
        console.print(f"Loopback only: {error}", highlight=False)
    except LabError as error:
        print(f"The demonstration failed over the emulated link: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
