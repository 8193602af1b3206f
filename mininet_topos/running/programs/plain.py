"""Flows by our own small programs: plain TCP, the blocking stripes of 1996, HTTP-like load."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any, ClassVar

from ...errors import ExperimentError
from ...experiments.flows import BlockingStripes, Bulk, Crowd, Datagrams, WebLoad
from ...experiments.outcome import FlowOutcome
from ..hosts import Process, module
from .base import Program

_DRAIN_TIMEOUT_S = 5.0


class _Pair(Program):
    """Two ends of one of the modules of `inside`: the one that listens and the one that calls."""

    module_name: ClassVar[str]
    listens: ClassVar[str] = "receive"
    calls: ClassVar[str] = "send"
    listener_is_receiver: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ()
    """Fields of the flow that both ends are told."""

    listener: Process

    def told(self) -> dict[str, Any]:
        """Give what both ends are told besides address, port and socket settings."""
        return {name: getattr(self.flow, name) for name in self.parameters}

    def _command(self, end: str) -> list[str]:
        host = self.receiver if self.listener_is_receiver else self.sender
        told = {**asdict(self.flow.sockets), **self.told()}
        told |= {"address": host.ip, "port": self.data_ports[0]}
        return module(self.module_name, end, json.dumps(told))

    def prepare(self) -> None:
        """Start the end that listens."""
        host = self.receiver if self.listener_is_receiver else self.sender
        self.listener = self.start(host, self._command(self.listens), self.listens)
        self.listener.wait_until(lambda line: line == "ready")

    def begin(self) -> None:
        """Start the end that calls."""
        host = self.sender if self.listener_is_receiver else self.receiver
        self.client = self.start(host, self._command(self.calls), self.calls)

    def _reports(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """End both ends; give the reports of the listening and of the calling one."""
        client = self.started_client()
        client.stop()
        _await_end(self.listener)
        self.listener.stop()
        return self.listener.last_report(), client.last_report()


class _TransferProgram(_Pair):
    """A pair that moves a size, or for a time."""

    flow: Bulk | Crowd | BlockingStripes

    def expected_bytes(self) -> int | None:
        """Give what is to arrive; None: as much as does in the flow's time."""
        return self.flow.size_bytes

    def finish(self, began_s: float) -> FlowOutcome:
        """Take the receiver's count. Raises ExperimentError if anything is missing."""
        received, sent = self._reports()
        expected, arrived = self.expected_bytes(), received["bytes"]
        if expected is not None and not self.flow.background and arrived != expected:
            raise ExperimentError(f"{self.flow.name}: {arrived:,} of {expected:,} bytes arrived")
        return self.result(
            began_s,
            data_s=self.data_s(received, sent),
            received_bytes=arrived,
            report=self.report(received, sent),
        )

    def data_s(self, received: dict[str, Any], sent: dict[str, Any]) -> float:
        """Give the time of the data from both ends' reports."""
        return float(received["seconds"])

    def report(self, received: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
        """Give what is kept of both ends' reports."""
        return {"receiver": received, "sender": sent}


class BulkProgram(_TransferProgram):
    """One connection of plain TCP."""

    kind: ClassVar[str] = "Bulk"
    module_name = "bulk"
    parameters = ("size_bytes", "duration_s", "window_bytes")
    flow: Bulk


class BlockingProgram(_TransferProgram):
    """XFTP of 1996."""

    kind: ClassVar[str] = "BlockingStripes"
    module_name = "stripes"
    parameters = ("size_bytes", "connections", "chunk_bytes")
    flow: BlockingStripes


class CrowdProgram(_TransferProgram):
    """Independent transfers at once; each from the sender's connection to the last byte."""

    kind: ClassVar[str] = "Crowd"
    module_name = "crowd"
    parameters = ("size_bytes", "transfers", "window_bytes")
    flow: Crowd

    def expected_bytes(self) -> int:
        """Give the size of them all."""
        return self.flow.size_bytes * self.flow.transfers

    def data_s(self, received: dict[str, Any], sent: dict[str, Any]) -> float:
        """Give the time from the first connection to the last byte of all."""
        begins, ends = sent["established_s"], received["arrived_s"]
        return float(max(ends.values()) - min(begins.values()))

    def report(self, received: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
        """Give the time of each transfer."""
        begins, ends = sent["established_s"], received["arrived_s"]
        return {"transfers_s": [ends[port] - begins[port] for port in begins if port in ends]}


class WebProgram(_Pair):
    """HTTP-like load: the sender serves, the receiver browses."""

    kind: ClassVar[str] = "WebLoad"
    module_name = "web"
    listens, calls = "serve", "browse"
    listener_is_receiver = False
    flow: WebLoad

    def told(self) -> dict[str, Any]:
        """Give load, sizes and seed; the scenario's seed makes repeats differ."""
        return {
            "load_bps": self.flow.load_bps,
            "mean_response_bytes": self.flow.mean_response_bytes,
            "duration_s": self.flow.duration_s,
            "seed": self.flow.seed * 1000 + self.place.seed,
        }

    def finish(self, began_s: float) -> FlowOutcome:
        """Take the browser's count."""
        client = self.started_client()
        client.stop()
        self.listener.stop()
        browsed = client.last_report()
        return self.result(
            began_s,
            data_s=browsed["seconds"],
            received_bytes=int(browsed["bytes"]),
            report={"browser": browsed, "server": self.listener.last_report()},
        )


class DatagramsProgram(_Pair):
    """Numbered UDP packets."""

    kind: ClassVar[str] = "Datagrams"
    module_name = "datagrams"
    parameters = ("packets", "packet_bytes", "packets_per_s", "echo")
    flow: Datagrams

    def finish(self, began_s: float) -> FlowOutcome:
        """Take what the receiver saw: losses are what is measured, and no error."""
        received, sent = self._reports()
        return self.result(
            began_s,
            data_s=received["seconds"],
            received_bytes=received["packets"] * self.flow.packet_bytes,
            report={"receiver": received, "sender": sent},
        )


def _await_end(process: Process) -> None:
    """Give a receiver time to read what is still on its way."""
    deadline_s = time.monotonic() + _DRAIN_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.02)
