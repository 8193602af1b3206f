"""`xftp doctor`: what this machine can do, and the command that mends what it cannot."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click

from tuning import congestion
from tuning.congestion import CongestionError

from .checks import ANYWHERE, PRODUCT, Check, Need, State, all_loaded, fix_command
from .lab_checks import LAB
from .machine import Machine

FORMAT_VERSION = 1

_TITLES = {
    Need.TRANSFERS: "Transfers",
    Need.TUNING: "Tuning",
    Need.LAB: "The lab (experiments only; never changes the exit status)",
}
_COLOURS = {State.OK: "green", State.LIMITED: "yellow", State.MISSING: "red"}
_STATE_WIDTH = max(map(len, State))
_NAME_WIDTH = 18
_MIN_FOLD = 20


@dataclass(frozen=True, slots=True)
class Fix:
    """What --fix came to."""

    loaded: tuple[str, ...] = ()
    """Algorithms that are new in the kernel."""

    error: str | None = None
    """Why it could not be done."""

    command: str | None = None
    """What to type instead, or to undo it."""

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        if self.error is not None:
            return f"nothing was loaded: {self.error}"
        if self.loaded:
            return f"loaded {', '.join(self.loaded)}; nothing else was changed. To undo it:"
        return "nothing to load: all algorithms are in the kernel"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks of a machine."""

    checks: tuple[Check, ...]
    fix: Fix | None = None
    """None: it was not asked for."""

    is_strict: bool = False
    """Whether what is limited, or missing for tuning only, is an exit status too."""

    @property
    def missing(self) -> tuple[Check, ...]:
        """What the product needs and this machine lacks."""
        return tuple(
            each
            for each in self.checks
            if each.state is State.MISSING and each.need is not Need.LAB
        )

    @property
    def exit_status(self) -> int:
        """0 if transfers have all that they need; if strict, only if nothing can be mended."""
        failed = self.fix is not None and self.fix.error is not None
        counted = [each for each in self.checks if self._counts(each)]
        return 1 if counted or failed else 0

    def _counts(self, check: Check) -> bool:
        """Tell whether a check is an exit status."""
        if check.need is Need.LAB or check.state is State.OK:
            return False
        if self.is_strict:
            return True
        return check.need is Need.TRANSFERS and check.state is State.MISSING

    def as_json(self) -> dict[str, Any]:
        """Give the checks as plain values."""
        return {
            "version": FORMAT_VERSION,
            "exit_status": self.exit_status,
            "missing": [each.name for each in self.missing],
            "checks": [asdict(each) for each in self.checks],
            "fix": None if self.fix is None else asdict(self.fix),
        }


def diagnose(machine: Machine, fix: Fix | None = None, *, is_strict: bool = False) -> Diagnosis:
    """Look at a machine; nothing of it is changed."""
    checkers = (*PRODUCT, *LAB) if machine.platform == "linux" else ANYWHERE
    return Diagnosis(tuple(checker(machine) for checker in checkers), fix, is_strict)


def load_algorithms(machine: Machine) -> Fix:
    """Load our congestion control, as root; nothing else is changed."""
    if not machine.is_root:
        if all_loaded(machine):
            return Fix()
        return Fix(error="that takes root", command=fix_command(machine))
    try:
        loaded = congestion.load()
    except CongestionError as error:
        return Fix(error=str(error))
    undo = f"{shlex.quote(sys.executable)} -m tuning unload" if loaded else None
    return Fix(loaded=loaded, command=undo)


def diagnosis_lines(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    """Write a line per check, longer texts folded at `width` columns; commands never are."""
    for need, title in _TITLES.items():
        checks = [each for each in diagnosis.checks if each.need is need]
        if checks:
            yield click.style(title, bold=True)
            for check in checks:
                yield from _check_lines(check, width)
            yield ""
    if any("sysctl -w" in (each.command or "") for each in diagnosis.checks):
        yield from _folded(
            "sysctl -w lasts until the next boot; a file in /etc/sysctl.d stays.", width
        )
    if diagnosis.fix is not None:
        yield from _folded(f"--fix: {diagnosis.fix.sentence}", width)
        if diagnosis.fix.command is not None:
            yield f"  $ {diagnosis.fix.command}"
    yield from _folded(_verdict(diagnosis), width)


def _check_lines(check: Check, width: int) -> Iterator[str]:
    state = click.style(f"{check.state:{_STATE_WIDTH}}", fg=_COLOURS[check.state])
    indent = " " * (_STATE_WIDTH + _NAME_WIDTH + 6)
    first, *rest = _folded(check.found, width - len(indent))
    yield f"  {state}  {check.name:{_NAME_WIDTH}}  {first}"
    yield from (f"{indent}{line}" for line in rest)
    if check.command is not None:
        yield f"  {'':{_STATE_WIDTH}}  $ {check.command}"


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _MIN_FOLD), break_long_words=False) or [""]


def _verdict(diagnosis: Diagnosis) -> str:
    missing = {
        need: ", ".join(each.name for each in diagnosis.missing if each.need is need)
        for need in (Need.TRANSFERS, Need.TUNING)
    }
    if missing[Need.TRANSFERS]:
        return f"Missing: {', '.join(filter(None, missing.values()))}."
    if missing[Need.TUNING]:
        return f"Files can be transferred. Missing for tuning: {missing[Need.TUNING]}."
    limited = any(
        each.state is State.LIMITED and each.need is not Need.LAB for each in diagnosis.checks
    )
    return f"Everything of xftp can be used here{', within the limits above' if limited else ''}."
