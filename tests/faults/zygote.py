"""Starts xftp and xftpd soon: a process that has imported both, and forks.

To start an interpreter and import everything takes 0.4 s of a core, two or three times in a run,
and there are hundreds of runs. What is forked is a process as any other: it has its own arguments,
directory, environment and descriptors, runs the module's main and ends as programs do.

Requests come over a socket of whole messages, with the descriptors that become standard output and
standard error; the answers tell process ids and exit statuses. When the other end closes it, what
still runs is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from typing import Any

import xftp

from . import victim

MESSAGE_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Request:
    """A program to be started."""

    key: int
    """What its answers are known by."""

    module: str
    arguments: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    """What is added to that of this process."""

    harm: victim.Harm | None = None

    def encode(self) -> bytes:
        """Write it as a message."""
        return json.dumps(asdict(self)).encode()


def decode(message: bytes) -> Request:
    """Read a message that `Request.encode` has written."""
    values = json.loads(message)
    harm = values.pop("harm")
    arguments = tuple(values.pop("arguments"))
    return Request(
        arguments=arguments, harm=None if harm is None else victim.read_harm(harm), **values
    )


class _Zygote:
    """Takes requests until the other end is closed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> Request | None:
        """Serve; None at the end. In a new process give what that is to run."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != self._control.fileno():
                    self._reap(descriptor)
                    continue
                message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 2)
                if not message:
                    self._kill_all()
                    return None
                request = decode(message)
                if self._fork(request, descriptors):
                    return request

    def _fork(self, request: Request, descriptors: list[int]) -> bool:
        """Fork; tell whether this is the new process."""
        child = os.fork()
        if not child:
            self._become_child(descriptors)
            return True
        for each in descriptors:
            os.close(each)
        watched = os.pidfd_open(child)
        self._children[watched] = request.key, child
        self._poll.register(watched, select.POLLIN)
        self._answer(key=request.key, pid=child)
        return False

    def _become_child(self, descriptors: list[int]) -> None:
        self._control.close()
        for watched in self._children:
            os.close(watched)
        for number, descriptor in enumerate(descriptors, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        # What Python knows of the old ones, as whether they can be positioned, is theirs no more.
        sys.stdin, sys.stdout = os.fdopen(0, "r", closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, closefd=False)

    def _reap(self, watched: int) -> None:
        self._poll.unregister(watched)
        os.close(watched)
        key, child = self._children.pop(watched)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self._answer(key=key, status=status)

    def _kill_all(self) -> None:
        for _, child in self._children.values():
            os.kill(child, signal.SIGKILL)

    def _answer(self, **values: Any) -> None:
        # If nobody is there to read it, `serve` hears of that next.
        with contextlib.suppress(BrokenPipeError):
            self._control.send(json.dumps(values).encode())


def _import_everything() -> None:
    for module in pkgutil.walk_packages(xftp.__path__, "xftp."):
        importlib.import_module(module.name)


def main() -> None:
    """Serve the socket whose descriptor is the argument; in a child run the program."""
    _import_everything()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        request = _Zygote(control).serve()
    if request is None:
        return
    os.chdir(request.directory)
    os.environ.update(request.environment)
    if request.harm is not None:
        victim.apply(request.harm)
    sys.argv = [request.module, *request.arguments]
    importlib.import_module(request.module).main()


if __name__ == "__main__":
    main()
