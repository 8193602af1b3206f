"""Several files of one command, moved together where the server can (docs/protocol.md, Series).

What does not fit into that is left to be moved one by one: where it is known what to say or to ask.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xftp.client.options import Direction
from xftp.client.session import Session
from xftp.errors import XftpError
from xftp.transport.kept import working_names
from xftp.transport.report import TransferReport

from .outcome import Outcome
from .screen import Screen
from .settings import Settings

if TYPE_CHECKING:
    from xftp.client.series import Pair

Job = TypeVar("Job")


def may_be_written(path: Path, settings: Settings) -> bool:
    """Tell whether a file here may be written without a question, and from its beginning."""
    if os.path.islink(path) or not os.path.isdir(path.parent):
        return False
    is_there = os.path.exists(path)
    if settings.existing == "overwrite":
        return not is_there or os.path.isfile(path)
    part = path.with_name(working_names(path.name)[0])
    return settings.existing != "resume" and not is_there and not os.path.exists(part)


async def move_together(
    session: Session,
    direction: Direction,
    jobs: Sequence[tuple[Job, Pair]],
    outcome: Outcome,
    named: Callable[[Job], tuple[str, str]],
    settings: Settings,
    screen: Screen,
) -> list[Job]:
    """Move files as series, and note each that is there; give those.

    named: the name of a job for the person, and where it is on the server. Time and rate in the
    reports are those of the series; the connections are told with its first file only.
    """
    from xftp.client.series import MOST_FILES

    done: list[Job] = []
    for at in range(0, len(jobs), MOST_FILES):
        part = jobs[at : at + MOST_FILES]
        completed: list[int] = []
        report = TransferReport(bytes=0, seconds=0.0, framed=True)
        problem: XftpError | None = None
        try:
            with screen.watch(f"{len(part)} files") as progress:
                result = await session.move_series(
                    direction,
                    [pair for _, pair in part],
                    preserve_times=settings.preserve_times,
                    progress=progress,
                    completed=completed.append,
                )
            if result is None:
                return done
            report = result.report or report
        except XftpError as error:
            problem = error
        finally:
            moved = [(named(part[index][0]), _size(part[index][1].here)) for index in completed]
            _note(outcome, moved, report)
            done += [part[index][0] for index in completed]
        if problem is not None:
            screen.detail(f"{problem}; going on one by one")
            return done
    return done


def _note(
    outcome: Outcome, moved: Sequence[tuple[tuple[str, str], int]], report: TransferReport
) -> None:
    """Note files that moved together as `report` tells."""
    if not moved:
        return
    whole = replace(report, files=len(moved), together_bytes=sum(size for _, size in moved))
    for index, ((name, url), size) in enumerate(moved):
        each = replace(whole, bytes=size)
        outcome.note(name, url, each if index == 0 else replace(each, connections=()))
    outcome.sum_up(replace(whole, bytes=whole.together_bytes or 0))


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
