"""What is running and what is left, on a terminal; a line per run elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from ..experiments.outcome import Outcome
from .runner import Job, Watcher

_REFRESH_PER_S = 2
"""Few: drawing takes time from the emulators."""


class Display(Watcher):
    """A context manager that shows the runs of a plan of so many jobs."""

    def __init__(self, console: Console, jobs: int, expected_s: float) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=_REFRESH_PER_S,
            transient=True,
            disable=not console.is_terminal,
        )
        about = f"about {describe_time(expected_s)}"
        self._all = self._progress.add_task(f"{jobs} runs, {about}", total=jobs)
        self._running: dict[Job, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, job: Job) -> None:
        """Show a line for it with the time it takes."""
        self._running[job] = self._progress.add_task(
            f"  {job.title} (~{describe_time(job.seconds)})", total=1
        )

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Remove its line, print what became of it."""
        self._drop(job)
        self._progress.advance(self._all)
        note = "done"
        if outcome.error:
            note = outcome.error if outcome.left_out else f"failed: {outcome.error}"
        elif not outcome.kept_up:
            note = "late: not judged"
        self._print(f"{job.title}: {note} ({outcome.seconds:.0f} s)")

    def again(self, job: Job, why: str) -> None:
        """Say that it was disturbed."""
        self._drop(job)
        self._print(f"{job.title}: disturbed ({why}), will be run again alone")

    def wrote(self, path: Path) -> None:
        """Say where the results are."""
        self._print(f"wrote {path}")

    def _drop(self, job: Job) -> None:
        task = self._running.pop(job, None)
        if task is not None:
            self._progress.remove_task(task)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def describe_time(seconds: float) -> str:
    """Give a time for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
