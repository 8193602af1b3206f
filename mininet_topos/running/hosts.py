"""Processes in a topology's hosts: start, wait until ready, read what they say, end by their id."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import ExperimentError, MissingToolError

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
"""On a busy machine a Python program takes seconds to end."""

_PROJECT = Path(__file__).parents[2]


class Host(Protocol):
    """What is needed of a host of `mininet_topos.network.Lab`."""

    @property
    def ip(self) -> str:
        """Its address on the topology's network."""

    def popen(
        self, argv: list[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a process in its namespaces."""


def find(program: str, hint: str = "") -> str:
    """Give the path of a program, those of this Python's environment first.

    Raises MissingToolError.
    """
    own = Path(sys.executable).with_name(program)
    directories = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    path = str(own) if own.exists() else shutil.which(program, path=directories)
    if path is None:
        advice = f": {hint}" if hint else ""
        raise MissingToolError(f"{program} is not installed{advice}")
    return path


def module(name: str, *arguments: str) -> list[str]:
    """Give the command of a program of `inside`."""
    return [sys.executable, "-m", f"mininet_topos.running.inside.{name}", *arguments]


class Process:
    """One process in a host; what it writes goes to files."""

    def __init__(self, host: Host, argv: Sequence[str], scratch: Path, name: str) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.output = scratch / f"{name}.out"
        self.errors = scratch / f"{name}.err"
        environment = {
            **os.environ,
            "HOME": str(scratch),
            "XDG_CONFIG_HOME": str(scratch),
            "XDG_DATA_HOME": str(scratch),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(_PROJECT),
        }
        self.started_s = time.monotonic()
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self._process = host.popen(
                list(argv),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=False,  # the worker's, which has its priority
            )
        self.ended_s: float | None = None
        # A thread that waits notes the end at once and takes no time from the emulators.
        self._waiter = threading.Thread(target=self._await_end, daemon=True)
        self._waiter.start()

    def _await_end(self) -> None:
        self._process.wait()
        self.ended_s = time.monotonic()

    def poll(self) -> int | None:
        """Give the exit status once it has ended."""
        return None if self._waiter.is_alive() else self._process.returncode

    @property
    def seconds(self) -> float:
        """How long it ran."""
        ended_s = self.ended_s if self.ended_s is not None else time.monotonic()
        return ended_s - self.started_s

    def wait_until(self, ready: Callable[[str], bool]) -> str:
        """Wait for a line of its output, and give it. Raises ExperimentError."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            ended = self.poll() is not None
            for line in self.said().splitlines(keepends=True):
                if line.endswith("\n") and ready(line.strip()):
                    return line.strip()
            if ended:
                break
            time.sleep(0.01)
        raise self.failed("does not start")

    def said(self) -> str:
        """Give its standard output so far."""
        return self.output.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """Give the lines of its standard error so far."""
        return self.errors.read_text(errors="replace").strip().splitlines()

    def check(self) -> None:
        """Raise ExperimentError if it ended with an error."""
        status = self.poll()
        if status:
            raise self.failed(f"ended with {status}")

    def failed(self, what: str) -> ExperimentError:
        """Give an error with what the process said."""
        said = self.errors.read_text(errors="replace").strip()[-1500:] or self.said()[-500:]
        return ExperimentError(f"{self.name} {what}: {said.strip() or 'it said nothing'}")

    def last_report(self) -> dict[str, Any]:
        """Give the JSON object on its last line. Raises ExperimentError."""
        lines = self.said().strip().splitlines()
        try:
            told = json.loads(lines[-1]) if lines else None
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise self.failed("gave no report")
        return told

    def stop(self) -> None:
        """Ask it to end and wait; kill it if it does not."""
        if self.poll() is None:
            self._process.terminate()
            self._waiter.join(STOP_TIMEOUT_S)
        if self.poll() is None:
            self._process.kill()
        self._waiter.join()
