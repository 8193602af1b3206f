"""Before TLS: the greeting and AUTH TLS, in the clear, one reply at a time (RFC 4217 section 4).

Nothing else is said here, and nothing that is heard is believed later. A server has nothing to say
between its 234 and our handshake, so whatever comes there was put in by somebody else, who wants it
taken for the first reply within TLS (CVE-2011-0411 and its like).
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable

from xftp.errors import ConnectError, PeerError
from xftp.protocol.commands import Command, format_command
from xftp.protocol.replies import Reply, ReplyParser
from xftp.transport.sockets import socket_state

from .flights import PipeliningError, patience_s
from .options import Options
from .text import printable
from .tls import TlsError

_AUTH_TLS = Command("AUTH", "TLS")
_READ_BYTES = 4096


async def ask_for_tls(
    sock: socket.socket, where: str, options: Options, *, early: bool = False
) -> Reply:
    """Say AUTH TLS on a new connection, so that the handshake may begin; give the greeting.

    early: do not wait for the greeting first. Raises TlsError if the server does not want TLS,
    PipeliningError if `early` may be the reason that it is silent, ConnectError.
    """
    talk = _Talk(sock, options.trace or _nobody)
    try:
        greeting, reply = await (_ask_early if early else _ask)(talk, where, options)
    except PeerError as error:
        raise ConnectError(f"{where} is no FTP server: {error}") from error
    if not reply.is_positive:
        raise TlsError(f"{where} offers no TLS: it answered {_shown(reply)} to AUTH TLS")
    if talk.has_more:
        raise TlsError(f"{where}: something was said in the clear where TLS was to begin")
    return greeting


async def _ask(talk: _Talk, where: str, options: Options) -> tuple[Reply, Reply]:
    """Give the greeting and the reply to AUTH TLS."""
    greeting = _welcoming(await talk.reply(options.reply_timeout_s), where)
    await talk.send(_AUTH_TLS)
    return greeting, await talk.reply(options.reply_timeout_s)


async def _ask_early(talk: _Talk, where: str, options: Options) -> tuple[Reply, Reply]:
    """Do the same in one round trip less. Raises PipeliningError if the server does not take it."""
    limit_s = min(options.reply_timeout_s, patience_s(options.pipelining_patience_s, talk.rtt_s))
    try:
        await talk.send(_AUTH_TLS)
        greeting = await talk.reply(limit_s)
    except ConnectError as error:
        raise PipeliningError(str(error)) from error
    _welcoming(greeting, where)
    try:
        return greeting, await talk.reply(limit_s)
    except ConnectError as error:
        raise PipeliningError(str(error)) from error


def _welcoming(greeting: Reply, where: str) -> Reply:
    """Give the greeting back. Raises ConnectError unless it is a good one."""
    if not greeting.is_positive:
        raise ConnectError(f"{where}: the server answered {_shown(greeting)}")
    return greeting


def _shown(reply: Reply) -> str:
    return f"{reply.code} {printable(reply.text)}".rstrip()


def _nobody(_: str) -> None:
    """Take the trace that nobody wants."""


class _Talk:
    """Commands and replies on a bare socket."""

    def __init__(self, sock: socket.socket, trace: Callable[[str], None]) -> None:
        self._sock = sock
        self._trace = trace
        self._parser = ReplyParser()
        self._replies: deque[Reply] = deque()

    @property
    def rtt_s(self) -> float | None:
        """Round-trip time in seconds; None where it is not known."""
        state = socket_state(self._sock)
        return state.rtt_s if state is not None else None

    async def send(self, command: Command) -> None:
        self._trace(f"> {command.verb} {command.argument}")
        line = format_command(command.verb, command.argument)
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, line)
        except OSError as error:
            raise ConnectError(f"the control connection was lost: {error.strerror}") from error

    async def reply(self, timeout_s: float) -> Reply:
        """Wait for the next final reply. Raises ConnectError, PeerError."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    reply = await self._next()
                    if not reply.is_preliminary:
                        return reply
        except TimeoutError as error:
            raise ConnectError(f"the server did not answer within {timeout_s:g} s") from error
        except OSError as error:
            raise ConnectError(f"the control connection was lost: {error.strerror}") from error

    async def _next(self) -> Reply:
        loop = asyncio.get_running_loop()
        while not self._replies:
            data = await loop.sock_recv(self._sock, _READ_BYTES)
            if not data:
                raise ConnectError("the server closed the control connection")
            self._replies.extend(self._parser.feed(data))
        reply = self._replies.popleft()
        for line in reply.lines:
            self._trace(f"< {reply.code} {printable(line)}".rstrip())
        return reply

    @property
    def has_more(self) -> bool:
        """Whether more was received than the replies that were asked for."""
        if self._replies:
            return True
        try:
            self._parser.close()
        except PeerError:
            return True
        return False
