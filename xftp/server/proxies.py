"""Load balancers in front of the daemon: whom to believe, and what they say."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from xftp.errors import PeerError
from xftp.protocol.proxy_protocol import (
    HEAD_BYTES,
    MOST_LINE_BYTES,
    Proxied,
    line_is_version_1,
    parse_binary,
    parse_line,
    rest_bytes,
)
from xftp.transport.passive import PassiveChannel
from xftp.transport.sockets import plain_address

logger = logging.getLogger(__name__)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

HEADER_TIMEOUT_S = 5.0
"""How long a header may take: a balancer sends it with the first segment (section 2 of the
protocol's text recommends at least 3 s, for a segment that is lost)."""

_SHORTEST_BYTES = HEAD_BYTES - 1
_MOST_WAITING = 64

ReadExactly = Callable[[int], Awaitable[bytes]]


def is_trusted(host: str, networks: Sequence[Network]) -> bool:
    """Tell whether a literal address is that of a load balancer."""
    return any(ipaddress.ip_address(host) in network for network in networks)


async def read_header(read_exactly: ReadExactly) -> Proxied | None:
    """Read the header and not a byte more; None if it names no client.

    Raises PeerError if there is none, or only a part, within HEADER_TIMEOUT_S.
    """
    try:
        async with asyncio.timeout(HEADER_TIMEOUT_S):
            return await _read(read_exactly)
    except (TimeoutError, EOFError, OSError) as error:
        raise PeerError("a connection of a load balancer ended without a PROXY header") from error


async def _read(read_exactly: ReadExactly) -> Proxied | None:
    head = await read_exactly(_SHORTEST_BYTES)
    if line_is_version_1(head):
        while not head.endswith(b"\r\n"):
            if len(head) >= MOST_LINE_BYTES:
                raise PeerError("the PROXY line is too long")
            head += await read_exactly(1)
        return parse_line(head[:-2])
    head += await read_exactly(1)
    return parse_binary(head, await read_exactly(rest_bytes(head)))


class ProxiedChannel(PassiveChannel):
    """Listens as PassiveChannel does, and lets load balancers hand on the peer's connections."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.networks: Sequence[Network] = ()
        """Those whose word counts."""
        self._headers: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        for task in self._headers:
            task.cancel()
        super().close()

    def _arrived(self, sock: socket.socket, host: str) -> None:
        if not is_trusted(host, self.networks):
            super()._arrived(sock, host)
        elif len(self._headers) >= _MOST_WAITING:
            sock.close()
        else:
            task = asyncio.create_task(self._hand_on(sock, host))
            self._headers.add(task)
            task.add_done_callback(self._headers.discard)

    async def _hand_on(self, sock: socket.socket, host: str) -> None:
        """Take a connection for that of the client which the header names."""
        loop = asyncio.get_running_loop()

        async def read_exactly(size: int) -> bytes:
            data = b""
            while len(data) < size:
                more = await loop.sock_recv(sock, size - len(data))
                if not more:
                    raise EOFError
                data += more
            return data

        sock.setblocking(False)
        try:
            header = await read_header(read_exactly)
        except PeerError as error:
            logger.warning("%s: %s", host, error)
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            super()._arrived(sock, host if header is None else plain_address(header.source_host))
