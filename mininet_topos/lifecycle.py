"""How a lab lives and ends: nothing of it outlasts its owner, even one that was killed.

All processes of a lab are in one PID namespace, whose process 1 (`keeper`) ends when the owner's
end of a pipe closes; the kernel then kills the rest and frees namespaces and interfaces. No file
records a lab: its name is an abstract Unix socket, which the kernel frees too, and the keeper's
command line says whose it is. A keeper can outlast its owner only where it was stopped or its pipe
leaked; that is the leftover that `clean_leftovers` finds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_topos import keeper
from mininet_topos.errors import TopologyError
from mininet_topos.namespaces import Kind, inside, new_pid_namespace

_MARK = "xftp-lab-keeper"
_END_TIMEOUT_S = 10.0
_NAME_PREFIX = "\0xftp-lab/"  # NUL: an abstract name, unix(7)
_LONGEST_NAME = 64


class Claim:
    """The name of a running lab, which only one process of the machine has at a time."""

    def __init__(self, name: str) -> None:
        """Take the name. Raises TopologyError if a running lab has it."""
        if not name or len(name.encode()) > _LONGEST_NAME or not name.isprintable():
            raise TopologyError(f"{name!r} is no name for a lab: 1 to {_LONGEST_NAME} letters")
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(_NAME_PREFIX + name)
            self._socket.listen(1)
        except OSError as error:
            self._socket.close()
            raise TopologyError(
                f"a lab named {name!r} is running already{_holder(name)}: "
                "end it, or give this one another name"
            ) from error

    def release(self) -> None:
        """Give the name back; again: nothing."""
        self._socket.close()


def _holder(name: str) -> str:
    """Say which process has a name, for the error's sentence."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(_NAME_PREFIX + name)
        except OSError:
            return ""
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return f" (process {struct.unpack('3i', credentials)[0]})"


class ProcessTree:
    """Processes that end together, with all that they started themselves."""

    def __init__(self, name: str) -> None:
        """Start the keeper. Raises MissingToolError where PID namespaces are forbidden."""
        self._started: list[subprocess.Popen[Any]] = []
        owner = os.getpid()
        words = [_MARK, name, str(owner), str(_start_time(owner)), str(_pid_namespace())]
        with new_pid_namespace():
            # A session of its own: Ctrl-C in the terminal is for the owner, who ends the keeper.
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Give the keeper's process, as its owner sees it."""
        return self._keeper.pid

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Make the processes that this thread starts in the block part of the tree."""
        with inside(self._keeper.pid, Kind.PID):
            yield

    def popen(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process of the tree; its pid is the one that the owner sees."""
        with self.holding():
            process = subprocess.Popen(argv, **options)
        self._started = [old for old in self._started if old.returncode is None]
        self._started.append(process)
        return process

    def kill(self) -> None:
        """Kill every process of the tree and wait until they are gone; again: nothing.

        Raises TopologyError if a process does not end.
        """
        children = self._children()
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        if self._keeper.poll() is None:
            self._keeper.kill()
        try:
            # Process 1 ends last: the kernel waits until all others are reaped, some of them here.
            for process in self._started:
                process.wait(_END_TIMEOUT_S)
            for pid in children:
                _reap(pid)
            self._keeper.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise TopologyError(f"a process of the lab does not end: {error.cmd}") from error

    def _children(self) -> list[int]:
        """Find what was started in `holding`, whose handles may be lost to an exception."""
        known = {self._keeper.pid, *(process.pid for process in self._started)}
        found: list[int] = []
        try:
            inner = os.stat(f"/proc/{self._keeper.pid}/ns/pid").st_ino
        except FileNotFoundError:
            return found
        for directory in _processes():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if os.stat(directory / "ns/pid").st_ino == inner:
                    found.append(int(directory.name))
        return [pid for pid in found if pid not in known and _parent(pid) == os.getpid()]


def _reap(pid: int) -> None:
    """Wait for a killed child, unless its own handle was faster."""
    give_up_s = time.monotonic() + _END_TIMEOUT_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up_s:
                raise TopologyError(f"process {pid} of the lab does not end")
            time.sleep(0.001)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A lab whose owner is gone."""

    name: str
    keeper_pid: int
    started: int
    """Start time of the keeper in clock ticks since boot: tells it from a later process."""


def leftovers() -> list[Leftover]:
    """Find the labs of this user whose owner is gone."""
    found = []
    for directory in _processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if directory.stat().st_uid != os.geteuid():
                continue
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if _MARK in words and (left := _orphaned(int(directory.name), words)):
                found.append(left)
    return found


def _orphaned(pid: int, words: list[str]) -> Leftover | None:
    """Read a keeper's command line; None while its owner lives or cannot be judged from here."""
    place = words.index(_MARK)
    name, *numbers = words[place + 1 : place + 5]
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return None
    owner, owner_started, pid_namespace = map(int, numbers)
    if pid_namespace != _pid_namespace():
        return None  # The owner's number means another process here: it is in a container.
    if _start_time(owner) == owner_started:
        return None
    started = _start_time(pid)
    return None if started is None else Leftover(name, pid, started)


def clean_leftovers() -> list[Leftover]:
    """End the labs whose owner is gone, and tell which they were. Raises TopologyError."""
    cleaned = leftovers()
    for left in cleaned:
        _end(left)
    return cleaned


def _end(left: Leftover) -> None:
    try:
        descriptor = os.pidfd_open(left.keeper_pid)
    except ProcessLookupError:
        return
    try:
        if _start_time(left.keeper_pid) != left.started:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        if not select.select([descriptor], [], [], _END_TIMEOUT_S)[0]:
            raise TopologyError(
                f"the leftover lab {left.name!r} (process {left.keeper_pid}) does not end"
            )
    finally:
        os.close(descriptor)


def _start_time(pid: int) -> int | None:
    """Give a process's start in clock ticks since boot (field 22 of proc(5)); None: it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _parent(pid: int) -> int | None:
    """Give the parent of a process (field 4 of proc(5)); None: it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _processes() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM while the block cleans up; they take effect after it.

    In the main thread, which is the one that Python runs signal handlers in; elsewhere: nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not None:  # None: not Python's, and could not be put back
            signal.signal(number, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)
