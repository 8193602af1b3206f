"""What all programs of flows have in common."""

from __future__ import annotations

import random
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...errors import ExperimentError
from ...experiments.flows import AnyFlow
from ...experiments.outcome import FlowOutcome
from ..hosts import Host, Process

FIRST_CONTROL_PORT = 2100
FIRST_DATA_PORT = 20_000
PORTS_PER_FLOW = 500
"""Below net.ipv4.ip_local_port_range, so that nobody has one of them already."""

MOST_FLOWS = (32_768 - FIRST_DATA_PORT) // PORTS_PER_FLOW


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scenario's programs run."""

    host: Callable[[str], Host]
    """Gives a host of the topology by name."""

    scratch: Path
    """A directory of the scenario's own."""

    seed: int


class Program(ABC):
    """One flow as processes. The order: prepare, begin, done until true, finish; stop always."""

    kind: ClassVar[str]

    def __init__(self, flow: AnyFlow, place: Place, slot: int) -> None:
        if slot >= MOST_FLOWS:
            raise ExperimentError(f"a scenario has at most {MOST_FLOWS} flows")
        self.flow = flow
        self.place = place
        self.slot = slot
        self.sender = place.host(flow.sender)
        self.receiver = place.host(flow.receiver)
        self.scratch = place.scratch / flow.name
        self.scratch.mkdir()
        self.processes: list[Process] = []
        self.client: Process | None = None
        """The process whose end is the flow's end."""

    @property
    def control_port(self) -> int:
        """Port of the server's control connection, if it has one."""
        return FIRST_CONTROL_PORT + self.slot

    @property
    def data_ports(self) -> tuple[int, int]:
        """First and last port for data connections: by them the recorder knows the flow."""
        first = FIRST_DATA_PORT + self.slot * PORTS_PER_FLOW
        return first, first + PORTS_PER_FLOW - 1

    @abstractmethod
    def prepare(self) -> None:
        """Make files and start servers; return when they are ready. Raises ExperimentError."""

    @abstractmethod
    def begin(self) -> None:
        """Start the transfer."""

    @abstractmethod
    def finish(self, began_s: float) -> FlowOutcome:
        """End what still runs and give what happened; `began_s` is the scenario's begin.

        Raises ExperimentError.
        """

    def done(self) -> bool:
        """Say whether the transfer has ended. Raises ExperimentError if a process failed."""
        for process in self.processes:
            try:
                process.check()
            except ExperimentError as error:
                raise self._explained(error, process) from error
        return self.client is not None and self.client.poll() is not None

    def _explained(self, error: ExperimentError, failed: Process) -> ExperimentError:
        """Add what the flow's other processes complained of last."""
        notes = [
            f"{process.name}: {lines[-1]}"
            for process in self.processes
            if process is not failed and (lines := process.complaints())
        ]
        return ExperimentError("; ".join([str(error), *notes]))

    def stop(self) -> None:
        """End every process."""
        for process in reversed(self.processes):
            process.stop()

    def start(self, host: Host, argv: list[str], name: str) -> Process:
        """Start a process of this flow."""
        process = Process(host, argv, self.scratch, name)
        self.processes.append(process)
        return process

    def started_client(self) -> Process:
        """Give the client. Raises ExperimentError before `begin`."""
        if self.client is None:
            raise ExperimentError(f"the flow {self.flow.name} was not started")
        return self.client

    def result(
        self,
        began_s: float,
        *,
        data_s: float,
        received_bytes: int,
        report: dict[str, object] | None = None,
    ) -> FlowOutcome:
        """Give the outcome of the client's run."""
        client = self.started_client()
        return FlowOutcome(
            kind=type(self.flow).__name__,
            command=shlex.join(str(word).replace(str(self.scratch), ".") for word in client.argv),
            started_s=client.started_s - began_s,
            seconds=client.seconds,
            data_s=data_s,
            bytes=received_bytes,
            report=report or {},
        )


def write_random(path: Path, size_bytes: int, seed: int) -> Path:
    """Make a file of random bytes, the same for the same seed."""
    dice = random.Random(seed)
    with path.open("wb") as file:
        while size_bytes > 0:
            count = min(size_bytes, 1 << 20)
            file.write(dice.randbytes(count))
            size_bytes -= count
    return path
