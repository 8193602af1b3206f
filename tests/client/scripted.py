"""An FTP server that does as a test tells it, good manners or bad."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from xftp.client.options import Options
from xftp.client.session import Session, open_session
from xftp.protocol.records import CHUNK_BYTES

HOST = "127.0.0.1"
WAIT_S = 10.0

Handler = str | Callable[["Conversation", str], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def records(data: bytes, numbers: list[int] | None = None) -> bytes:
    """Cut `data` into records; `numbers` chooses which, in what order."""
    count = -(-len(data) // CHUNK_BYTES)
    wire = b""
    for number in range(count) if numbers is None else numbers:
        chunk = data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
        wire += number.to_bytes(4, "big") + chunk
    return wire


def names(folder: Path) -> list[str]:
    """Give the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


class Conversation:
    """One control connection, seen from the server."""

    def __init__(self, server: ScriptedServer, streams: Streams) -> None:
        self.server = server
        self.reader, self.writer = streams
        self.data: asyncio.Queue[Streams] = asyncio.Queue()
        self.values: dict[str, Any] = {}

    def say(self, text: str) -> None:
        """Send reply lines, as they are."""
        self.writer.write(f"{text}\r\n".encode("utf-8", "surrogateescape"))

    async def listen(self) -> int:
        """Listen for data connections, and forget earlier ones; give the port."""
        queue = self.data = asyncio.Queue()

        async def accepted(*streams: Any) -> None:
            self.server.writers.append(streams[1])
            await queue.put(streams)

        listener = await asyncio.start_server(accepted, HOST, 0)
        self.server.listeners.append(listener)
        port: int = listener.sockets[0].getsockname()[1]
        return port

    async def connections(self, count: int = 1) -> list[Streams]:
        """Wait for `count` data connections."""
        async with asyncio.timeout(WAIT_S):
            return [await self.data.get() for _ in range(count)]

    async def dial(self, port: int) -> Streams:
        """Connect to the client."""
        streams = await asyncio.open_connection(HOST, port)
        self.server.writers.append(streams[1])
        return streams

    def hang_up(self) -> None:
        """Close the control connection."""
        self.writer.close()


@dataclass
class ScriptedServer:
    """Answers commands from `script`; the verbs it lacks get 502."""

    script: dict[str, Handler] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    """Every line that came, in order."""
    listeners: list[asyncio.Server] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    greeting: str | None = "220 ready"
    byte_by_byte: bool = False
    """Whether every byte of a reply leaves alone."""
    sessions: int = 0
    port: int = 0
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def verbs(self) -> list[str]:
        """Give the verbs that came, in order."""
        return [line.split(" ")[0] for line in self.heard]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.writers.append(writer)
        self.sessions += 1
        talk = Conversation(self, (reader, writer))
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await self.greet(talk)
            async for line in self.lines(reader):
                text = line.decode("utf-8", "surrogateescape").removesuffix("\r\n")
                self.heard.append(text)
                verb, _, argument = text.partition(" ")
                await self._answer(talk, verb, argument)
        writer.close()

    async def greet(self, talk: Conversation) -> None:
        """Say what is said first."""
        if self.greeting is not None:
            talk.say(self.greeting)

    async def lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Give the lines that this server takes notice of."""
        while line := await reader.readline():
            yield line

    async def _answer(self, talk: Conversation, verb: str, argument: str) -> None:
        handler = self.script.get(verb, "502 not here")
        if not isinstance(handler, str):
            await handler(talk, argument)
        elif self.byte_by_byte:
            for byte in f"{handler}\r\n".encode():
                talk.writer.write(bytes([byte]))
                await talk.writer.drain()
                await asyncio.sleep(0)
        else:
            talk.say(handler)

    async def close(self) -> None:
        """Close everything."""
        for listener in self.listeners:
            listener.close()
        for writer in self.writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self.writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


BASIC: dict[str, Handler] = {
    "USER": "331 password please",
    "PASS": "230 welcome",
    "FEAT": "500 what?",
    "TYPE": "200 fine",
    "QUIT": "221 bye",
    "ABOR": "226 aborted",
    "ALLO": "202 no need",
}
"""What every old server can."""


Kind = TypeVar("Kind", bound=ScriptedServer)


@contextlib.asynccontextmanager
async def scripted(
    script: dict[str, Handler] | None = None,
    kind: type[Kind] = ScriptedServer,  # type: ignore[assignment]
    **settings: Any,
) -> AsyncIterator[Kind]:
    """Run a scripted server."""
    server = kind({**BASIC, **(script or {})}, **settings)
    listener = await asyncio.start_server(server.serve, HOST, 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await server.close()


@contextlib.asynccontextmanager
async def session_with(server: ScriptedServer, **options: Any) -> AsyncIterator[Session]:
    """Log in at a scripted server; with single data connections unless told otherwise."""
    options.setdefault("connections", 1)
    session = await open_session(f"ftp://{HOST}:{server.port}/", options=Options(**options))
    try:
        yield session
    finally:
        await session.wait_closed()


# -- handlers -----------------------------------------------------------------------------------


async def epsv(talk: Conversation, _: str) -> None:
    """Listen, as a good server does."""
    talk.say(f"229 here (|||{await talk.listen()}|)")


async def pasv(talk: Conversation, _: str) -> None:
    """Listen, as a server of 1985 does."""
    high, low = divmod(await talk.listen(), 256)
    talk.say(f"227 here (127,0,0,1,{high},{low})")


def mpsv(count: int, host: str = HOST) -> Handler:
    """Listen, and name the port `count` times."""

    async def handler(talk: Conversation, _: str) -> None:
        ports = ",".join([str(await talk.listen())] * count)
        talk.say(f"229 (IP4|TCP|{host}|{ports}) Entering passive mode.")

    return handler


def sends(data: bytes, *, opening: str = "150 go", final: str = "226 done") -> Handler:
    """Send `data` as a plain stream."""

    async def handler(talk: Conversation, _: str) -> None:
        talk.say(opening)
        ((_reader, writer),) = await talk.connections()
        writer.write(data)
        writer.close()
        talk.say(final)

    return handler


def sends_records(*wires: bytes, final: str | None = "226 done") -> Handler:
    """Send one piece of wire over each of as many data connections."""

    async def handler(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        for (_reader, writer), wire in zip(await talk.connections(len(wires)), wires, strict=True):
            writer.write(wire)
            writer.close()
        if final is not None:
            talk.say(final)

    return handler


def receives(into: list[bytes], *, final: str = "226 done") -> Handler:
    """Receive a plain stream."""

    async def handler(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        into.append(await reader.read())
        writer.close()
        talk.say(final)

    return handler
