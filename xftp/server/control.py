"""The control connection of a session: command lines in, replies out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable

from xftp.protocol.commands import DEFAULT_MAX_LINE_BYTES, BadLine, Command, CommandParser
from xftp.protocol.proxy_protocol import Proxied
from xftp.protocol.replies import Reply, format_reply
from xftp.protocol.strangers import Opening
from xftp.transport.sockets import keep_alive, plain_address, socket_state, zoned_address

from .control_tls import ControlTls, InThread

logger = logging.getLogger(__name__)

BACKLOG_COMMANDS = 64
"""Pipelined commands that are read ahead; more wait in the client's socket."""

BACKLOG_CHARACTERS = 16_384
"""The same, for commands with long arguments."""

STREAM_BYTES = 8192
"""What the event loop reads ahead of that; asyncio stops at twice as much."""

_RECEIVE_BUFFER_BYTES = 16 * 1024
_UNSENT_BYTES = 16 * 1024
"""Replies that may wait for the client before its next command does."""

_HURRY_S = 1.0

_READ_BYTES = 4096
_WRITE_TIMEOUT_S = 60.0

_TOGETHER_S = 0.01
"""How long a reply waits for those to the commands behind it. An initial window is ten segments:
more small ones would wait for a round trip, and commands come in flights of a dozen."""

_DYING_S = 0.01
"""How long a killed process takes, at least on a busy machine, to close one connection after
another."""


class ControlConnection:
    """Reads commands ahead of their execution, so that ABOR, STAT and QUIT are seen at once."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.tls: ControlTls | None = None
        """What protects the connection; None: nothing does."""
        self._max_line_bytes = max_line_bytes
        self._urgent: Callable[[Command], bool] = lambda _: False
        self._begin_anew()
        self._waiting: deque[Command | BadLine | None] = deque()
        self._passed_over: list[Command | BadLine | None] = []
        """Those of them that `offer_waiting` has offered already."""
        self._close_timeout_s = _WRITE_TIMEOUT_S
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._replies = bytearray()
        self._sending: asyncio.TimerHandle | None = None
        self._sock: socket.socket = writer.get_extra_info("socket")
        self.peer_host = plain_address(writer.get_extra_info("peername")[0])
        self.local_host = plain_address(writer.get_extra_info("sockname")[0])
        self.bound_host = zoned_address(writer.get_extra_info("sockname"))
        """The same, for sockets that are bound to it."""
        self.dialled_host: str | None = None
        """The address that the client dialled, if it is not `local_host`."""
        self.ended = asyncio.Event()
        self.quit_seen = False
        # The Telnet "Synch" before ABOR comes as urgent data; leave it in the stream (RFC 959
        # section 4.1 and RFC 854).
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        keep_alive(self._sock)
        # A client that sends without end, or reads nothing, is to cost little: what it does not
        # get rid of waits on its own side.
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        writer.transport.set_write_buffer_limits(high=_UNSENT_BYTES)

    def take_addresses(self, proxied: Proxied) -> None:
        """Take the client's addresses from the word of a load balancer that is trusted."""
        self.peer_host = plain_address(proxied.source_host)
        self.dialled_host = plain_address(proxied.destination_host)

    def start(self, urgent: Callable[[Command], bool]) -> None:
        """Begin to read.

        urgent: asked about every command as it is read; True means that it was dealt with.
        """
        self._urgent = urgent
        self._reading = asyncio.create_task(self._read())

    async def stop_reading(self) -> None:
        """Take no more of the lines that come, until `start`."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
            self._reading = None

    @property
    def has_unread(self) -> bool:
        """Whether more was read than the commands that were taken, be it half a line."""
        return self.has_waiting or self._parser.pending_bytes > 0

    async def protect(self, context: ssl.SSLContext, in_thread: InThread) -> None:
        """Agree on the keys of TLS; `start` comes behind it. Raises OSError."""
        tls = ControlTls(context, self._reader, self._writer)
        await tls.handshake(in_thread)
        logger.debug("%s: %s", self.peer_host, tls.agreed)
        self._begin_anew()
        self.tls = tls

    def _begin_anew(self) -> None:
        """Take what comes for the beginning of what the client says."""
        self._parser = CommandParser(self._max_line_bytes)
        self._opening = Opening()

    @property
    def has_waiting(self) -> bool:
        """Whether commands were read that are not executed yet."""
        return bool(self._waiting or self._passed_over)

    async def next_command(self) -> Command | BadLine | None:
        """Give the next command; None once the client has closed."""
        while not self._waiting:
            await self._change()
        self._changed.set()
        return self._waiting.popleft()

    def withdraw(self, command: Command) -> bool:
        """Take a command back that waits for its turn; False if it does not wait any more."""
        for at, each in enumerate(self._waiting):
            if each is command:
                del self._waiting[at]
                self._changed.set()
                return True
        return False

    def offer_waiting(self, ends_offer: Callable[[Command], bool]) -> None:
        """Ask `urgent` about the commands that came before the one that runs now began.

        ends_offer: tells which command they must not be looked for behind.
        """
        kept = self._passed_over
        while self._waiting:
            command = self._waiting.popleft()
            if isinstance(command, Command):
                if self._urgent(command):
                    continue
                if ends_offer(command):
                    self._waiting.appendleft(command)
                    break
            kept.append(command)
        self._waiting.extendleft(reversed(kept))
        kept.clear()
        self._changed.set()

    def reply(self, reply: Reply) -> None:
        """Queue a reply for the client; those to commands that came together leave together."""
        logger.debug("%s <- %d %s", self.peer_host, reply.code, reply.text)
        self._replies += format_reply(reply.code, *reply.lines)
        if not self._waiting:
            self._send()
        elif self._sending is None:
            self._sending = asyncio.get_running_loop().call_later(_TOGETHER_S, self._send)

    def _send(self) -> None:
        """Give the socket what is queued."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if self._replies and not self._writer.is_closing():
            try:
                (self.tls or self._writer).write(bytes(self._replies))
            except OSError as error:  # TLS cannot send after a cut, whose end `_read` has seen
                logger.debug("%s: replying: %s", self.peer_host, error)
        self._replies.clear()

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

    def hurry(self) -> None:
        """Let `close` not wait for a client that takes no replies."""
        self._close_timeout_s = _HURRY_S

    async def close(self) -> None:
        """Send what is queued and close."""
        await self.stop_reading()
        self._send()
        if self.tls is not None:
            self.tls.end()
        self._writer.close()
        try:
            async with asyncio.timeout(self._close_timeout_s):
                await self._writer.wait_closed()
        except (OSError, TimeoutError) as error:
            logger.debug("%s: closing: %s", self.peer_host, error)
            self._writer.transport.abort()

    async def _read(self) -> None:
        try:
            while data := await (self.tls or self._reader).read(_READ_BYTES):
                other = self._opening.feed(data)
                if other is not None:
                    logger.warning("%s speaks %s, not FTP", self.peer_host, other)
                    break
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
        while len(self._waiting) >= BACKLOG_COMMANDS or self._backlog > BACKLOG_CHARACTERS:
            await self._change()
        self._waiting.append(command)
        self._changed.set()

    @property
    def _backlog(self) -> int:
        """Characters of the arguments of the commands that wait."""
        return sum(len(each.argument) for each in self._waiting if isinstance(each, Command))

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
