"""XFTP as users run it: `xftpd` at one end, `xftp get` or `xftp put` at the other."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path
from typing import Any, ClassVar

from ...errors import ExperimentError
from ...experiments.flows import Sockets, Xftp
from ...experiments.outcome import FlowOutcome
from ..hosts import find
from .base import Place, Program, write_random


class XftpProgram(Program):
    """Files by the real programs; what arrives is compared with what was sent."""

    kind: ClassVar[str] = "Xftp"
    flow: Xftp

    def __init__(self, flow: Xftp, place: Place, slot: int) -> None:
        super().__init__(flow, place, slot)
        self.sources = self.scratch / "sent"
        self.targets = self.scratch / "arrived"
        self.gets = flow.direction == "get"

    @property
    def control_port(self) -> int:
        """The one above the data port, where xftp looks for that."""
        return super().data_ports[1]

    @property
    def data_ports(self) -> tuple[int, int]:
        first, last = super().data_ports
        return first, last - 1

    def prepare(self) -> None:
        """Write the files and start the daemon where it has to run."""
        self.sources.mkdir()
        self.targets.mkdir()
        for number, name in enumerate(self._names()):
            write_random(self.sources / name, self.flow.size_bytes, self.place.seed + number)
        host, root = (self.sender, self.sources) if self.gets else (self.receiver, self.targets)
        first, data_port = self.data_ports
        command = [find("xftpd"), "--root", str(root), "--host", host.ip]
        command += ["--port", str(self.control_port), "--data-port", str(data_port)]
        command += ["--passive-ports", f"{first}-{data_port - 1}"]
        command += ["--anonymous", "--writable", "-n", str(max(8, self.flow.connections))]
        command += ["--idle-timeout", "3600"]
        daemon = self.start(host, command, "xftpd")
        daemon.wait_until(lambda line: line.startswith("listening on "))

    def begin(self) -> None:
        """Start the client."""
        url = f"ftp://{(self.sender if self.gets else self.receiver).ip}:{self.control_port}/"
        command = [find("xftp"), "mirror" if self.flow.mirror else self.flow.direction]
        command += ["--json"] if self.flow.report else []
        command += ["-n", str(self.flow.connections or "auto")]
        command += ["--assume-xftpd"] if self.flow.known else []
        command += _options(self.flow.sockets, strict=self.flow.strict)
        if self.flow.mirror:
            command += [url, str(self.targets)] if self.gets else [str(self.sources), url]
        elif self.gets:
            command += ["-o", f"{self.targets}/", *(url + name for name in self._names())]
        else:
            command += [*(str(self.sources / name) for name in self._names()), url]
        self.client = self.start(self.receiver if self.gets else self.sender, command, "xftp")

    def finish(self, began_s: float) -> FlowOutcome:
        """Compare the files, read the reports."""
        client = self.started_client()
        if client.poll() is None:
            raise ExperimentError(f"{self.flow.name}: xftp was not done")
        client.check()
        for name in self._names():
            if not _same(self.sources / name, self.targets / name):
                raise ExperimentError(f"{self.flow.name}: {name} did not arrive as it was sent")
        notices = client.errors.read_text(errors="replace").strip()
        if not self.flow.report:
            return self.result(
                began_s,
                data_s=client.seconds,
                received_bytes=self.flow.files * self.flow.size_bytes,
                report={"notices": notices},
            )
        reports = [json.loads(line) for line in client.said().splitlines()]
        self._check_connections(reports, notices)
        report: dict[str, Any] = {"files": reports, "notices": notices}
        return self.result(
            began_s,
            data_s=sum(each["seconds"] / each["files"] for each in reports),
            received_bytes=sum(each["bytes"] for each in reports),
            report=report if len(reports) <= _MOST_REPORTS else {"notices": notices},
        )

    def _check_connections(self, reports: list[dict[str, Any]], notices: str) -> None:
        """Raise ExperimentError if a file came over fewer connections than the row is about."""
        made = len(reports[0]["connections"])
        if self.flow.files == 1 and made < self.flow.connections:
            raise ExperimentError(
                f"{self.flow.name}: {made} of {self.flow.connections} connections were made: "
                f"{notices or 'xftp does not say why'}"
            )

    def _names(self) -> list[str]:
        return [f"file{number}" for number in range(self.flow.files)]


_MOST_REPORTS = 10
"""Reports of more files than that are not kept."""


def _options(sockets: Sockets, *, strict: bool) -> list[str]:
    """Give the settings as xftp's options; strict: what is not granted is an error of the run.

    Raises ExperimentError for settings that xftp has no option for.
    """
    if sockets.parameters:
        raise ExperimentError("xftp takes no parameters of algorithms: use a Bulk flow")
    options: list[str] = []
    for option, value in (
        ("--profile", sockets.profile),
        ("--rate", f"{sockets.rate_bps / 1e3:g}kbit" if sockets.rate_bps else None),
        ("--cc", sockets.congestion),
        ("--initial-window", sockets.initial_window_segments),
        ("--sndbuf", sockets.send_buffer_bytes),
        ("--rcvbuf", sockets.receive_buffer_bytes),
    ):
        if value:
            options += [option, str(value)]
    strict = strict and bool(options) and not sockets.profile
    return [*options, "--strict-tuning"] if strict else options


def _same(sent: Path, arrived: Path) -> bool:
    return arrived.exists() and filecmp.cmp(sent, arrived, shallow=False)
