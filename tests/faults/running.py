"""One run: the programs start, the fault comes, and the same command is given again."""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from xftp.protocol.records import wire_bytes

from .damage import flipped
from .happening import damage_of, happening
from .judging import (
    Ended,
    judge_daemon,
    judge_first,
    judge_saving,
    judge_second,
    judge_words,
    survives,
    wait_until_quiet,
)
from .programs import BUSY_S, Places, Programs
from .relay import Line, Moment, Relay, relaying
from .scenario import Scenario
from .stage import NAME, Stage, find_route
from .tls import tls_options

CLIENT_S = 300.0
"""For a client to end, on a busy machine too; its own time-outs are of one or two minutes."""

_SLOW_S = (6.0, 8.0)
_WHEN = 1_600_000_000
"""The time of the original: not that of a copy."""

_QUICK = ["--stall-timeout", "6", "--idle-timeout", "15", "--data-timeout", "10"]
"""So that the daemon gives up soon what is lost for good."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    scenario: Scenario
    problems: Sequence[str]
    """What should not be; empty if all is well."""
    happened: bool
    """Whether the fault came at all: a moment may be too late for what moves."""
    seconds: float
    statuses: Sequence[int | None]
    """Exit statuses of the client, of the first run and of the second if there was one."""
    kept_in: Path | None = None
    """Where files and logs are, if they were to be kept."""


async def run(scenario: Scenario, *, keep: bool = False) -> Outcome:
    """Run a scenario from its beginning to its end.

    keep: leave the directory of a run that has problems.
    """
    started_s = time.monotonic()
    top = Path(tempfile.mkdtemp(prefix="xftp-fault-"))
    kept = False
    try:
        act = await _play(scenario, top)
        kept = keep and bool(act.problems)
        seconds = time.monotonic() - started_s
        kept_in = top if kept else None
        return Outcome(scenario, act.problems, act.happened, seconds, act.statuses, kept_in)
    finally:
        if not kept:
            shutil.rmtree(top)


async def _play(scenario: Scenario, top: Path) -> _Act:
    places = Places(top)
    places.make()
    route = find_route(os.getpid())
    programs = Programs(places, route.daemon_host)
    stage = Stage(scenario, places, programs, route, scenario.chance())
    act = _Act(stage)
    try:
        await programs.begin()
        await act.play()
    finally:
        for task in stage.backgrounds:
            task.cancel()
        await programs.end()
    return act


class _Act:
    """The course of a run."""

    def __init__(self, stage: Stage) -> None:
        self.problems: list[str] = []
        self.happened = False
        self.statuses: list[int | None] = []
        self._stage = stage
        self._daemon_options: list[str] = []
        self._client_options: list[str] = []
        self._port = 0

    async def play(self) -> None:
        """Run everything."""
        stage, scenario = self._stage, self._stage.scenario
        self._choose_options()
        content = stage.chance.randbytes(scenario.size)
        stage.versions.append(content)
        stage.source.write_bytes(content)
        os.utime(stage.source, (_WHEN, _WHEN))
        await self._start_daemon(first=True)
        async with self._relay() as relay:
            await self._first(relay)
            self._heal(relay)
            await self._revive_daemon()
            self.problems += await wait_until_quiet(stage)
            if self.statuses[0] != 0:
                await self._second(relay)
                self.problems += await wait_until_quiet(stage)
            await self._stop_daemon()
        for program in stage.programs.running:
            self.problems += judge_words(program)

    def _choose_options(self) -> None:
        scenario, ports = self._stage.scenario, self._stage.route.passive_ports
        options = ["--passive-ports", f"{ports[0]}-{ports[-1]}"]
        if not survives(scenario):  # the daemon has its usual patience then
            options += _QUICK
        if scenario.fault.startswith("sync"):
            options += ["--fsync"]
        self._daemon_options = options
        if scenario.tls:
            daemon, client = tls_options(self._stage.places.top, self._stage.route.own_host)
            self._daemon_options += daemon
            self._client_options += client

    async def _start_daemon(self, *, first: bool) -> None:
        stage = self._stage
        harm = stage.harm("daemon") if first else None
        stage.daemon = await stage.programs.daemon(self._port, self._daemon_options, harm)
        self._port = int(stage.daemon.first_line.rpartition(":")[2])
        stage.idle_descriptors = stage.daemon.descriptors()

    @asynccontextmanager
    async def _relay(self) -> AsyncIterator[Relay]:
        stage, scenario = self._stage, self._stage.scenario
        what, happened = happening(scenario), False

        async def happen(line: Line) -> None:
            result = what(stage, line)
            if inspect.isawaitable(result):
                await result

        def backwards(data: bytes) -> bytes:
            nonlocal happened
            if scenario.fault != "flip-backwards" or not moment.has_come or happened:
                return data
            happened = True
            return flipped(data, stage.chance.randrange(len(data)), stage.chance.randrange(8))

        size = file_bytes(scenario)
        at = round(scenario.moment * size)
        rate = at / stage.chance.uniform(*_SLOW_S) if scenario.slow and at else None
        moment = Moment(at, happen, rate)
        stage.damage = damage_of(stage)
        route = replace(stage.route, daemon_port=self._port)
        stage.relay = Relay(route, scenario.direction, moment, stage.damage, backwards)
        async with relaying(stage.relay) as relay:
            yield relay

    def _command(self, *more: str) -> list[str]:
        scenario = self._stage.scenario
        assert self._stage.relay is not None
        scheme = "ftpes" if scenario.tls else "ftp"
        url = f"{scheme}://{self._stage.route.own_host}:{self._stage.relay.port}/{NAME}"
        command = ["get" if scenario.direction == "down" else "put"]
        command += ["-n", str(scenario.connections), "--retries", str(scenario.retries)]
        command += ["--passive" if scenario.passive else "--active"]
        command += [] if scenario.verify else ["--no-verify"]
        command += [*self._client_options, *more]
        return [*command, url] if scenario.direction == "down" else [*command, NAME, url]

    async def _first(self, relay: Relay) -> None:
        stage = self._stage
        client = await stage.programs.client(self._command(), stage.harm("client"))
        stage.client = client
        status = await client.ended(CLIENT_S)
        if status is None:
            self.problems.append("the client does not end")
            client.send_signal(signal.SIGKILL)
            await client.ended(BUSY_S)
        self.statuses.append(status)
        self.happened = self._has_happened(relay)
        ended = Ended(status, client.words(), client.is_killed, self.happened)
        self.problems += judge_first(stage, ended)

    def _has_happened(self, relay: Relay) -> bool:
        stage = self._stage
        if stage.scenario.kind.needs_root:
            return self.statuses[-1] != 0
        if stage.harm("client") or stage.harm("daemon"):
            return stage.happened.exists()
        if stage.damage is not None:
            return stage.damage.done > 0
        return relay.moment.has_come

    def _heal(self, relay: Relay) -> None:
        """End the fault; connections that fell silent for good stay so."""
        stage = self._stage
        relay.moment.has_come = True
        relay.hear()
        if stage.damage is not None:
            stage.damage.left = 0
        stage.healed.touch()
        if not stage.source.exists():
            stage.source.write_bytes(stage.versions[-1])
        if stage.scenario.kind.needs_root and stage.daemon is not None:
            mount = ["mount", "-o", "remount,size=64m", str(stage.places.served)]
            inside = ["nsenter", f"--mount=/proc/{stage.daemon.pid.result()}/ns/mnt"]
            subprocess.run([*inside, *mount], check=True)

    async def _revive_daemon(self) -> None:
        """Start the daemon anew if it was to end, else see that it has not."""
        daemon = self._stage.daemon
        assert daemon is not None
        if daemon.is_killed:
            status = await daemon.ended(BUSY_S)
            if self._stage.scenario.fault == "terminate-daemon" and status != 0:
                self.problems.append(f"the daemon ended with {status} after SIGTERM")
            await self._start_daemon(first=False)
        elif not daemon.is_running:
            self.problems.append(f"the daemon ended with {daemon.status.result()}")
            await self._start_daemon(first=False)

    async def _second(self, relay: Relay) -> None:
        stage = self._stage
        there = stage.target()
        more = []
        if there is not None:
            more = ["--resume"] if there == stage.versions[-1] else ["--overwrite"]
        before = relay.moment.moved_bytes
        client = await stage.programs.client(self._command(*more))
        status = await client.ended(CLIENT_S)
        self.statuses.append(status)
        self.problems += judge_second(stage, Ended(status, client.words(), False, True))
        if there is None:
            moved = relay.moment.moved_bytes - before
            self.problems += judge_saving(stage, relay.moment.at_bytes, moved)

    async def _stop_daemon(self) -> None:
        daemon = self._stage.daemon
        assert daemon is not None
        self.problems += judge_daemon(self._stage)
        daemon.send_signal(signal.SIGTERM)
        status = await daemon.ended(BUSY_S)
        if status != 0:
            self.problems.append(f"the daemon ended with {status} after SIGTERM")


def file_bytes(scenario: Scenario) -> int:
    """Tell how many bytes the file is on the wire, without those of TLS."""
    return scenario.size if scenario.connections == 1 else wire_bytes(scenario.size)
