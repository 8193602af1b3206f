"""File work that blocks, done beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(
    work: Callable[[], _Result], undo: Callable[[_Result], object] | None = None
) -> _Result:
    """Run blocking `work` in a thread to its end, even if the task is cancelled meanwhile.

    undo: what to do with the result then, so that nothing stays open.
    """
    job = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await asyncio.wait({job})
        if undo is not None and job.exception() is None:
            undo(job.result())
        raise
