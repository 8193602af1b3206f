"""Work that blocks, done beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
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


async def in_own_thread(work: Callable[[], _Result]) -> _Result:
    """Run `work` in a thread that nobody waits for, should the task be cancelled.

    A name server that does not answer keeps a lookup for half a minute, and with the threads of the
    event loop the end of the program too.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def take(result: _Result | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        outcome: tuple[_Result | None, Exception | None]
        try:
            outcome = work(), None
        except Exception as error:  # whoever awaits it gets it
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(take, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await done
