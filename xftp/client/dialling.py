"""Find the addresses of a host and connect to the first that answers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections import deque
from collections.abc import Iterable

from xftp.errors import ConnectError, system_reason
from xftp.transport.sockets import begin_to_connect, keep_alive, new_socket, zoned_address

from . import ahead
from .options import Family
from .threads import in_own_thread

STAGGER_S = 1.0
"""How long one address is given before the next is tried beside it (RFC 8305 section 5 says
0.25 s; a satellite path alone takes 0.6 s)."""

_FAMILIES = {
    "any": socket.AF_UNSPEC,
    "ipv4": socket.AF_INET,
    "ipv6": socket.AF_INET6,
}


Asked = asyncio.Future[tuple[str, str]]
"""Done when the only address of a host is being asked: that address, and the own one."""


async def dial(
    host: str, port: int, family: Family, timeout_s: float, asked: Asked | None = None
) -> socket.socket:
    """Connect to `host`: all its addresses in turn, the first that answers wins.

    asked: told as soon as it is clear who will answer. The socket is non-blocking. Raises
    ConnectError.
    """
    where = f"{host} port {port}"
    try:
        async with asyncio.timeout(timeout_s):
            begun = ahead.begun(host, port, _FAMILIES[family])
            addresses = await _resolve(host, port, family, begun)
            return await _race(addresses, begun, asked if len(addresses) == 1 else None)
    except TimeoutError as error:
        raise ConnectError(f"{where}: no answer within {timeout_s:g} s") from error
    except OSError as error:
        raise ConnectError(f"{where}: {system_reason(error)}") from error


async def _resolve(
    host: str, port: int, family: Family, begun: ahead.HeadStart | None
) -> list[ahead.Address]:
    if begun is not None and (known := await in_own_thread(begun.addresses)):
        return known
    try:
        # Not by the loop: uvloop forgets the zone of a link-local address.
        found = await in_own_thread(
            lambda: socket.getaddrinfo(host, port, _FAMILIES[family], socket.SOCK_STREAM)
        )
    except UnicodeError as error:  # the IDNA codec, for names that cannot exist
        raise ConnectError(f"{host} is not a host name") from error
    return [(kind, address) for kind, _, _, _, address in found]


async def _race(
    addresses: Iterable[ahead.Address], begun: ahead.HeadStart | None, asked: Asked | None
) -> socket.socket:
    waiting = deque(addresses)
    attempts: set[asyncio.Task[socket.socket]] = set()
    failures: list[OSError] = []
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.create_task(_connect(waiting.popleft(), begun, asked)))
                begun = None
            done, _ = await asyncio.wait(
                attempts,
                timeout=STAGGER_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                attempts.discard(task)
                try:
                    return task.result()
                except OSError as error:
                    failures.append(error)
    finally:
        await _give_up(attempts)
    raise failures[0] if failures else OSError(errno.EADDRNOTAVAIL, "no address")


async def _connect(
    where: ahead.Address, begun: ahead.HeadStart | None, asked: Asked | None
) -> socket.socket:
    family, address = where
    sock = begun.take(where) if begun is not None else None
    if sock is None:
        sock = new_socket(family, None)
    try:
        keep_alive(sock)
        is_made = begin_to_connect(sock, address)
        if asked is not None:
            asked.set_result((zoned_address(address), zoned_address(sock.getsockname())))
        if not is_made:  # else to connect it once more would be an error
            await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _give_up(attempts: set[asyncio.Task[socket.socket]]) -> None:
    for task in attempts:
        task.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            with contextlib.suppress(OSError):
                outcome.close()
