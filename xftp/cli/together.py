"""Several files of one command, moved together where the server can (docs/protocol.md, Series).

What does not fit into that is left to be moved one by one: where it is known what to say or to ask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from xftp.client.options import Direction
from xftp.client.series import MOST_FILES, Pair
from xftp.client.session import Session
from xftp.errors import XftpError
from xftp.transport.files import working_names
from xftp.transport.report import TransferReport

from .screen import Screen
from .settings import Settings

Job = TypeVar("Job")


def may_be_written(path: Path, settings: Settings) -> bool:
    """Tell whether a file here may be written without a question, and from its beginning."""
    if path.is_symlink() or not path.parent.is_dir():
        return False
    if settings.existing == "overwrite":
        return path.is_file() or not path.exists()
    part = path.with_name(working_names(path.name)[0])
    return settings.existing != "resume" and not path.exists() and not part.exists()


async def move_together(
    session: Session,
    direction: Direction,
    jobs: Sequence[tuple[Job, Pair]],
    tell: Callable[[Job, TransferReport], None],
    settings: Settings,
    screen: Screen,
) -> list[Job]:
    """Move files as series; give those that are there, of each of which `tell` was told.

    Its report has the bytes of the file, and the time and the connections of the whole series.
    """
    done: list[Job] = []
    for at in range(0, len(jobs), MOST_FILES):
        part = jobs[at : at + MOST_FILES]
        completed: list[int] = []
        report = TransferReport(bytes=0, seconds=0.0, framed=True)
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
            screen.detail(f"{error}; going on one by one")
            return done
        finally:
            for job, pair in (part[index] for index in completed):
                done.append(job)
                tell(job, replace(report, bytes=_size(pair.here), files=len(part)))
    return done


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
