"""The real xftpd and xftp of one run, as processes, and what can be seen of them from outside."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .victim import Harm
from .zygote import MESSAGE_BYTES, Request

ROOT = Path(__file__).parents[2]

BUSY_S = 600.0
"""For what takes a second, on a machine that is busy beyond reason; hangs end there too."""


@dataclass(frozen=True)
class Places:
    """The directories of one run."""

    top: Path

    @property
    def home(self) -> Path:
        """Where xftp runs."""
        return self.top / "home"

    @property
    def served(self) -> Path:
        """What xftpd serves."""
        return self.top / "served"

    @property
    def logs(self) -> Path:
        """What programs print."""
        return self.top / "logs"

    def make(self) -> None:
        """Make them."""
        for each in (self.home, self.served, self.logs):
            each.mkdir()


@dataclass(eq=False)
class Program:
    """A process, and what it has printed."""

    said: Path
    """The file that has its standard error."""
    output: BinaryIO
    """Its standard output."""
    pid: asyncio.Future[int]
    status: asyncio.Future[int]
    """Its exit status, or the number of the signal that ended it, negative."""
    first_line: str = ""
    """The first line of its standard output."""
    is_killed: bool = False
    """Whether it was ended by a signal on purpose."""

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return not self.status.done()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.is_running and self.pid.done():
            self.is_killed = self.is_killed or number in (signal.SIGKILL, signal.SIGTERM)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid.result(), number)

    async def ended(self, timeout_s: float) -> int | None:
        """Wait for its end; give its exit status, None if it does not end."""
        await asyncio.wait([self.status], timeout=timeout_s)
        return self.status.result() if self.status.done() else None

    def descriptors(self) -> list[str]:
        """Tell what its open files are."""
        found = []
        for entry in os.scandir(f"/proc/{self.pid.result()}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(entry.path).partition(":")[0])
        return sorted(found)

    def words(self) -> str:
        """Give what it wrote to standard error."""
        return self.said.read_text(errors="replace")


@dataclass
class Programs:
    """Starts the programs of one run, and ends what is left of them."""

    places: Places
    host: str
    """The daemon's address."""

    running: list[Program] = field(default_factory=list)
    _by_key: dict[int, Program] = field(default_factory=dict)
    _listening: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Listen to the process that starts the others."""
        self._listening = asyncio.create_task(self._listen())

    async def end(self) -> None:
        """Kill what still runs."""
        for program in self.running:
            if program.pid.done():
                program.send_signal(signal.SIGKILL)
                await program.ended(BUSY_S)
            program.output.close()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def daemon(self, port: int, options: Sequence[str], harm: Harm | None) -> Program:
        """Start xftpd and wait until it listens; a port of 0 takes a free one.

        Raises RuntimeError if it does not.
        """
        arguments = ["--root", str(self.places.served), "--host", self.host, "--port", str(port)]
        arguments += ["--anonymous", "--writable", "-vv"]
        arguments += ["--status-socket", str(self._status_socket), *options]
        program = await self._start("daemon", "xftp.cli.daemon", arguments, harm)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BUSY_S):
                # In a thread: the line ends with the program at the latest.
                line = await asyncio.to_thread(program.output.readline)
                program.first_line = line.decode()
        if not program.first_line.startswith("listening on "):
            raise RuntimeError(f"xftpd does not start: {program.words()}")
        return program

    async def client(self, arguments: Sequence[str], harm: Harm | None = None) -> Program:
        """Start xftp."""
        return await self._start("client", "xftp.cli.client", arguments, harm)

    def status(self) -> dict[str, Any]:
        """Ask the daemon how it fares, as `xftpd status` does. Raises OSError, ValueError."""
        data = b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(BUSY_S)
            sock.connect(str(self._status_socket))
            while more := sock.recv(65536):
                data += more
        answer: dict[str, Any] = json.loads(data)
        return answer

    @property
    def _status_socket(self) -> Path:
        return self.places.top / "status"

    async def _start(
        self, name: str, module: str, arguments: Sequence[str], harm: Harm | None
    ) -> Program:
        loop = asyncio.get_running_loop()
        said = self.places.logs / f"{len(self.running)}-{name}.err"
        printed, output = os.pipe()
        program = Program(
            said, os.fdopen(printed, "rb"), loop.create_future(), loop.create_future()
        )
        self.running.append(program)
        key = next(_KEYS)
        self._by_key[key] = program
        top, home = str(self.places.top), str(self.places.home)
        environment = {"HOME": top, "XDG_CACHE_HOME": f"{top}/cache"}
        request = Request(key, module, tuple(arguments), home, environment, harm)
        errors = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            socket.send_fds(zygote(), [request.encode()], [output, errors])
        finally:
            os.close(output)
            os.close(errors)
        await asyncio.wait([program.pid], timeout=BUSY_S)
        if not program.pid.done():
            raise RuntimeError(f"{name} was not started within {BUSY_S:.0f} s")
        return program

    async def _listen(self) -> None:
        """Take what is told of processes."""
        loop = asyncio.get_running_loop()
        while message := await loop.sock_recv(zygote(), MESSAGE_BYTES):
            values = json.loads(message)
            program = self._by_key[values["key"]]
            if "pid" in values:
                program.pid.set_result(values["pid"])
            else:
                program.status.set_result(values["status"])


_KEYS = itertools.count()


@functools.cache
def zygote() -> socket.socket:
    """Start the process that starts the others, once; give the socket that it listens to."""
    control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.setblocking(False)
    with other:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote", str(other.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
            cwd=ROOT,
            env=os.environ | {"PYTHONWARNINGS": "default::ResourceWarning"},
        )
    atexit.register(_end_zygote, process, control)
    return control


def _end_zygote(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """End it: it kills what it has started and still runs."""
    control.close()
    process.wait(BUSY_S)
