"""The control connection: commands out, replies in, matched in order.

One task reads replies at all times, so that several commands may leave in one write, and a refusal
is seen while data moves. Bytes that are not UTF-8 pass as surrogate escapes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from xftp.errors import ConnectError, PeerError, XftpError
from xftp.protocol.commands import Command, format_command
from xftp.protocol.replies import Reply, ReplyParser
from xftp.transport.sockets import socket_state, zoned_address

from .dialling import Asked, dial
from .flights import WELCOME
from .options import Options
from .securing import ask_for_tls
from .text import printable
from .tls import ControlTls, Security

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_READ_BYTES = 65536
_SECRET = frozenset({"PASS", "ACCT"})
_CLOSING = 421
"""Service not available, closing control connection (RFC 959 section 4.2); fits any command."""


class SessionEnded(ConnectError):
    """The server has ended the session and said so (421)."""


class Answer:
    """The replies to one command: preliminary ones (1yz), then the final one."""

    def __init__(
        self, command: Command | None, codes: Collection[int], expire: Callable[[str], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.command = command
        self.codes = codes
        self.begun: asyncio.Future[Reply] = loop.create_future()
        """The first reply, preliminary or final."""
        self.final: asyncio.Future[Reply] = loop.create_future()
        """The final reply."""
        self._expire = expire

    @property
    def verb(self) -> str:
        """The command's verb; of the greeting, a word for it."""
        return self.command.verb if self.command else "the connection"

    async def wait_begun(self, timeout_s: float) -> Reply:
        """Wait for the first reply. Raises ConnectError, also when none comes in time."""
        return await self._wait(self.begun, timeout_s)

    async def wait_final(self, timeout_s: float) -> Reply:
        """Wait for the final reply. Raises ConnectError, also when none comes in time."""
        return await self._wait(self.final, timeout_s)

    def take(self, reply: Reply) -> None:
        """Note a reply."""
        if not self.begun.done():
            self.begun.set_result(reply)
        if not reply.is_preliminary:
            self.final.set_result(reply)

    def fail(self, error: XftpError) -> None:
        """Note that no further reply will come."""
        for future in (self.begun, self.final):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody need ask: the loss is told by the next command too

    async def _wait(self, reply: asyncio.Future[Reply], timeout_s: float) -> Reply:
        # Not `wait_for`, which would cancel the future: the reply comes all the same.
        await asyncio.wait({reply}, timeout=timeout_s)
        if not reply.done():
            self._expire(f"the server did not answer {self.verb} within {timeout_s:g} s")
        return reply.result()


class Control:
    """One control connection. `connect` first."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._parser = ReplyParser()
        self._pending: deque[Answer] = deque()
        self._streams: Streams | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lost: XftpError | None = None
        self._welcome: Answer | None = None
        self._greeted: Reply | None = None
        self._where = ""
        self._security: Security = "none"
        self._is_early = False
        self._asked: Asked | None = None
        self._making: asyncio.Task[None] | None = None
        self._waiting = b""
        self._expected_rtt_s: float | None = None
        self.tls: ControlTls | None = None
        """What protects the connection, once it is made; None: nothing does."""
        self.greeting = ""
        """The text of the greeting, once `greet` was awaited."""
        self.is_taken_for_ours = False
        """Whether the server is taken for one of our own kind until it has greeted."""
        self.peer_host = ""
        self.local_host = ""

    # -- the connection ------------------------------------------------------------------------

    async def connect(
        self,
        host: str,
        port: int,
        *,
        security: Security = "none",
        early: bool = False,
        expected_rtt_s: float | None = None,
    ) -> None:
        """Connect, and leave the greeting to `greet`: commands may be sent before.

        early: ask for explicit TLS before the greeting. expected_rtt_s: do not wait for the
        connection either, where it is clear which address will answer: what is sent before waits
        for it, see `connected`; `rtt_s` is this until then. Raises ConnectError, TlsError, and
        PipeliningError if the server may not take what is early.
        """
        self._security, self._is_early = security, early
        self._where = f"{host} port {port}"
        if expected_rtt_s is not None and security == "none":
            self._expected_rtt_s = expected_rtt_s
            await self._begin(host, port)
            return
        self._streams = await self._open_streams(host, port)
        if self._greeted is None:
            self._welcome = self._expect(None)
        else:
            self.greeting = printable(self._greeted.text)
        self._connection_made()

    async def _begin(self, host: str, port: int) -> None:
        """Begin to connect, and wait until it is clear which address will answer."""
        self._asked = asyncio.get_running_loop().create_future()
        self._welcome = self._expect(None)
        self._making = asyncio.create_task(self._make(host, port))
        either: set[asyncio.Future[Any]] = {self._asked, self._making}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._making.done():
            await self.connected()
        else:
            self.peer_host, self.local_host = self._asked.result()

    async def _make(self, host: str, port: int) -> None:
        try:
            self._streams = await self._open_streams(host, port)
            self._connection_made()
        except XftpError as error:
            self._lose(error)
        except Exception:
            self._lose(ConnectError("the connection could not be made"))
            raise

    def _connection_made(self) -> None:
        """Send what waited for the connection, and begin to read."""
        _, writer = self._ends
        self.peer_host = zoned_address(writer.get_extra_info("peername"))
        self.local_host = zoned_address(writer.get_extra_info("sockname"))
        if self._waiting:
            writer.write(self._waiting)
            self._waiting = b""
        self._reading = asyncio.create_task(self._read())

    @property
    def is_made(self) -> bool:
        """Whether the connection is made; before, `rtt_s` is what was expected."""
        return self._streams is not None

    @property
    def _ends(self) -> Streams:
        """The connection's two ends. Raises ConnectError where there is none yet."""
        if self._streams is None:
            raise ConnectError("there is no control connection")
        return self._streams

    async def connected(self) -> None:
        """Wait until the connection is made. Raises ConnectError."""
        if self._making is not None:
            await asyncio.wait({self._making})
            if not self._making.cancelled():
                self._making.result()
        if self._lost is not None:
            raise self._lost

    async def greet(self) -> None:
        """Wait for the greeting. Raises ConnectError."""
        if self._welcome is None:
            return
        try:
            reply = await self._welcome.wait_final(self._options.reply_timeout_s)
        except PeerError as error:
            raise ConnectError(f"{self._where} is no FTP server: {error}") from error
        if not reply.is_positive:
            raise ConnectError(f"the server answered {reply.code} {printable(reply.text)}")
        self.greeting = printable(reply.text)
        self._welcome = None

    @property
    def rtt_s(self) -> float | None:
        """Round-trip time of the control connection in seconds; None where it is not known."""
        if self._streams is None:
            return self._expected_rtt_s
        # TLS of uvloop has no socket any more once it is closed.
        sock: socket.socket | None = self._streams[1].get_extra_info("socket")
        state = socket_state(sock) if sock is not None else None
        return state.rtt_s if state is not None else None

    async def _open_streams(self, host: str, port: int) -> Streams:
        tls = ControlTls(host, self._options.tls)
        if self._security != "none":
            await tls.load()
        sock = await dial(
            host, port, self._options.family, self._options.connect_timeout_s, self._asked
        )
        try:
            self.trace(f"* connected to {sock.getpeername()[0]} port {port}")
            if self._security == "explicit":
                self._greeted = await ask_for_tls(
                    sock, self._where, self._options, early=self._is_early
                )
        except OSError as error:
            sock.close()
            raise ConnectError(f"{self._where}: {error.strerror}") from error
        except BaseException:
            sock.close()
            raise
        if self._security == "none":
            return await self._stream_on(sock)
        streams = await tls.wrap(sock, self._options.connect_timeout_s)
        self.tls = tls
        self.trace(f"* {tls.agreed}")
        return streams

    async def _stream_on(self, sock: socket.socket) -> Streams:
        try:
            return await asyncio.open_connection(sock=sock)
        except OSError as error:
            sock.close()
            raise ConnectError(f"{self._where}: {error.strerror}") from error

    @property
    def is_closed(self) -> bool:
        """Whether no command can be sent any more."""
        return self._lost is not None or (self._streams is None and self._making is None)

    def close(self) -> None:
        """Close at once."""
        self._lose(ConnectError("the control connection is closed"))

    async def wait_closed(self) -> None:
        """Close, and wait until the socket is released."""
        self.close()
        tasks = [each for each in (self._making, self._reading) if each is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._streams is not None:
            with contextlib.suppress(OSError):
                await self._streams[1].wait_closed()

    def _lose(self, error: XftpError) -> None:
        """Close, and let every command that waits fail with `error`."""
        if self._lost is None:
            self._lost = error
        for task in (self._making, self._reading):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        if self._streams is not None:
            self._streams[1].close()
        while self._pending:
            self._pending.popleft().fail(self._lost)

    # -- commands ------------------------------------------------------------------------------

    def send(self, *commands: Command, codes: Collection[int] = ()) -> list[Answer]:
        """Send commands in one write; their answers come in the same order.

        codes: those by which the reply is known even if it overtakes that of a running transfer.
        Raises ArgumentError for what cannot be sent (then nothing is), ConnectError.
        """
        doubles = self._speaks_telnet
        lines = [format_command(each.verb, each.argument, doubles=doubles) for each in commands]
        if self._lost is not None:
            raise self._lost
        for command in commands:
            secret = command.verb.upper() in _SECRET
            shown = "****" if secret else printable(command.argument)
            self.trace(f"> {command.verb} {shown}".rstrip())
        if self._streams is None and self._making is not None:
            self._waiting += b"".join(lines)
        else:
            self._ends[1].write(b"".join(lines))
        return [self._expect(command, codes) for command in commands]

    @property
    def _speaks_telnet(self) -> bool:
        """Whether the server is known to: others may keep what is doubled for Telnet."""
        if self.greeting:
            return self.greeting.startswith(WELCOME)
        return self.is_taken_for_ours

    async def ask(self, command: Command, codes: Collection[int] = ()) -> Reply:
        """Send a command and wait for its final reply, whatever it is. Errors as in `send`."""
        (answer,) = self.send(command, codes=codes)
        return await answer.wait_final(self._options.reply_timeout_s)

    def trace(self, line: str) -> None:
        """Tell the user's trace."""
        if self._options.trace is not None:
            self._options.trace(line)

    def _expect(self, command: Command | None, codes: Collection[int] = ()) -> Answer:
        answer = Answer(command, codes, lambda reason: self._lose(ConnectError(reason)))
        self._pending.append(answer)
        return answer

    # -- replies -------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read replies until the connection ends; nothing it raises is lost."""
        reader, _ = self._ends
        try:
            while data := await reader.read(_READ_BYTES):
                for reply in self._parser.feed(data):
                    self._dispatch(reply)
            self._lose(ConnectError("the server closed the control connection"))
        except OSError as error:
            self._lose(ConnectError(f"the control connection was lost: {error.strerror or error}"))
        except PeerError as error:
            self._lose(error)

    def _dispatch(self, reply: Reply) -> None:
        for line in reply.lines:
            self.trace(f"< {reply.code} {printable(line)}".rstrip())
        if reply.code == _CLOSING:
            text = printable(reply.text)
            self._lose(SessionEnded(f"the server ended the session: {_CLOSING} {text}"))
            return
        answer = self._match(reply)
        if answer is None:
            self.trace("* nobody asked for that reply")
            return
        if not reply.is_preliminary:
            self._pending.remove(answer)
        answer.take(reply)

    def _match(self, reply: Reply) -> Answer | None:
        """Find whose reply it is: the oldest command's, or of one that may overtake it."""
        if not self._pending:
            return None
        oldest = self._pending[0]
        if oldest.begun.done() and reply.code not in oldest.codes:
            for answer in self._pending:
                if reply.code in answer.codes:
                    return answer
        return oldest
