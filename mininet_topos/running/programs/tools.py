"""The tools of today, each with its own server."""

from __future__ import annotations

import filecmp
import os
import time
from pathlib import Path
from typing import ClassVar

from ...errors import ExperimentError, LeftOutError, MissingToolError
from ...experiments.flows import Tool
from ...experiments.outcome import FlowOutcome
from ..hosts import READY_TIMEOUT_S, Process, find, module
from .base import Place, Program, write_random

_VSFTPD = {
    "listen": "YES",
    "background": "NO",
    "anonymous_enable": "YES",
    "no_anon_password": "YES",
    "anon_world_readable_only": "NO",
    "local_enable": "NO",
    "seccomp_sandbox": "NO",
    "use_sendfile": "YES",
    "xferlog_enable": "NO",
    "pasv_enable": "YES",
}

_LFTP_SETTINGS = """
set cmd:fail-exit yes
set xfer:clobber yes
set net:max-retries 2
set net:timeout 60
set ftp:use-mdtm no
set dns:order inet
"""


def installed(program: str, package: str) -> str:
    """Give a program's path. Raises LeftOutError: without it the others can still be measured."""
    try:
        return find(program, f"apt-get install {package}")
    except MissingToolError as error:
        raise LeftOutError(str(error)) from error


class ToolProgram(Program):
    """A download by somebody else's client and server; what arrives is compared."""

    kind: ClassVar[str] = "Tool"
    flow: Tool

    def __init__(self, flow: Tool, place: Place, slot: int) -> None:
        super().__init__(flow, place, slot)
        self.sources = self.scratch / "sent"
        self.targets = self.scratch / "arrived"

    def prepare(self) -> None:
        """Write the files, which the server may give to everybody, and start it."""
        for directory in (self.place.scratch, self.scratch, self.sources, self.targets):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o755)
        self.targets.chmod(0o777)
        for number in range(self.flow.files):
            path = self.sources / f"file{number}"
            write_random(path, self.flow.size_bytes, self.place.seed + number).chmod(0o644)
        self.serve()

    def serve(self) -> None:
        """Start vsftpd; others override it."""
        first, last = self.data_ports
        settings = {
            **_VSFTPD,
            "listen_address": self.sender.ip,
            "listen_port": str(self.control_port),
            "pasv_min_port": str(first),
            "pasv_max_port": str(last),
            "anon_root": str(self.sources),
            "secure_chroot_dir": str(self._empty()),
        }
        config = self.scratch / "vsftpd.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        server = self.start(self.sender, [installed("vsftpd", "vsftpd"), str(config)], "vsftpd")
        self.await_greeting(server)

    def _empty(self) -> Path:
        empty = self.scratch / "empty"
        empty.mkdir(exist_ok=True)
        return empty

    def await_greeting(self, server: Process) -> None:
        """Wait until the server answers on its own host. Raises ExperimentError."""
        probe = Process(
            self.sender,
            module("knock", self.sender.ip, str(self.control_port), str(READY_TIMEOUT_S)),
            self.scratch,
            "knock",
        )
        try:
            while probe.poll() is None:
                server.check()
                time.sleep(0.02)
            probe.check()
        finally:
            probe.stop()

    @property
    def url(self) -> str:
        """Give the server's root."""
        return f"ftp://{self.sender.ip}:{self.control_port}/"

    def command(self) -> list[str]:
        """Give the client's command."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the client."""
        self.client = self.start(self.receiver, self.command(), self.flow.program)

    def finish(self, began_s: float) -> FlowOutcome:
        """Compare the files. The tools do not tell their data phase: it is the whole."""
        client = self.started_client()
        if client.poll() is None:
            raise ExperimentError(f"{self.flow.name}: {self.flow.program} was not done")
        client.check()
        for number in range(self.flow.files):
            sent, arrived = (where / f"file{number}" for where in (self.sources, self.targets))
            if not arrived.exists() or not filecmp.cmp(sent, arrived, shallow=False):
                raise ExperimentError(f"{self.flow.name}: {sent.name} did not arrive as sent")
        return self.result(
            began_s,
            data_s=client.seconds,
            received_bytes=self.flow.files * self.flow.size_bytes,
        )


class Curl(ToolProgram):
    """curl, anonymous."""

    def command(self) -> list[str]:
        """Give one transfer after the other on one control connection."""
        names = [f"file{number}" for number in range(self.flow.files)]
        command = [installed("curl", "curl"), "--silent", "--show-error", "--ipv4"]
        for name in names:
            command += ["-o", str(self.targets / name), self.url + name]
        return command


class Lftp(ToolProgram):
    """lftp: parts of one file, or several files at once."""

    def command(self) -> list[str]:
        """Give a script: pget for one file, mirror for many."""
        count = self.flow.connections
        if self.flow.program == "lftp-pget":
            work = f"pget -n {count} file0 -o {self.targets}/file0"
        else:
            work = f"mirror --parallel={count} --no-perms . {self.targets}"
        script = self.scratch / "script"
        script.write_text(f"{_LFTP_SETTINGS}\nopen {self.url}\n{work}\n")
        return [installed("lftp", "lftp"), "--norc", "-f", str(script)]


class Aria2(ToolProgram):
    """aria2, which cuts a file into ranges."""

    def command(self) -> list[str]:
        """Give as many connections to the server as parts."""
        count = str(self.flow.connections)
        command = [installed("aria2c", "aria2"), "--no-conf", "--quiet=true"]
        command += ["-x", count, "-s", count, "--min-split-size=1M", "--file-allocation=none"]
        return [*command, "-d", str(self.targets), "-o", "file0", self.url + "file0"]


class GridFtp(ToolProgram):
    """globus-url-copy -p, and for many files -pp -cc."""

    def serve(self) -> None:
        """Start the GridFTP server, open to anybody; the lab lets the hosts' names resolve."""
        first, last = self.data_ports
        command = [
            installed("globus-gridftp-server", "globus-gridftp-server-progs"),
            "-no-detach",
            "-c",
            os.devnull,
        ]
        command += ["-p", str(self.control_port), "-control-interface", self.sender.ip]
        command += ["-data-interface", self.sender.ip, "-port-range", f"{first},{last}"]
        command += ["-allow-anonymous", "-anonymous-user", "nobody", "-allow-disabled-login"]
        command += ["-restrict-paths", str(self.scratch)]
        server = self.start(self.sender, command, "gridftp")
        self.await_greeting(server)

    def command(self) -> list[str]:
        """Give the client with its streams."""
        program = installed("globus-url-copy", "globus-gass-copy-progs")
        first, last = self.data_ports
        # With several streams the side that sends dials, and the client listens.
        ports = ["env", f"GLOBUS_TCP_PORT_RANGE={first},{last}"]
        root = f"{self.url}{self.sources}"
        count = str(self.flow.connections)
        if self.flow.program == "gridftp":
            work = ["-p", count, f"{root}/file0", f"file://{self.targets}/file0"]
        else:
            work = ["-pp", "-cc", count, "-r", f"{root}/", f"file://{self.targets}/"]
        return [*ports, program, "-fast", *work]


def tool_program(flow: Tool, place: Place, slot: int) -> ToolProgram:
    """Give the program of a tool."""
    kinds: dict[str, type[ToolProgram]] = {
        "curl": Curl,
        "lftp-pget": Lftp,
        "lftp-mirror": Lftp,
        "aria2": Aria2,
        "gridftp": GridFtp,
        "gridftp-files": GridFtp,
    }
    return kinds[flow.program](flow, place, slot)
