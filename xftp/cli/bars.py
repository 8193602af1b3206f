"""Progress bars on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from .text import rate_text, size_text

REFRESH_PER_S = 8
NAME_WIDTH = 28
SPEED_PERIOD_S = 5.0
"""The rate shown is that of the last seconds."""


class _Amount(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show what has moved, of how much."""
        total = "" if task.total is None else f" of {size_text(task.total)}"
        return Text(f"{size_text(task.completed)}{total}", justify="right")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show the rate of the last seconds."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else rate_text(speed), justify="right")


class _TimeLeft(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show the time left, or that it is unknown."""
        left_s = task.time_remaining
        if task.total is None or left_s is None:
            return Text("")
        minutes, seconds = divmod(round(left_s), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return Text(f"{clock} left")


class _Drawing(Progress):
    """A rich Progress that fetches the figures just before it draws them."""

    def __init__(self, source: Bars, console: Console) -> None:
        self._source = source
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            _Amount(),
            _Rate(),
            _TimeLeft(),
            console=console,
            refresh_per_second=REFRESH_PER_S,
            speed_estimate_period=SPEED_PERIOD_S,
            transient=True,
            expand=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Draw the present state."""
        self._source.refresh()
        return super().get_renderables()


class Bars:
    """Watches one transfer for a person; implements `xftp.client.progress.Progress`.

    name: shown before the bar; per_connection: a line for every data connection too.
    """

    def __init__(self, name: str, *, per_connection: bool) -> None:
        self._name = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}…"
        self._per_connection = per_connection
        self._console = Console(stderr=True, highlight=False)
        self._drawing: _Drawing | None = None
        self._offset = 0
        self._moved: Counter[int] = Counter()
        self._whole: TaskID | None = None
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> Bars:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def say(self, line: str) -> None:
        """Write a line above the bars."""
        self._console.print(Text(line), soft_wrap=True)

    def started(self, total_bytes: int | None, offset: int) -> None:
        """Begin to draw; after a retry begin anew."""
        self._stop()
        self._moved.clear()
        self._tasks.clear()
        self._offset = offset
        drawing = _Drawing(self, self._console)
        self._whole = drawing.add_task(self._name, total=total_bytes, completed=offset)
        self._drawing = drawing
        drawing.start()

    def moved(self, connection: int, size: int) -> None:
        """Count; the drawing thread reads it a few times a second."""
        if self._per_connection and connection not in self._moved and self._drawing is not None:
            task = self._drawing.add_task(f"  connection {connection}", total=None)
            self._tasks[connection] = task
        self._moved[connection] += size

    def refresh(self) -> None:
        """Hand the counted bytes to the drawing."""
        drawing = self._drawing
        if drawing is None or self._whole is None:
            return
        drawing.update(self._whole, completed=self._offset + sum(self._moved.copy().values()))
        for number, task in list(self._tasks.items()):
            drawing.update(task, completed=self._moved[number])

    def _stop(self) -> None:
        if self._drawing is not None:
            drawing, self._drawing = self._drawing, None
            drawing.stop()
