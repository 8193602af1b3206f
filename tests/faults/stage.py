"""Everything that one run has, for what happens to it and for those who judge it."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from .damage import Damage
from .programs import Places, Program, Programs
from .relay import Relay, Route
from .scenario import Scenario
from .victim import Harm

NAME = "file"
PASSIVE_PORTS = 24
_FIRST_PORT, _LAST_PORT = 10_000, 30_000
"""Below the ephemeral ports, which others on this machine use (ip(7), ip_local_port_range)."""


@dataclass(eq=False)
class Stage:
    """One run."""

    scenario: Scenario
    places: Places
    programs: Programs
    route: Route
    chance: random.Random
    versions: list[bytes] = field(default_factory=list)
    """What the source held, from the first to the last: whoever succeeds has one of them whole."""
    relay: Relay | None = None
    daemon: Program | None = None
    client: Program | None = None
    damage: Damage | None = None
    idle_descriptors: list[str] = field(default_factory=list)
    """The daemon's open files before it had a client."""
    backgrounds: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def source(self) -> Path:
        """The file that is moved."""
        side = self.places.served if self.scenario.direction == "down" else self.places.home
        return side / NAME

    @property
    def target_directory(self) -> Path:
        """Where it goes; the daemon's mount of it, if that is its own."""
        if self.scenario.direction == "down":
            return self.places.home
        if self.scenario.kind.needs_root and self.daemon is not None and self.daemon.is_running:
            return Path(f"/proc/{self.daemon.pid.result()}/root{self.places.served}")
        return self.places.served

    def targets(self) -> list[str]:
        """Tell what is there."""
        return sorted(os.listdir(self.target_directory))

    def target(self) -> bytes | None:
        """Give what has the file's name; None if nothing has."""
        try:
            return (self.target_directory / NAME).read_bytes()
        except FileNotFoundError:
            return None

    def later(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside the run."""
        task = asyncio.create_task(work)
        self.backgrounds.add(task)
        task.add_done_callback(self.backgrounds.discard)

    # -- harm to the programs --------------------------------------------------------------------

    @property
    def happened(self) -> Path:
        """There once a program has met its harm."""
        return self.places.top / "happened"

    @property
    def healed(self) -> Path:
        """There once the harm is over."""
        return self.places.top / "healed"

    def harm(self, side: str) -> Harm | None:
        """Tell what is done to the program of one side, client or daemon."""
        word, _, detail = self.scenario.fault.partition("-")
        receives = (side == "client") == (self.scenario.direction == "down")
        marks = str(self.happened), str(self.healed)
        after = int(self.scenario.moment * self.scenario.size)
        match word:
            case "write" if receives:
                return Harm(*marks, ("pwritev", "pwrite"), detail, after, ".xftp.part")
            case "read" if not receives:
                return Harm(*marks, ("preadv", "pread", "sendfile"), detail, after, f"/{NAME}")
            case "journal" if receives:
                return Harm(*marks, ("open",), detail, 0, ".xftp.journal~")
            case "sync" if receives:
                return Harm(*marks, ("fdatasync", "fsync"), detail, 0, ".xftp.part")
            case "rename" if receives:
                return Harm(*marks, ("rename", "replace"), detail, 0, ".xftp.part")
            case "clock" if side == detail:
                step_s = self.chance.choice((-(10**8), -3600.0, -2.0, 2.0, 3600.0, 10**8))
                return Harm(*marks, clock_s=step_s)
            case "full" if side == "daemon":
                room = max(4096, after)
                at = str(self.places.served)
                return Harm(*marks, small_disk=at, small_disk_bytes=room)
        return None


def find_route(host_bits: int) -> Route:
    """Find addresses and ports that nobody else uses: each process has its own loopback addresses.

    host_bits: a number of the process; the daemon's address and the relay's follow from it.
    """
    own = f"127.{64 + (host_bits >> 7) % 128}.{host_bits % 128}"
    daemon_host, own_host = f"{own}.1", f"{own}.2"
    for first in range(_FIRST_PORT, _LAST_PORT, PASSIVE_PORTS):
        ports = range(first, first + PASSIVE_PORTS)
        if all(_is_free(host, port) for host in (daemon_host, own_host) for port in ports):
            return Route(daemon_host, 0, own_host, "127.0.0.1", ports)
    raise OSError(errno.EADDRINUSE, "no free ports for the data connections")


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
