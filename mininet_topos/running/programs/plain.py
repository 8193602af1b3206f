"""Flows by our own small programs: plain TCP, the blocking stripes of 1996, HTTP-like load."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any, ClassVar

from ...errors import ExperimentError
from ...experiments.flows import AnyFlow, BlockingStripes, Bulk, Crowd, Datagrams, WebLoad
from ...experiments.outcome import FlowOutcome
from ..hosts import Process, module
from .base import Program

_DRAIN_TIMEOUT_S = 5.0


class _Pair(Program):
    """Two ends of one of the modules of `inside`: the one that listens and the one that calls."""

    module_name: ClassVar[str]
    listens: ClassVar[str]
    calls: ClassVar[str]
    listener_is_receiver: ClassVar[bool] = True
    listener: Process

    def told(self) -> dict[str, Any]:
        """Give what both ends are told besides address, port and socket settings."""
        raise NotImplementedError

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


class BulkProgram(_Pair):
    """One connection of plain TCP."""

    kind: ClassVar[str] = "Bulk"
    module_name = "bulk"
    listens, calls = "receive", "send"
    flow: Bulk

    def told(self) -> dict[str, Any]:
        """Give size or duration, and window."""
        names = ("size_bytes", "duration_s", "window_bytes")
        return {name: getattr(self.flow, name) for name in names}

    def finish(self, began_s: float) -> FlowOutcome:
        """Take the receiver's count."""
        received, sent = self._reports()
        _check_all(self.flow, self.flow.size_bytes, received["bytes"])
        return self.result(
            began_s,
            data_s=received["seconds"],
            received_bytes=received["bytes"],
            report={"receiver": received, "sender": sent},
        )


class CrowdProgram(_Pair):
    """Independent transfers at once."""

    kind: ClassVar[str] = "Crowd"
    module_name = "crowd"
    listens, calls = "receive", "send"
    flow: Crowd

    def told(self) -> dict[str, Any]:
        """Give the transfers' number, size and window."""
        names = ("size_bytes", "transfers", "window_bytes")
        return {name: getattr(self.flow, name) for name in names}

    def finish(self, began_s: float) -> FlowOutcome:
        """Count each transfer from the sender's connection to the receiver's last byte."""
        received, sent = self._reports()
        _check_all(self.flow, self.flow.size_bytes * self.flow.transfers, received["bytes"])
        begins, ends = sent["established_s"], received["arrived_s"]
        each_s = [ends[port] - begins[port] for port in begins if port in ends]
        return self.result(
            began_s,
            data_s=max(ends.values()) - min(begins.values()) if each_s else 0.0,
            received_bytes=received["bytes"],
            report={"transfers_s": each_s},
        )


class BlockingProgram(_Pair):
    """XFTP of 1996."""

    kind: ClassVar[str] = "BlockingStripes"
    module_name = "stripes"
    listens, calls = "receive", "send"
    flow: BlockingStripes

    def told(self) -> dict[str, Any]:
        """Give size, connections and chunk."""
        names = ("size_bytes", "connections", "chunk_bytes")
        return {name: getattr(self.flow, name) for name in names}

    def finish(self, began_s: float) -> FlowOutcome:
        """Take the receiver's count."""
        received, sent = self._reports()
        _check_all(self.flow, self.flow.size_bytes, received["bytes"])
        return self.result(
            began_s,
            data_s=received["seconds"],
            received_bytes=received["bytes"],
            report={"receiver": received, "sender": sent},
        )


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
    listens, calls = "receive", "send"
    flow: Datagrams

    def told(self) -> dict[str, Any]:
        """Give number, size and pace."""
        names = ("packets", "packet_bytes", "packets_per_s", "echo")
        return {name: getattr(self.flow, name) for name in names}

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


def _check_all(flow: AnyFlow, size_bytes: int | None, received: int) -> None:
    if size_bytes is not None and not flow.background and received != size_bytes:
        raise ExperimentError(f"{flow.name}: {received:,} of {size_bytes:,} bytes arrived")
