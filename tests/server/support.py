"""What the server's tests share: data connections, and records cut by hand.

Nothing of `xftp.protocol` is used here, so that a mistake of ours cannot cancel itself out.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from tests.support import RawClient

HOST = "127.0.0.1"
CHUNK = 8192
WAIT_S = 20.0
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait for a condition; a TimeoutError is the failure."""
    async with asyncio.timeout(WAIT_S):
        while True:
            result = condition()
            if result if isinstance(result, bool) else await result:
                return
            await asyncio.sleep(0.005)


# -- records, Allman 1997 B.4 --------------------------------------------------------------------


def pattern(size: int) -> bytes:
    """Give bytes that differ from record to record and within each."""
    numbers = struct.pack(f"<{size // 4 + 1}I", *range(1, 4 * (size // 4 + 1), 4))
    return numbers[:size]


def record(number: int, data: bytes) -> bytes:
    """Frame one record."""
    return struct.pack(">I", number) + data


def records(data: bytes) -> list[bytes]:
    """Cut and frame a file."""
    return [
        record(number, data[at : at + CHUNK])
        for number, at in enumerate(range(0, len(data), CHUNK))
    ]


def dealt(data: bytes, count: int) -> list[bytes]:
    """Give what each of `count` connections is to carry, records dealt out in turn."""
    framed = records(data)
    return [b"".join(framed[start::count]) for start in range(count)]


def assembled(streams: Iterable[bytes], size: int) -> bytes:
    """Put a file of `size` bytes together; every stream holds whole records, none twice."""
    pieces: dict[int, bytes] = {}
    for stream in streams:
        while stream:
            (number,) = struct.unpack(">I", stream[:4])
            length = min(CHUNK, size - number * CHUNK)
            assert length > 0, f"record {number} of {size} bytes"
            assert number not in pieces, f"record {number} came twice"
            pieces[number] = stream[4 : 4 + length]
            assert len(pieces[number]) == length, f"record {number} is cut"
            stream = stream[4 + length :]
    return b"".join(pieces[number] for number in sorted(pieces))


# -- data connections ----------------------------------------------------------------------------


opened: list[Data] = []
"""Every data connection of the running test; a fixture closes what is left."""


class Data:
    """One data connection, our end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        opened.append(self)

    async def read(self) -> bytes:
        """Read to the end. Raises ConnectionResetError for a reset."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.read()

    async def send(self, data: bytes) -> None:
        """Send; a server that no longer listens is no error here, its reply tells."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def close(self) -> None:
        """Close politely."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def finish(self, data: bytes = b"") -> None:
        """Send and close."""
        await self.send(data)
        await self.close()

    async def reset(self) -> None:
        """Close with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.writer.transport.abort()
        await self.close()


async def dial(port: int, host: str = HOST, source: str | None = None) -> Data:
    """Connect to a data port, from the address `source` if given."""
    local = None if source is None else (source, 0)
    return Data(*await asyncio.open_connection(host, port, local_addr=local))


def extended_port(text: str) -> int:
    """Find the port in a reply to EPSV."""
    found = re.search(r"\(\|\|\|(\d+)\|\)", text)
    assert found, text
    return int(found[1])


def multiple_ports(text: str) -> tuple[str, list[int]]:
    """Find net-prot with host, and the ports, in a reply to MPSV."""
    found = re.search(r"\((IP[46])\|TCP\|([0-9a-f.:]+)\|([0-9,]+)\)", text)
    assert found, text
    return f"{found[1]} {found[2]}", [int(port) for port in found[3].split(",")]


async def plain(client: RawClient) -> Data:
    """Open one unframed data connection."""
    reply = await client.command("EPSV")
    assert reply.code == 229
    return await dial(extended_port(reply.text))


async def multiple(client: RawClient, count: int, *, announced: bool = True) -> list[Data]:
    """Open `count` connections for records, all of them before the transfer begins."""
    if announced:
        assert (await client.command(f"OPTS MULT Connections={count};")).code == 200
    reply = await client.command("MPSV")
    assert reply.code == 229
    _, ports = multiple_ports(reply.text)
    return [await dial(port) for port in ports[:count]]


@contextlib.asynccontextmanager
async def listening(
    count: int = 1, host: str = HOST
) -> AsyncIterator[tuple[list[int], list[Data]]]:
    """Listen on `count` ports; gives them, and the list that connections are added to."""
    arrived: list[Data] = []
    servers = []
    for _ in range(count):
        server = await asyncio.start_server(
            lambda reader, writer: arrived.append(Data(reader, writer)), host, 0
        )
        servers.append(server)
    try:
        yield [server.sockets[0].getsockname()[1] for server in servers], arrived
    finally:
        for server in servers:
            server.close()
        for data in arrived:
            await data.close()


# -- whole transfers -----------------------------------------------------------------------------


async def codes(client: RawClient, count: int) -> list[int]:
    """Give the codes of the next replies."""
    return [(await client.reply()).code for _ in range(count)]


async def outcome(client: RawClient) -> list[int]:
    """Give the codes up to the first final reply."""
    found = [(await client.reply()).code]
    while found[-1] < 200:
        found.append((await client.reply()).code)
    return found


async def download(client: RawClient, command: str) -> tuple[list[int], bytes]:
    """Run a command that sends over one plain connection."""
    data = await plain(client)
    client.send(command)
    content = await data.read()
    await data.close()
    return await outcome(client), content


async def upload(client: RawClient, command: str, content: bytes) -> list[int]:
    """Run a command that receives over one plain connection."""
    data = await plain(client)
    client.send(command)
    await data.finish(content)
    return await outcome(client)


async def download_records(
    client: RawClient, command: str, count: int, *, active: bool = False
) -> tuple[list[int], list[bytes]]:
    """Run a RETR over `count` connections; give the reply codes and what each one carried."""
    if not active:
        connections = await multiple(client, count)
        client.send(command)
        streams = await asyncio.gather(*(data.read() for data in connections))
        for data in connections:
            await data.close()
        return await outcome(client), list(streams)
    async with listening(count) as (ports, arrived):
        listed = ",".join(map(str, ports))
        assert (await client.command(f"MPRT IP4|TCP|{HOST}|{listed}")).code == 200
        client.send(command)
        found = [(await client.reply()).code]
        streams = []
        if found[0] < 200:
            await until(lambda: bool(arrived))
            readers: list[asyncio.Task[bytes]] = []
            final = asyncio.create_task(client.reply())
            while not final.done():  # later connections may come until the end
                readers += [asyncio.create_task(each.read()) for each in arrived[len(readers) :]]
                await asyncio.wait([final], timeout=0.01)
            found.append(final.result().code)
            readers += [asyncio.create_task(each.read()) for each in arrived[len(readers) :]]
            streams = await asyncio.gather(*readers)
        return found, list(streams)


async def upload_records(
    client: RawClient,
    command: str,
    streams: Sequence[bytes],
    *,
    active: bool = False,
    announced: bool = True,
    size: int | None = None,
) -> list[int]:
    """Run a STOR that carries `streams`, each over one connection; size: for ALLO."""
    if size is not None:
        assert (await client.command(f"ALLO {size}")).code == 200
    if not active:
        connections = await multiple(client, len(streams), announced=announced)
        client.send(command)
        await asyncio.gather(*map(Data.finish, connections, streams))
        return await outcome(client)
    async with listening(len(streams)) as (ports, arrived):
        listed = ",".join(map(str, ports))
        assert (await client.command(f"MPRT IP4|TCP|{HOST}|{listed}")).code == 200
        client.send(command)
        first = await client.reply()
        if first.code >= 200:
            return [first.code]
        await until(lambda: len(arrived) == len(streams))
        await asyncio.gather(*map(Data.finish, arrived, streams))
        return [first.code, *await outcome(client)]


async def moved_bytes(client: RawClient) -> int:
    """Ask, while data moves, how much has."""
    reply = await client.command("STAT")
    assert reply.code == 211
    found = re.search(r"Moving data: (\d+) bytes", reply.text)
    return int(found[1]) if found else 0


async def has_moved(client: RawClient, size: int) -> None:
    """Wait until `size` bytes of the running transfer have moved."""

    async def enough() -> bool:
        return await moved_bytes(client) >= size

    await until(enough)


def names(root: Path) -> list[str]:
    """Give the names in a directory."""
    return sorted(path.name for path in root.iterdir())
