"""The network between xftp and xftpd: a relay that counts what goes by, and can fail.

It listens at an address of its own on the ports that the daemon listens on at another. Where the
daemon opens the data connections, address and ports in MPRT and EPRT are replaced on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from .damage import Damage
from .silence import deafen, undeafen

_BUFFER_BYTES = 64 * 1024
_OWN_PORTS = re.compile(rb"^(MPRT IP4\|TCP\||EPRT \|1\|)([\d.]+)\|([\d,]+)(\|?)\r?$", re.IGNORECASE)


@dataclass(eq=False)
class Line:
    """One connection that is relayed: accepted on one side, dialled on the other."""

    near: socket.socket
    far: socket.socket
    is_data: bool
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it still passes anything on."""
        return not self.is_cut and self.near.fileno() >= 0

    def silence(self) -> None:
        """Fall silent: nothing is heard, acknowledged or passed on."""
        self.flows.clear()
        deafen(self.near)
        deafen(self.far)

    def resume(self) -> None:
        """Go on."""
        undeafen(self.near)
        undeafen(self.far)
        self.flows.set()

    def reset(self) -> None:
        """Reset both connections; what is on its way is lost."""
        for end in (self.near, self.far):
            if end.fileno() >= 0:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    async def end(self, sink: socket.socket) -> None:
        """Pass an end on, once nothing keeps it back."""
        await self.flows.wait()
        if not self.is_cut:
            sink.shutdown(socket.SHUT_WR)

    async def fail(self) -> None:
        """Pass a reset on, once nothing keeps it back."""
        await self.flows.wait()
        self.reset()

    def close(self) -> None:
        """End both connections politely, whatever was to come."""
        loop = asyncio.get_running_loop()
        self.is_cut = True
        for end in (self.near, self.far):
            if end.fileno() >= 0:
                loop.remove_reader(end.fileno())
                loop.remove_writer(end.fileno())
                end.close()


@dataclass(frozen=True)
class Route:
    """Where the relay is, and what is behind it."""

    daemon_host: str
    daemon_port: int
    own_host: str
    client_host: str
    passive_ports: range


class Moment:
    """Calls `happen` once, when so many bytes of the file's direction have gone by.

    happen: given the connection over which they went; rate: bytes per second until then.
    """

    def __init__(
        self,
        at_bytes: int,
        happen: Callable[[Line], Awaitable[None]],
        rate_bytes_per_s: float | None = None,
    ) -> None:
        self.at_bytes = at_bytes
        self.rate_bytes_per_s = rate_bytes_per_s
        self.has_come = False
        self.happened = asyncio.Event()
        """Set once `happen` has returned."""
        self.moved_bytes = 0
        """Bytes of the file's direction that have gone by."""
        self._happen = happen
        self._free_at_s = 0.0

    def pieces(self, data: bytes) -> Iterable[bytes]:
        """Divide what came at the byte of the moment."""
        left = self.at_bytes - self.moved_bytes
        if self.has_come or not 0 < left < len(data):
            return (data,)
        return data[:left], data[left:]

    async def take_time(self, count: int) -> None:
        """Wait as long as `count` bytes take."""
        if self.rate_bytes_per_s is None or self.has_come:
            return
        now = asyncio.get_running_loop().time()
        self._free_at_s = max(now, self._free_at_s) + count / self.rate_bytes_per_s
        await asyncio.sleep(self._free_at_s - now)

    async def moved(self, line: Line, count: int) -> None:
        """Note that so many bytes went by over a connection."""
        self.moved_bytes += count
        if self.moved_bytes >= self.at_bytes and not self.has_come:
            self.has_come = True
            await self._happen(line)
            self.happened.set()


class Relay:
    """Passes connections on, between one client and one daemon.

    direction: down or up; damage: to the records; backwards: to what goes against them.
    """

    def __init__(
        self,
        route: Route,
        direction: str,
        moment: Moment,
        damage: Damage | None = None,
        backwards: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.moment = moment
        self.lines: list[Line] = []
        self.port = 0
        """Where the control connection is accepted."""
        self._route = route
        self._direction = direction
        self._damage = damage
        self._backwards = backwards
        self._listeners: dict[int, tuple[socket.socket, bool]] = {}
        self._own_ports: dict[bytes, bytes] = {}
        """Where the relay listens for what the daemon dials, by the client's port."""
        self._tasks: set[asyncio.Future[None]] = set()
        self._errors: list[BaseException] = []

    async def start(self) -> None:
        """Listen. Raises OSError."""
        self.port = self._listen(0, self._route.daemon_port, is_data=False)
        for port in self._route.passive_ports:
            self._listen(port, port, is_data=True)

    async def close(self) -> None:
        """Reset everything. Raises what went wrong in what happened."""
        for listener, _ in self._listeners.values():
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for line in self.lines:
            line.reset()
        for error in self._errors:
            raise error

    def open_lines(self, *, is_data: bool) -> list[Line]:
        """Give the connections that are there."""
        return [line for line in self.lines if line.is_open and line.is_data == is_data]

    def silence(self, *, control: bool) -> None:
        """Let all data connections fall silent, and what is dialled; control: that one too."""
        for listener, is_data in self._listeners.values():
            if is_data or control:
                deafen(listener)
        for line in self.lines:
            if line.is_data or control:
                line.silence()

    def hear(self) -> None:
        """Take new connections again; those that fell silent stay so."""
        for listener, _ in self._listeners.values():
            undeafen(listener)

    def resume(self) -> None:
        """Let everything go on."""
        self.hear()
        for line in self.lines:
            line.resume()

    # -- connections ---------------------------------------------------------------------------

    def _listen(self, port: int, target: int, *, is_data: bool, is_active: bool = False) -> int:
        listener = socket.create_server((self._route.own_host, port), backlog=64)
        listener.setblocking(False)
        own: int = listener.getsockname()[1]
        self._listeners[own] = listener, is_data
        host = self._route.client_host if is_active else self._route.daemon_host
        asyncio.get_running_loop().add_reader(
            listener, self._accept, listener, (host, target), is_data, is_active
        )
        return own

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    def _accept(
        self, listener: socket.socket, target: tuple[str, int], is_data: bool, is_active: bool
    ) -> None:
        try:
            near, _ = listener.accept()
        except OSError:
            return  # it has gone again
        line = Line(near, socket.socket(), is_data)
        line.flows.set()
        for sock in (line.near, line.far):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines.append(line)
        self._run(self._connect(line, target, is_active))

    async def _connect(self, line: Line, target: tuple[str, int], is_active: bool) -> None:
        try:
            line.far.bind((self._route.own_host, 0))
            await asyncio.get_running_loop().sock_connect(line.far, target)
        except OSError:
            line.reset()
            return
        await self._relay(line, is_active)
        line.close()

    async def _relay(self, line: Line, is_active: bool) -> None:
        if not line.is_data:
            await asyncio.gather(
                self._pump(line, line.near, line.far, self.upwards),
                self._pump(line, line.far, line.near, bytes),
            )
            return
        file_comes_from_near = (self._direction == "up") != is_active
        source, sink = line.near, line.far
        if not file_comes_from_near:
            source, sink = sink, source
        await self.moment.moved(line, 0)
        await asyncio.gather(
            self._pump_file(line, source, sink),
            self._pump(line, sink, source, self._backwards),
        )

    # -- bytes ---------------------------------------------------------------------------------

    async def _pump(
        self,
        line: Line,
        source: socket.socket,
        sink: socket.socket,
        change: Callable[[bytes], bytes],
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await _received(line, source):
                await line.flows.wait()
                await loop.sock_sendall(sink, change(data))
            await line.end(sink)
        except OSError:
            await line.fail()

    async def _pump_file(self, line: Line, source: socket.socket, sink: socket.socket) -> None:
        stream = self._damage.stream() if self._damage else None
        loop = asyncio.get_running_loop()
        try:
            while data := await _received(line, source):
                for piece in self.moment.pieces(data):
                    await self.moment.take_time(len(piece))
                    await line.flows.wait()
                    await loop.sock_sendall(sink, stream.feed(piece) if stream else piece)
                    if stream and stream.is_cut:
                        line.close()
                        return
                    await self.moment.moved(line, len(piece))
                    if line.is_cut:
                        return
            if stream and not line.is_cut:
                await loop.sock_sendall(sink, stream.end())
            await line.end(sink)
        except OSError:
            await line.fail()

    def upwards(self, data: bytes) -> bytes:
        """Replace the client's own address; commands come in whole lines, being few and short."""
        lines = data.split(b"\n")
        return b"\n".join(self._command(line) for line in lines)

    def _command(self, line: bytes) -> bytes:
        match = _OWN_PORTS.match(line)
        if not match:
            return line
        word, _, ports, end = match.groups()
        own_ports = b",".join(self._own_port(port) for port in ports.split(b","))
        return word + self._route.own_host.encode() + b"|" + own_ports + end + b"\r"

    def _own_port(self, port: bytes) -> bytes:
        # Any free one: the client's own number may be taken here, by a connection to the daemon.
        if port not in self._own_ports:
            own = self._listen(0, int(port), is_data=True, is_active=True)
            self._own_ports[port] = b"%d" % own
        return self._own_ports[port]


async def _received(line: Line, source: socket.socket) -> bytes:
    """Give what comes next; nothing at the end."""
    if line.is_cut:
        return b""
    return await asyncio.get_running_loop().sock_recv(source, _BUFFER_BYTES)


@contextlib.asynccontextmanager
async def relaying(relay: Relay) -> AsyncIterator[Relay]:
    """Run a relay."""
    await relay.start()
    try:
        yield relay
    finally:
        await relay.close()
