"""The standing port: the data connections of all sessions come to one port that is always there.

So a client need not be told a port before it dials, and its connections are made while its first
commands are on their way. Which session a connection belongs to it says itself, with the token of
that session's MPSV (`xftp.protocol.standing`). It counts only from the address of the session.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence

from xftp.errors import DataConnectionError, ParameterError
from xftp.protocol.addresses import Endpoint
from xftp.protocol.standing import CALL_BYTES, parse_call
from xftp.transport.accepting import AcceptingChannel
from xftp.transport.listening import Listener, listen
from xftp.transport.sockets import Tuning
from xftp.transport.tls import DataTls

from .limits import Lease, Limit, Quota, TooMany
from .settings import Settings

logger = logging.getLogger(__name__)

CALLERS = Limit(1024, 128)
"""Connections that have not said whose they are, or whose session has not asked for them."""

CALL_TIMEOUT_S = 60.0
"""How long they are kept: a lost segment of either connection may be sent again several times."""

_FEW_PORTS = 8
"""Of so few passive ports none is taken for all sessions unless the operator says so."""

_FIRST_FREE_PORT = 1024
_BACKLOG = 512
_MOST_FORGOTTEN = 4096

Take = Callable[[socket.socket], None]
"""Takes a connection that belongs to a session."""


def standing_ports(settings: Settings, control_port: int) -> Sequence[int]:
    """Give the ports to try for the standing port; none if there is to be none.

    Behind load balancers there is none: who comes is not who it is for.
    """
    wanted, passive = settings.standing_port, settings.passive_ports
    if wanted is None or settings.proxies:
        return ()
    if wanted:
        return (wanted,)
    if passive:
        return passive[:1] if len(passive) >= _FEW_PORTS else ()
    below = control_port - 1
    return (below, 0) if below >= _FIRST_FREE_PORT or os.geteuid() == 0 else (0,)


def own_ports(settings: Settings) -> tuple[int, ...]:
    """Give the passive ports that are left for the listeners of single sessions."""
    standing = standing_ports(settings, 0) if settings.passive_ports else ()
    return tuple(port for port in settings.passive_ports if port not in standing)


class StandingPort:
    """Listens as long as the server does."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        """Accept on sockets that listen, all on one port."""
        self._quota = Quota("data connections that nobody has asked for", CALLERS)
        self._takers: dict[str, tuple[str, Take]] = {}
        self._early: dict[str, list[_Caller]] = {}
        self._callers: set[_Caller] = set()
        self._forgotten: dict[str, None] = {}
        self._listeners = [Listener(each, self._arrived) for each in listeners]

    @classmethod
    def open(cls, hosts: Iterable[str], ports: Sequence[int]) -> StandingPort:
        """Listen on the first of `ports` that is free at all `hosts`. Raises OSError."""
        first, *others = dict.fromkeys(hosts)
        listeners = [listen(first, _BACKLOG, None, ports)]
        try:
            port = listeners[0].getsockname()[1]
            listeners += [listen(host, _BACKLOG, None, [port]) for host in others]
        except OSError:
            for each in listeners:
                each.close()
            raise
        return cls(listeners)

    @property
    def number(self) -> int:
        """The port."""
        return self._listeners[0].endpoint.port

    def expect(self, token: str, host: str, take: Take) -> None:
        """Let `take` have the connections from `host` that tell this token, early ones too.

        Raises ParameterError if the token was used before.
        """
        if token in self._takers or token in self._forgotten:
            raise ParameterError("That token was used before.")
        self._takers[token] = host, take
        for caller in self._early.pop(token, []):
            self._connect(caller, token)

    def forget(self, token: str) -> None:
        """Expect no more connections with a token; those that come all the same are closed."""
        if self._takers.pop(token, None) is None:
            return
        self._forgotten[token] = None
        while len(self._forgotten) > _MOST_FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]

    def close(self) -> None:
        """Listen no more, and close what nobody has asked for."""
        for listener in self._listeners:
            listener.close()
        for caller in list(self._callers):
            self._drop(caller)

    def _arrived(self, sock: socket.socket, host: str) -> None:
        sock.setblocking(False)
        caller = _Caller(sock, host)
        try:
            caller.lease = self._quota.take(host, give_up=lambda: self._drop(caller))
        except TooMany:
            logger.info("%s: too many data connections that nobody has asked for", host)
            sock.close()
            return
        self._callers.add(caller)
        loop = asyncio.get_running_loop()
        caller.ends = loop.call_later(CALL_TIMEOUT_S, self._drop, caller)
        loop.add_reader(sock, self._read, caller)

    def _read(self, caller: _Caller) -> None:
        """Read what a connection says of itself, and not a byte more."""
        try:
            said = caller.sock.recv(CALL_BYTES - len(caller.said))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            said = b""
        caller.said += said
        if not said:
            self._drop(caller)
        elif len(caller.said) == CALL_BYTES:
            asyncio.get_running_loop().remove_reader(caller.sock)
            self._called(caller, parse_call(caller.said))

    def _called(self, caller: _Caller, token: str | None) -> None:
        if token is None:
            logger.info("%s: a connection to the data port that tells no token", caller.host)
            self._drop(caller)
        elif token in self._forgotten:
            self._drop(caller)
        elif token in self._takers:
            self._connect(caller, token)
        else:
            self._early.setdefault(token, []).append(caller)
            caller.token = token

    def _connect(self, caller: _Caller, token: str) -> None:
        """Hand a connection to its session."""
        host, take = self._takers[token]
        if caller.host != host:
            logger.warning("refused a data connection from %s", caller.host)
            self._drop(caller)
            return
        self._release(caller)
        take(caller.sock)

    def _drop(self, caller: _Caller) -> bool:
        """Close a connection that has not been handed over; gives True, as it is one less."""
        asyncio.get_running_loop().remove_reader(caller.sock)
        self._release(caller)
        caller.sock.close()
        return True

    def _release(self, caller: _Caller) -> None:
        self._callers.discard(caller)
        if caller.ends is not None:
            caller.ends.cancel()
        if caller.lease is not None:
            caller.lease.release()
        waiting = self._early.get(caller.token, [])
        if caller in waiting:
            waiting.remove(caller)
            if not waiting:
                del self._early[caller.token]


class _Caller:
    """A connection that belongs to no session yet."""

    __slots__ = ("ends", "host", "lease", "said", "sock", "token")

    def __init__(self, sock: socket.socket, host: str) -> None:
        self.sock = sock
        self.host = host
        self.said = b""
        self.token = ""
        self.lease: Lease | None = None
        self.ends: asyncio.TimerHandle | None = None


class StandingChannel(AcceptingChannel):
    """The connections to the standing port that tell one token."""

    def __init__(
        self,
        port: StandingPort,
        token: str,
        *,
        local_host: str,
        peer_host: str,
        expected: int | None = None,
        limit: int = 1,
        tuning: Tuning | None = None,
        tls: DataTls | None = None,
    ) -> None:
        """Take what comes, and what has come already. Raises DataConnectionError."""
        super().__init__(peer_host, expected, limit, tuning, tls)
        self._port, self._token = port, token
        self._local_host = local_host
        try:
            port.expect(token, self._peer_host, self._take)
        except ParameterError as error:
            super().close()
            raise DataConnectionError(str(error)) from error

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self._local_host, self._port.number)

    def close(self) -> None:
        self._port.forget(self._token)
        super().close()

    def _take(self, sock: socket.socket) -> None:
        if self._tuning is not None:
            self._tuning.apply(sock)
        self._arrived(sock, self._peer_host)
