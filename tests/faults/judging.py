"""What has to hold after each run, whatever happened in it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .programs import Program
from .scenario import Scenario
from .stage import NAME, Stage

QUIET_S = 90.0
"""For the daemon to be rid of a session that ended, or fell silent (running.py has its times)."""

_LEFTOVERS = {f"{NAME}.xftp.part", f"{NAME}.xftp.journal"}
"""What a cut transfer may leave until the next one is complete (docs/protocol.md)."""

_TRACES = re.compile(
    "Traceback|ResourceWarning|was never (retrieved|awaited)|was destroyed|Exception ignored"
    "|Exception in callback"
)
_SHOWN = 600
"""Characters of a log that are shown with a problem."""

_REFUSED = frozenset({1, 3, 4})
"""Exit statuses of a transfer that failed; 2 is for mistakes of the user."""

_SURVIVED = frozenset(
    {"suspend-client", "suspend-daemon", "clock-client", "clock-daemon", "outage-all", "outage-30s"}
)
_SURVIVED_BY_SEVERAL = frozenset(
    {"reset-one", "reset-all", "silent-one", "truncate-one", "truncate-all", "outage-data"}
)


_KEEPS = frozenset({"kill-client", "kill-daemon", "control-reset", "control-closed"})
"""Faults of which what moved before is good."""

_KEPT, _SLACK_BYTES = 0.5, 100_000
"""What part of it the journal has at least; what is moved beside it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a client ended."""

    status: int | None
    said: str
    was_killed: bool
    happened: bool
    """Whether the fault came."""


def survives(scenario: Scenario) -> bool:
    """Tell whether the transfer has to go on (docs/protocol.md, Replace)."""
    if scenario.fault == "terminate-daemon":
        return scenario.moment * scenario.size > 0  # it runs already
    return scenario.fault in _SURVIVED or (
        scenario.fault in _SURVIVED_BY_SEVERAL and scenario.connections > 1
    )


def judge_first(stage: Stage, ended: Ended) -> list[str]:
    """Judge the run in which the fault came."""
    problems = []
    target, names = stage.target(), stage.targets()
    if ended.status == 0:
        if target is None:
            problems.append("success was reported, and there is no file")
        elif target not in stage.versions:
            problems.append(f"success was reported for wrong bytes: {_difference(stage, target)}")
        if names != [NAME]:
            problems.append(f"success was reported, and there is {names}")
        return problems
    temporary = {f"{NAME}.xftp.journal~"} if "kill" in stage.scenario.fault else set()
    if strange := set(names) - {NAME} - _LEFTOVERS - temporary:
        problems.append(f"a cut transfer left {sorted(strange)}")
    if target is not None and target not in stage.versions and not _is_told(stage, ended, target):
        problems.append(f"a wrong file has the name: {_difference(stage, target)}")
    if not ended.was_killed:
        problems += _judge_refusal(ended)
        if not ended.happened or survives(stage.scenario):
            problems.append(f"it should have gone on: {ended.said.strip()[-300:]}")
    return problems


def judge_second(stage: Stage, ended: Ended) -> list[str]:
    """Judge the next run of the same command, in which nothing happened."""
    problems = []
    target, names = stage.target(), stage.targets()
    if ended.status != 0:
        words = ended.said.strip()[-300:]
        problems.append(f"the next run ended with {ended.status}: {words}")
    if target != stage.versions[-1]:
        what = "no file" if target is None else f"wrong bytes: {_difference(stage, target)}"
        problems.append(f"the next run left {what}")
    if names != [NAME]:
        problems.append(f"the next run left {names}")
    return problems


def judge_saving(stage: Stage, before: int, moved: int) -> list[str]:
    """Judge what the next run moved again, in bytes on the wire.

    before: what had moved at the moment. The journal is brought up to date every 5 s, so what had
    moved when 6 to 8 s had gone by is there but for the last of it.
    """
    scenario = stage.scenario
    if not scenario.slow or scenario.fault not in _KEEPS:
        return []
    most = scenario.size - before * _KEPT + _SLACK_BYTES
    if moved <= most:
        return []
    return [f"the next run moved {moved} bytes again, {most:.0f} would do"]


def judge_daemon(stage: Stage) -> list[str]:
    """Judge what the daemon still holds when all clients are gone."""
    assert stage.daemon is not None
    before, after = Counter(stage.idle_descriptors), Counter(stage.daemon.descriptors())
    for each in before, after:
        del each["anon_inode"]  # the event loop's own, made when it first needs them
    if more := after - before:
        return [f"the daemon has files open that it had not: {dict(more)}"]
    return []


def judge_words(program: Program) -> list[str]:
    """Judge what a program said: an error is a sentence, not a stack."""
    words = program.words()
    if found := _TRACES.search(words):
        around = words[found.start() :][:_SHOWN]
        return [f"{program.said.name}: {around}"]
    return []


async def wait_until_quiet(stage: Stage) -> list[str]:
    """Wait until the daemon has no session, transfer, connection or listener left."""
    held: dict[str, int] = {}
    deadline_s = asyncio.get_running_loop().time() + QUIET_S
    while asyncio.get_running_loop().time() < deadline_s:
        now = stage.programs.status()["now"]
        held = {name: count for name, count in now.items() if count}
        if not held:
            return []
        await asyncio.sleep(0.02)
    return [f"the daemon still has {held}"]


def _judge_refusal(ended: Ended) -> list[str]:
    problems = []
    if ended.status is not None and ended.status not in _REFUSED:
        problems.append(f"the exit status is {ended.status}: {ended.said.strip()[-300:]}")
    if not re.search("^xftp: ", ended.said, re.MULTILINE):
        problems.append(f"no word of why it failed: {ended.said.strip()[-300:]!r}")
    return problems


def _is_told(stage: Stage, ended: Ended, target: bytes) -> bool:
    """Tell whether the client said that the name has something else, or somebody else put it."""
    is_upload = stage.scenario.direction == "up"
    return (is_upload and "wrong file is still on the server" in ended.said) or (
        stage.scenario.fault == "target-appears" and target == b"somebody else's"
    )


def _difference(stage: Stage, found: bytes) -> str:
    """Describe how bytes differ from what they should be."""
    right = stage.versions[-1]
    pairs = enumerate(zip(found, right, strict=False))
    first = next((at for at, (one, other) in pairs if one != other), min(len(found), len(right)))
    zeros = " (zeros)" if not any(found[first : first + 1024]) else ""
    digest = hashlib.sha256(found).hexdigest()[:8]
    return f"{len(found)} bytes for {len(right)}, the first wrong one {first}{zeros} [{digest}]"


def tail(path: Path, lines: int = 20) -> str:
    """Give the last lines of a log."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
