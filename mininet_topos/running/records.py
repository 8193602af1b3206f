"""Records over time: of the connections at the senders, of the queues before the links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .hosts import Host, Process, module
from .programs import Program

MOST_ROWS = 400
"""Rows kept of a record; of more, evenly spaced ones are."""


class Recorder:
    """One process per sending host, which records the connections of all flows that start there."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        programs: Sequence[Program],
        scratch: Path,
        interval_s: float,
    ) -> None:
        self._processes: list[Process] = []
        by_sender: dict[str, list[Program]] = {}
        for program in programs:
            by_sender.setdefault(program.flow.sender, []).append(program)
        try:
            for name, its in by_sender.items():
                ports = [f"{p.flow.name}={p.data_ports[0]}-{p.data_ports[1]}" for p in its]
                command = module("recorder", str(interval_s), *ports)
                self._processes.append(Process(hosts[name], command, scratch, f"recorder-{name}"))
            for process in self._processes:
                process.wait_until(lambda line: line == "ready")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.stop()

    def end(self) -> float:
        """End the processes; give the seconds by which 95% of a host's samples were no later.

        Of several hosts the latest counts. Raises ExperimentError.
        """
        self.stop()
        reports = [process.last_report() for process in self._processes]
        return max((float(each["late_95_s"]) for each in reports), default=0.0)

    def histories(self, began_s: float) -> dict[str, list[list[float]]]:
        """Give each flow's rows, times since `began_s`. Raises ExperimentError."""
        found: dict[str, list[list[float]]] = {}
        for process in self._processes:
            process.check()
            for line in process.said().splitlines():
                if line.startswith("["):
                    name, t_s, *sums = json.loads(line)
                    found.setdefault(name, []).append([round(t_s - began_s, 4), *sums])
        return {name: thinned(rows) for name, rows in found.items()}


def queue_rows(
    occupancy: Mapping[str, Sequence[Any]], began_s: float
) -> dict[str, list[list[float]]]:
    """Give rows of (t_s, packets, bytes) per direction from what an emulator recorded."""
    return {
        direction: thinned(
            [[round(at_s - began_s, 4), packets, size] for at_s, packets, size in rows]
        )
        for direction, rows in occupancy.items()
    }


def thinned(rows: list[list[float]]) -> list[list[float]]:
    """Keep at most MOST_ROWS, evenly spaced, the first and the last among them."""
    if len(rows) <= MOST_ROWS:
        return rows
    step = (len(rows) - 1) / (MOST_ROWS - 1)
    return [rows[round(number * step)] for number in range(MOST_ROWS)]
