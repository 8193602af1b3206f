"""Start each server on a loopback port of its own, and stop it again by its process id."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import BenchError

HOST = "127.0.0.1"
START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 10

VSFTPD_SETTINGS = {
    "listen": "YES",
    "listen_address": HOST,
    "background": "NO",
    "anonymous_enable": "YES",
    "no_anon_password": "YES",
    "anon_world_readable_only": "NO",
    "local_enable": "NO",
    "seccomp_sandbox": "NO",
    "use_sendfile": "YES",
    "xferlog_enable": "NO",
}


@dataclass(frozen=True)
class Server:
    pid: int
    port: int
    root: Path
    """The directory served; its `incoming` may be written."""


@dataclass(frozen=True)
class Place:
    """Where the servers find their files."""

    root: Path
    scratch: Path
    environment: Mapping[str, str]


ServerFactory = Callable[[Place], AbstractContextManager[Server]]


def find(name: str) -> str:
    """Return the path of a program, those of this Python's own environment first."""
    own = Path(sys.executable).with_name(name)
    directories = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    path = str(own) if own.exists() else shutil.which(name, path=directories)
    if path is None:
        raise BenchError(f"{name} is not installed")
    return path


@contextlib.contextmanager
def xftpd(place: Place, host: str = HOST, options: Sequence[str] = ()) -> Iterator[Server]:
    command = [find("xftpd"), "--root", str(place.root), "--host", host, "--port", "0"]
    command += ["--anonymous", "--writable", *options]
    log = place.scratch / "xftpd.log"
    with _running(command, log, place.environment) as process:
        address = _listening_line(process, log)
        yield Server(process.pid, int(address.rpartition(":")[2]), place.root)


@contextlib.contextmanager
def vsftpd(place: Place) -> Iterator[Server]:
    program = find("vsftpd")
    if os.geteuid() != 0:
        raise BenchError("vsftpd needs root")
    port = _free_port()
    empty = place.scratch / "empty"
    empty.mkdir(exist_ok=True)
    settings = {
        **VSFTPD_SETTINGS,
        "listen_port": str(port),
        "anon_root": str(place.root),
        "secure_chroot_dir": str(empty),
    }
    config = place.scratch / "vsftpd.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    log = place.scratch / "vsftpd.log"
    with _running([program, str(config)], log, place.environment) as process:
        _await_greeting(process, port, log)
        yield Server(process.pid, port, place.root)


@contextlib.contextmanager
def gridftp(place: Place) -> Iterator[Server]:
    port = _free_port()
    command = [find("globus-gridftp-server"), "-no-detach", "-c", os.devnull, "-p", str(port)]
    command += ["-control-interface", HOST, "-data-interface", HOST]
    command += ["-allow-anonymous", "-restrict-paths", str(place.scratch)]
    if os.geteuid() == 0:
        command += ["-anonymous-user", "nobody", "-allow-disabled-login"]
    log = place.scratch / "gridftp.log"
    with _running(command, log, place.environment) as process:
        _await_greeting(process, port, log)
        yield Server(process.pid, port, place.root)


@contextlib.contextmanager
def _running(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _listening_line(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address in the line "listening on HOST:PORT"."""
    assert process.stdout is not None
    stdout = process.stdout.fileno()
    printed = b""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while select.select([stdout], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
        if not (data := os.read(stdout, 4096)):
            break
        printed += data
        for line in printed.decode(errors="replace").splitlines(keepends=True):
            if line.startswith("listening on ") and line.endswith("\n"):
                return line.removeprefix("listening on ").strip()
    raise _did_not_start(process, log)


def _await_greeting(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return once the server says 220 to a connection."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 5) as control:
            if control.recv(4096).startswith(b"220"):
                return
        time.sleep(0.02)
    raise _did_not_start(process, log)


def _did_not_start(process: subprocess.Popen[bytes], log: Path) -> BenchError:
    assert isinstance(process.args, Sequence)
    name = Path(str(process.args[0])).name
    said = log.read_text(errors="replace").strip()
    return BenchError(f"{name} does not start: {said or 'it printed nothing'}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
