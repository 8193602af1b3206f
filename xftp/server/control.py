"""The control connection of a session: command lines in, replies out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable

from xftp.protocol.commands import BadLine, Command, CommandParser
from xftp.protocol.replies import Reply, format_reply
from xftp.transport.sockets import plain_address, socket_state

logger = logging.getLogger(__name__)

BACKLOG_COMMANDS = 64
"""Pipelined commands that are read ahead; more wait in the client's socket."""

_READ_BYTES = 4096
_WRITE_TIMEOUT_S = 60.0

_DYING_S = 0.01
"""How long a killed process takes, at least on a busy machine, to close one connection after
another."""


class ControlConnection:
    """Reads commands ahead of their execution, so that ABOR, STAT and QUIT are seen at once.

    urgent: asked about every command as it is read; True means that it was dealt with.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        urgent: Callable[[Command], bool],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._urgent = urgent
        self._parser = CommandParser()
        self._waiting: deque[Command | BadLine | None] = deque()
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._sock: socket.socket = writer.get_extra_info("socket")
        self.peer_host = plain_address(writer.get_extra_info("peername")[0])
        self.local_host = plain_address(writer.get_extra_info("sockname")[0])
        self.ended = asyncio.Event()
        self.quit_seen = False
        # The Telnet "Synch" before ABOR comes as urgent data; leave it in the stream (RFC 959
        # section 4.1 and RFC 854).
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)

    def start(self) -> None:
        """Begin to read."""
        self._reading = asyncio.create_task(self._read())

    @property
    def has_waiting(self) -> bool:
        """Whether commands were read that are not executed yet."""
        return bool(self._waiting)

    async def next_command(self) -> Command | BadLine | None:
        """Give the next command; None once the client has closed."""
        while not self._waiting:
            await self._change()
        self._changed.set()
        return self._waiting.popleft()

    def offer_waiting(self, ends_offer: Callable[[Command], bool]) -> None:
        """Ask `urgent` about the commands that came before the one that runs now began.

        ends_offer: tells which command they must not be looked for behind.
        """
        kept: list[Command | BadLine | None] = []
        while self._waiting:
            command = self._waiting.popleft()
            if isinstance(command, Command):
                if ends_offer(command):
                    self._waiting.appendleft(command)
                    break
                if self._urgent(command):
                    continue
            kept.append(command)
        self._waiting.extendleft(reversed(kept))
        self._changed.set()

    def reply(self, reply: Reply) -> None:
        """Queue a reply for the client."""
        logger.debug("%s <- %d %s", self.peer_host, reply.code, reply.text)
        if not self._writer.is_closing():
            self._writer.write(format_reply(reply.code, *reply.lines))

    async def flush(self) -> None:
        """Wait until the client takes our replies. Raises ConnectionError, TimeoutError."""
        async with asyncio.timeout(_WRITE_TIMEOUT_S):
            await self._writer.drain()

    async def is_alive(self) -> bool:
        """Tell whether the client has not closed, as far as one round trip can show.

        The end of a killed client's data connections and that of its control connection leave
        together; on the way they may change places.
        """
        state = socket_state(self._sock)
        if state is None:
            return not self.ended.is_set()
        await asyncio.sleep(min(max(state.rtt_s, _DYING_S), 1.0))
        state = socket_state(self._sock)
        return state is not None and state.established and not self.ended.is_set()

    async def close(self) -> None:
        """Send what is queued and close."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
        self._writer.close()
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError) as error:
            logger.debug("%s: closing: %s", self.peer_host, error)
            self._writer.transport.abort()

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(_READ_BYTES):
                for command in self._parser.feed(data):
                    if isinstance(command, Command):
                        shown = "***" if command.verb == "PASS" else command.argument
                        logger.debug("%s -> %s %s", self.peer_host, command.verb, shown)
                        self.quit_seen |= command.verb == "QUIT"
                        if self._urgent(command):
                            await self.flush()  # who asks and asks must also read
                            continue
                    await self._put(command)
        except OSError as error:
            logger.debug("%s: reading: %s", self.peer_host, error)
        self.ended.set()
        await self._put(None)

    async def _put(self, command: Command | BadLine | None) -> None:
        while len(self._waiting) >= BACKLOG_COMMANDS:
            await self._change()
        self._waiting.append(command)
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
