"""A TCP proxy between the two ends of data connections that breaks them as a network does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from xftp.protocol.addresses import Endpoint

from .support import HOST, reset

_BUFFER_BYTES = 32 * 1024


@dataclass
class Pair:
    """One connection through the proxy."""

    number: int
    ends: tuple[socket.socket, socket.socket]
    moved: int = 0
    """Bytes that went through, both ways."""
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    """Clear: nothing is passed on, and nothing is closed."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def freeze(self) -> None:
        """Fall silent."""
        self.flowing.clear()

    def thaw(self) -> None:
        """Go on."""
        self.flowing.set()

    def reset(self) -> None:
        """Reset both connections; what is in the buffers is lost, though it was acknowledged."""
        loop = asyncio.get_running_loop()
        for task in self.tasks:
            task.cancel()
        for end in self.ends:
            if end.fileno() >= 0:
                loop.remove_reader(end.fileno())
                loop.remove_writer(end.fileno())
                reset(end)


class Proxy:
    """Passes connections on to `target`.

    on_moved: called with a pair each time something went through it.
    """

    def __init__(self, target: Endpoint, on_moved: Callable[[Pair], None]) -> None:
        self.pairs: list[Pair] = []
        self.is_down = False
        """Whether new connections fall silent from the start."""
        self.on_moved = on_moved
        self._target = target
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._listener.bind((HOST, 0))
        self._listener.listen(64)
        self._listener.setblocking(False)
        self.endpoint = Endpoint(HOST, self._listener.getsockname()[1])
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                near, _ = await loop.sock_accept(self._listener)
                near.setblocking(False)
                task = asyncio.create_task(self._connect(near))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            self._listener.close()
            for task in self._tasks:
                task.cancel()
            for pair in self.pairs:
                pair.reset()

    async def _connect(self, near: socket.socket) -> None:
        far = socket.socket()
        far.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            far.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        pair = Pair(len(self.pairs), (near, far))
        self.pairs.append(pair)
        if not self.is_down:
            pair.thaw()
        try:
            await pair.flowing.wait()
            await asyncio.get_running_loop().sock_connect(
                far, (self._target.host, self._target.port)
            )
        except OSError:
            pair.reset()
            return
        pair.tasks = [
            asyncio.create_task(self._pass_on(pair, near, far)),
            asyncio.create_task(self._pass_on(pair, far, near)),
        ]

    async def _pass_on(self, pair: Pair, source: socket.socket, to: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(source, _BUFFER_BYTES):
                await pair.flowing.wait()
                await loop.sock_sendall(to, data)
                pair.moved += len(data)
                self.on_moved(pair)
            await pair.flowing.wait()
            to.shutdown(socket.SHUT_WR)
        except OSError:
            await pair.flowing.wait()
            pair.reset()


@contextlib.asynccontextmanager
async def proxied(target: Endpoint, on_moved: Callable[[Pair], None]) -> AsyncIterator[Proxy]:
    """Run a proxy in front of `target`."""
    proxy = Proxy(target, on_moved)
    running = asyncio.create_task(proxy.run())
    try:
        yield proxy
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
