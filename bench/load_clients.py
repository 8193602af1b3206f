"""The clients of the load test: sessions that move files over several connections, and check them.

What they move is told from its place: the chunk of record `n` is the number `n`, 8 bytes long,
over and over, so that nothing wrong, missing or misplaced passes, and nothing is kept to compare.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from xftp.protocol.addresses import Endpoint, parse_mpsv_reply
from xftp.protocol.records import CHUNK_BYTES, HEADER_BYTES, RECORD_BYTES
from xftp.protocol.replies import Reply, ReplyParser

TIMEOUT_S = 120.0
"""How long anything may take: with everybody at once it takes its time."""

_NUMBER_BYTES = 8
_READ_BYTES = 1 << 18
_AT_ONCE = 32
"""Sessions that log in at the same time: no more than the kernel's queue of the listener holds."""


class LoadError(Exception):
    """A session did not get what it has a right to; the message says what it got instead."""


def chunk(number: int) -> bytes:
    """Give the content of record `number`."""
    return number.to_bytes(_NUMBER_BYTES, "big") * (CHUNK_BYTES // _NUMBER_BYTES)


def content(records: int) -> Iterator[bytes]:
    """Give the content of a whole file."""
    return (chunk(number) for number in range(records))


@dataclass(slots=True)
class Outcome:
    """What the transferring sessions did."""

    downloads: int = 0
    uploads: int = 0
    bytes_moved: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    """What went wrong, for each session that it went wrong for."""


class LoadSession:
    """One control connection, which expects every reply."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = ReplyParser()
        self._replies: list[Reply] = []
        self._host = writer.get_extra_info("peername")[0]

    @classmethod
    async def log_in(cls, host: str, port: int) -> LoadSession:
        """Open a session. Raises LoadError."""
        session = cls(*await asyncio.open_connection(host, port))
        await session.expect(220)
        for line, code in (("USER anonymous", 331), ("PASS load@", 230), ("TYPE I", 200)):
            await session.command(line, code)
        return session

    async def expect(self, code: int) -> Reply:
        """Take the next reply. Raises LoadError if it is not that one."""
        while not self._replies:
            data = await self._reader.read(4096)
            if not data:
                raise LoadError(f"the control connection ended where {code} was due")
            self._replies += self._parser.feed(data)
        reply = self._replies.pop(0)
        if reply.code != code:
            raise LoadError(f"{reply.code} {reply.text} came where {code} was due")
        return reply

    async def command(self, line: str, code: int) -> Reply:
        """Send a command; give its reply. Raises LoadError."""
        self._writer.write(f"{line}\r\n".encode())
        return await self.expect(code)

    async def download(self, name: str, records: int, connections: int) -> None:
        """Fetch a file of so many records over so many connections. Raises LoadError."""
        endpoints = await self._passive(connections)
        self._writer.write(f"RETR {name}\r\n".encode())
        taking = [asyncio.create_task(self._take(each)) for each in endpoints]
        found = sorted(number for numbers in await asyncio.gather(*taking) for number in numbers)
        await self.expect(150)
        await self.expect(226)
        if found != list(range(records)):
            raise LoadError(f"{len(found)} records came, and {records} were due, each once")

    async def upload(self, name: str, records: int, connections: int) -> None:
        """Store a file of so many records over so many connections. Raises LoadError."""
        await self.command(f"ALLO {records * CHUNK_BYTES}", 200)
        endpoints = await self._passive(connections)
        self._writer.write(f"STOR {name}\r\n".encode())
        shares = [range(number, records, connections) for number in range(connections)]
        await asyncio.gather(*map(self._give, endpoints, shares))
        await self.expect(150)
        await self.expect(226)

    async def _passive(self, connections: int) -> tuple[Endpoint, ...]:
        await self.command(f"OPTS MULT Connections={connections};", 200)
        return parse_mpsv_reply((await self.command("MPSV", 229)).text)

    async def _take(self, endpoint: Endpoint) -> list[int]:
        """Read one data connection to its end; give the numbers of its records."""
        reader, writer = await asyncio.open_connection(self._host, endpoint.port)
        numbers: list[int] = []
        rest = b""
        try:
            while data := await reader.read(_READ_BYTES):
                rest += data
                whole = len(rest) - len(rest) % RECORD_BYTES
                numbers += _checked(rest[:whole])
                rest = rest[whole:]
        finally:
            writer.close()
        if rest:
            raise LoadError("a data connection ended inside a record")
        return numbers

    async def _give(self, endpoint: Endpoint, numbers: range) -> None:
        """Send records over one data connection."""
        _, writer = await asyncio.open_connection(self._host, endpoint.port)
        try:
            for number in numbers:
                writer.write(number.to_bytes(HEADER_BYTES, "big") + chunk(number))
                await writer.drain()
            writer.write_eof()
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()

    def close(self) -> None:
        """Close without QUIT."""
        self._writer.close()


def _checked(data: bytes) -> list[int]:
    """Give the numbers of whole records. Raises LoadError if one is not what its number says."""
    numbers = []
    for at in range(0, len(data), RECORD_BYTES):
        number = int.from_bytes(data[at : at + HEADER_BYTES], "big")
        if data[at + HEADER_BYTES : at + RECORD_BYTES] != chunk(number):
            raise LoadError(f"record {number} holds other bytes than it should")
        numbers.append(number)
    return numbers


async def transfer(
    host: str, port: int, *, sessions: int, seconds: float, records: int, connections: int
) -> None:
    """Let so many sessions move files, every other one uploading, for so long; begin when told.

    It says `ready` once all are logged in, waits for a line on standard input, lets every transfer
    that has begun come to its end, and prints the outcome as JSON. The sessions stay until another
    line comes.
    """
    gate = asyncio.Semaphore(_AT_ONCE)

    async def log_in() -> LoadSession:
        async with gate:
            return await LoadSession.log_in(host, port)

    made = await asyncio.gather(*(log_in() for _ in range(sessions)))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    outcome, began_s = Outcome(), time.monotonic()
    ends_s = began_s + seconds
    await asyncio.gather(
        *(
            _move(session, number, outcome, ends_s, records, connections)
            for number, session in enumerate(made)
        )
    )
    outcome.seconds = time.monotonic() - began_s
    print(json.dumps(asdict(outcome)), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for session in made:
        session.close()


async def _move(
    session: LoadSession,
    number: int,
    outcome: Outcome,
    ends_s: float,
    records: int,
    connections: int,
) -> None:
    """Move one file after the other, at least one."""
    name = f"new-{number}"
    try:
        while True:
            async with asyncio.timeout(TIMEOUT_S):
                if number % 2:
                    await session.upload(name, records, connections)
                    outcome.uploads += 1
                else:
                    await session.download("file", records, connections)
                    outcome.downloads += 1
            outcome.bytes_moved += records * CHUNK_BYTES
            if time.monotonic() >= ends_s:
                return
    except (LoadError, OSError, TimeoutError) as error:
        outcome.errors.append(f"session {number}: {str(error) or type(error).__name__}")
