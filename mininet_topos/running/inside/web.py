"""HTTP-like background load: web.py serve|browse '{"address": …, "port": …, "load_bps": …, …}'.

The browser opens connections at Poisson times and asks each for a number of bytes, Pareto with
shape 1.2 (Crovella and Bestavros, Self-Similarity in World Wide Web Traffic, 1997, section 4),
cut at 1 MB; the server sends them and closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from .common import report, say, tuned_socket

SHAPE = 1.2
LARGEST_BYTES = 1_000_000


def scale_for_mean(mean_bytes: float) -> float:
    """Give the smallest response whose distribution, cut at LARGEST_BYTES, has this mean.

    The cut mean grows with it, so halving an interval finds it.
    """
    low, high = 1.0, float(LARGEST_BYTES)
    for _ in range(60):
        middle = (low + high) / 2
        if cut_mean(middle) < mean_bytes:
            low = middle
        else:
            high = middle
    return low


def cut_mean(smallest: float) -> float:
    """Give the mean of min(Pareto(smallest, SHAPE), LARGEST_BYTES): the integral of P(X > x)."""
    tail = math.pow(smallest / LARGEST_BYTES, SHAPE - 1)
    return smallest + smallest / (SHAPE - 1) * (1 - tail)


async def serve(told: Mapping[str, Any]) -> dict[str, float]:
    """Answer requests until SIGTERM."""
    totals = {"bytes": 0.0, "responses": 0.0}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):  # a browser that left, or asked nonsense
            wanted = int(await reader.readline())
            writer.write(bytes(wanted))
            await writer.drain()
            totals["bytes"] += wanted
            totals["responses"] += 1
        writer.close()

    listener = tuned_socket(told)
    listener.bind((told["address"], told["port"]))
    server = await asyncio.start_server(answer, sock=listener, backlog=256)
    ended = _ended()
    say("ready")
    async with server:
        await ended.wait()
    return totals


async def browse(told: Mapping[str, Any]) -> dict[str, float]:
    """Ask at Poisson times until the duration is over or SIGTERM comes."""
    dice = random.Random(told["seed"])
    smallest = scale_for_mean(told["mean_response_bytes"])
    requests_per_s = told["load_bps"] / 8 / told["mean_response_bytes"]
    totals = {"bytes": 0.0, "responses": 0.0, "failed": 0.0, "latency_sum_s": 0.0}
    ended, began_s = _ended(), time.monotonic()
    running: set[asyncio.Task[None]] = set()
    say("ready")
    next_s = began_s
    while not ended.is_set():
        next_s += dice.expovariate(requests_per_s)
        if told.get("duration_s") and next_s > began_s + told["duration_s"]:
            break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), max(0.0, next_s - time.monotonic()))
            break
        wanted = min(LARGEST_BYTES, round(smallest * dice.paretovariate(SHAPE)))
        task = asyncio.create_task(_request(told, wanted, totals))
        running.add(task)
        task.add_done_callback(running.discard)
    if running and not ended.is_set():
        await asyncio.wait(running, timeout=30)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return {**totals, "seconds": time.monotonic() - began_s}


async def _request(told: Mapping[str, Any], wanted: int, totals: dict[str, float]) -> None:
    began_s = time.monotonic()
    try:
        reader, writer = await asyncio.open_connection(told["address"], told["port"])
        try:
            writer.write(b"%d\n" % wanted)
            while data := await reader.read(1 << 16):
                totals["bytes"] += len(data)
        finally:
            writer.close()
    except OSError:
        totals["failed"] += 1
        return
    totals["responses"] += 1
    totals["latency_sum_s"] += time.monotonic() - began_s


def _ended() -> asyncio.Event:
    event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, event.set)
    return event


def main() -> int:
    """Run one end."""
    told = json.loads(sys.argv[2])
    report(asyncio.run(serve(told) if sys.argv[1] == "serve" else browse(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
