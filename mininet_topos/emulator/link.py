"""The handle of whoever starts a link emulator."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mininet_topos.emulator.counters import LinkCounters, Occupancy
from mininet_topos.errors import EmulatorError
from mininet_topos.links import LinkSpec

ANSWER_S = 30.0
"""Longest wait for an answer; on a machine that is not hopelessly busy it takes milliseconds."""

END_S = 5.0
"""Longest wait for the process to end before it is killed."""

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where one end of the link appears: a TUN device in a network namespace."""

    interface: str
    """Name of the TUN device; it must not exist yet."""

    pid: int | None = None
    """A process in the namespace, such as `node.pid` of a Mininet node."""

    netns_fd: int | None = None
    """Or a descriptor of the namespace; it stays the caller's."""

    def __post_init__(self) -> None:
        if (self.pid is None) == (self.netns_fd is None):
            raise EmulatorError("an end needs either a process or a namespace")


class EmulatedLink:
    """A running emulator of one link; a context manager that stops it.

    Its methods may be called from several threads.
    """

    def __init__(self, spec: LinkSpec, process: subprocess.Popen[bytes]) -> None:
        """Take over a process that was told its orders; `start` is for everyone else."""
        self.spec = spec
        self._process = process
        self._lock = threading.Lock()
        self._unread = b""
        self._last: LinkCounters | None = None
        self._recorded: dict[str, list[Occupancy]] = {"forward": [], "backward": []}

    @classmethod
    def start(
        cls,
        spec: LinkSpec,
        left: End,
        right: End,
        *,
        sample_s: float | None = None,
        capture: Path | None = None,
        realtime: bool = True,
    ) -> EmulatedLink:
        """Create both devices and start to move packets; addresses are the caller's to set.

        The devices are up when this returns. sample_s: interval at which the queues' occupancy is
        recorded; capture: a pcap file of the first bytes of every packet as it enters the link;
        realtime: let the emulator go before all other processes, if the kernel allows it.
        Raises EmulatorError.
        """
        with ExitStack() as opened:
            namespaces = [_namespace(end, opened) for end in (left, right)]
            link = cls(spec, _process(namespaces))
        interfaces = (left.interface, right.interface)
        orders = {
            "link": spec.to_json(),
            "ends": list(zip(namespaces, interfaces, strict=True)),
            "sample_s": sample_s,
            "capture": None if capture is None else str(capture.absolute()),
            "realtime": realtime,
        }
        try:
            link._ask(orders)
        except BaseException:
            link._end()
            raise
        return link

    @property
    def pid(self) -> int:
        """Give the emulator's process."""
        return self._process.pid

    def counters(self) -> LinkCounters:
        """Read what has been counted so far; once it is stopped, the last counters."""
        if self._last is not None:
            return self._last
        return LinkCounters.from_json(self._ask({"command": "counters"}))

    def record(self, interval_s: float | None) -> None:
        """Record the queues' occupancy at an interval from now on; None: no longer."""
        self._ask({"command": "record", "interval_s": interval_s})

    def occupancy(self) -> dict[str, list[Occupancy]]:
        """Read what was recorded so far: "forward" and "backward", in order of time."""
        if self._last is not None:
            return self._recorded
        forward: list[Occupancy] = []
        backward: list[Occupancy] = []
        while rows := self._ask({"command": "occupancy", "begin": len(forward)})["rows"]:
            for at_s, packets_forward, bytes_forward, packets_backward, bytes_backward in rows:
                forward.append(Occupancy(at_s, packets_forward, bytes_forward))
                backward.append(Occupancy(at_s, packets_backward, bytes_backward))
        return {"forward": forward, "backward": backward}

    def restart(self, spec: LinkSpec | None = None) -> None:
        """Begin anew, as if just started: empty, counters 0, the same seeds, events from now.

        spec: what the link is from now on, with the same MTU.
        """
        self._ask({"command": "restart", "link": None if spec is None else spec.to_json()})
        if spec is not None:
            self.spec = spec

    def stop(self) -> LinkCounters:
        """End the emulator; its devices vanish. Give the last counters; again: the same ones.

        Counters and occupancy can be read from the handle afterwards. Raises EmulatorError if the
        emulator had ended by itself.
        """
        try:
            self._recorded = self.occupancy()
            self._last = self.counters()
        finally:
            failure = self._end()
        if failure is not None:
            raise EmulatorError(f"link {self.spec.name}: {failure}")
        return self._last

    def __enter__(self) -> EmulatedLink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._process.stdin is None or self._process.stdin.closed:
                raise EmulatorError(f"the emulator of {self.spec.name} is stopped")
            with suppress(BrokenPipeError):  # it has ended; its last line may say why
                self._write(json.dumps(question).encode() + b"\n")
            told: dict[str, Any] = json.loads(self._read_line())
        if "error" in told:
            raise EmulatorError(f"link {self.spec.name}: {told['error']}")
        return told

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        while line:
            line = line[self._process.stdin.write(line) :]

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        give_up_s = time.monotonic() + ANSWER_S
        while b"\n" not in self._unread:
            left_s = give_up_s - time.monotonic()
            if not select.select([output], [], [], max(0.0, left_s))[0]:
                raise EmulatorError(f"the emulator of {self.spec.name} does not answer")
            received = os.read(output, 65536)
            if not received:
                status = self._process.wait()
                raise EmulatorError(
                    f"the emulator of {self.spec.name} has ended with status {status}"
                )
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _end(self) -> str | None:
        """Close the process's input, at which it ends; tell what went wrong at its end."""
        process = self._process
        with self._lock:
            if process.returncode is not None and process.stdin and process.stdin.closed:
                return None
            try:
                output, _ = process.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return f"its emulator did not end within {END_S:g} s"
        if process.returncode == 0:
            return None
        last_line = (self._unread + output).rpartition(b"\n")[0].rpartition(b"\n")[2]
        if not last_line:
            return f"its emulator ended with status {process.returncode}"
        return str(json.loads(last_line).get("error"))


def _process(namespaces: list[int]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "mininet_topos.emulator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=namespaces,
            cwd=_ROOT,
        )
    except OSError as error:
        raise EmulatorError(f"the emulator does not start: {error}") from error


def _namespace(end: End, opened: ExitStack) -> int:
    if end.netns_fd is not None:
        return end.netns_fd
    try:
        descriptor = os.open(f"/proc/{end.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise EmulatorError(f"process {end.pid} has no network namespace: {error}") from error
    opened.callback(os.close, descriptor)
    return descriptor
