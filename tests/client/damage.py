"""A way through which data is damaged: a proxy in front of a server, that flips bits.

It listens at 127.0.0.2; for the port that a reply names it puts one of its own, which leads there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

HERE = "127.0.0.2"
SERVER = "127.0.0.1"
MARK = b"<-- a bit of this is flipped -->"
FLIPPED = bytes([MARK[0] ^ 0x10]) + MARK[1:]

_PORT = re.compile(rb"^229 .*?\|(\d+)[|,)]", re.MULTILINE)


class Damage:
    """Flips a bit in the next `times` marks that pass on data connections."""

    def __init__(self) -> None:
        self.times = 0
        self.flipped = 0
        self.data_bytes = 0

    def of(self, data: bytes) -> bytes:
        self.data_bytes += len(data)
        while self.flipped < self.times and (at := data.find(MARK)) >= 0:
            data = data[:at] + FLIPPED + data[at + len(MARK) :]
            self.flipped += 1
        return data


class Proxy:
    """The proxy of one server."""

    def __init__(self, server_port: int) -> None:
        self.damage = Damage()
        self.port = 0
        self._server_port = server_port
        self._listeners: list[asyncio.Server] = []
        self._data_ports: dict[bytes, bytes] = {}
        """Its own ports for data, by those of the server."""
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        listener = await asyncio.start_server(self._control, HERE, 0)
        self.port = listener.sockets[0].getsockname()[1]
        self._listeners.append(listener)

    async def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for writer in self._writers:
            writer.transport.abort()
        for listener in self._listeners:
            await listener.wait_closed()

    async def _control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above = await asyncio.open_connection(SERVER, self._server_port)
        await self._between(reader, writer, *above, is_data=False)

    async def _with_own_ports(self, data: bytes) -> bytes:
        """Replace the ports in replies. Any free one: the server's number may be taken here."""
        for port in set(_PORT.findall(data)):
            if port not in self._data_ports:
                self._data_ports[port] = b"%d" % await self._open_data(int(port))
            data = re.sub(rb"(?<=[|,])%b(?=[|,)])" % port, self._data_ports[port], data)
        return data

    async def _open_data(self, port: int) -> int:
        """Listen for data connections that lead to a port of the server; give the own one."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                above = await asyncio.open_connection(SERVER, port)
            except OSError:
                writer.transport.abort()
                return
            await self._between(reader, writer, *above, is_data=True)

        listener = await asyncio.start_server(connected, HERE, 0)
        self._listeners.append(listener)
        own: int = listener.sockets[0].getsockname()[1]
        return own

    async def _between(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upper_reader: asyncio.StreamReader,
        upper_writer: asyncio.StreamWriter,
        *,
        is_data: bool,
    ) -> None:
        self._writers |= {writer, upper_writer}
        await asyncio.gather(
            self._pump(reader, upper_writer, is_data, is_up=True),
            self._pump(upper_reader, writer, is_data, is_up=False),
        )
        for each in (writer, upper_writer):
            each.close()
            self._writers.discard(each)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_data: bool,
        is_up: bool,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if is_data:
                    data = self.damage.of(data)
                elif not is_up:
                    data = await self._with_own_ports(data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()


@asynccontextmanager
async def damaging(server_port: int) -> AsyncIterator[Proxy]:
    """Run a proxy in front of the server at `server_port` of 127.0.0.1."""
    proxy = Proxy(server_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
