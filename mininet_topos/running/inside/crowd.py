"""Independent transfers that start at once: crowd.py receive|send '{"address": …, "port": …, …}'.

The sender opens `transfers` connections in the same round trip and sends `size_bytes` on each. It
reports when each was established, and the receiver when the last byte of each had arrived, by the
sender's port and the monotonic clock, which all hosts of a machine share.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from .common import report, say, tuned_socket

_BLOCK_BYTES = 1 << 16


async def receive(told: Mapping[str, Any], found: dict[str, Any]) -> None:
    """Take all connections, each to its end."""
    loop = asyncio.get_running_loop()
    arrived: dict[str, float] = found.setdefault("arrived_s", {})

    async def read(connection: socket.socket, port: int) -> None:
        buffer = bytearray(_BLOCK_BYTES)
        with connection:
            while count := await loop.sock_recv_into(connection, buffer):
                if str(port) not in arrived and told.get("window_bytes"):
                    clamp_window(connection, told["window_bytes"])
                found["bytes"] += count
                arrived[str(port)] = time.monotonic()

    with tuned_socket(told) as listener:
        listener.setblocking(False)
        listener.bind((told["address"], told["port"]))
        listener.listen(told["transfers"])
        say("ready")
        async with asyncio.TaskGroup() as group:
            for _ in range(told["transfers"]):
                connection, address = await loop.sock_accept(listener)
                connection.setblocking(False)
                group.create_task(read(connection, address[1]))


def clamp_window(connection: socket.socket, window_bytes: int) -> None:
    """Offer no larger window from now on. Raises OSError.

    A clamp, and a route's window too, is gone once the kernel has measured the first segment above
    536 bytes (tcp_measure_rcv_mss of net/ipv4/tcp_input.c), so this is for after that.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window_bytes)


async def send(told: Mapping[str, Any], found: dict[str, Any]) -> None:
    """Connect all at once, and send on each as it can."""
    loop = asyncio.get_running_loop()
    established: dict[str, float] = found.setdefault("established_s", {})
    payload = bytes(told["size_bytes"])

    async def write(connection: socket.socket) -> None:
        await loop.sock_connect(connection, (told["address"], told["port"]))
        established[str(connection.getsockname()[1])] = time.monotonic()
        await loop.sock_sendall(connection, payload)
        found["bytes"] += len(payload)
        connection.shutdown(socket.SHUT_WR)
        await loop.sock_recv(connection, 1)  # the receiver closes once it has everything

    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(tuned_socket(told)) for _ in range(told["transfers"])]
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                connection.setblocking(False)
                group.create_task(write(connection))


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end or to SIGTERM: what was found until then is told."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main() -> int:
    """Run one end."""
    told, found = json.loads(sys.argv[2]), {"bytes": 0}
    asyncio.run(until_ended((receive if sys.argv[1] == "receive" else send)(told, found)))
    report(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
