"""Ends transfers whose peer takes or gives just enough not to be called stalled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from xftp.errors import TransferAborted
from xftp.transport.ratelimit import RateLimit

LEAST_BYTES = 4096
"""What a transfer has to move in each stall time-out: about 70 bytes/s of 60 s. The slowest lines
that files are sent over today, narrow-band satellite telephones with 2400 bit/s, move four times
as much."""


@asynccontextmanager
async def quick_enough(
    moved: Callable[[], int | None], window_s: float, limit: RateLimit | None
) -> AsyncIterator[None]:
    """End what runs within if it moves too little in any `window_s` seconds.

    moved: tells the bytes that have arrived so far, on either side; None before the first
    connection is there. limit: our own limit on the rate, which is no fault of the peer's.
    Raises TransferAborted.
    """
    least = LEAST_BYTES if limit is None else min(LEAST_BYTES, limit.batch_bytes)
    loop = asyncio.get_running_loop()
    before = moved()
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal before, timer
        now = moved()
        if before is not None and now is not None and now - before < least:
            patience.reschedule(loop.time())
            return
        before = now
        timer = loop.call_later(window_s, look)

    try:
        async with asyncio.timeout(None) as patience:
            timer = loop.call_later(window_s, look)
            try:
                yield
            finally:
                timer.cancel()
    except TimeoutError as error:
        raise TransferAborted(f"less than {least} bytes moved in {window_s:g} s") from error
