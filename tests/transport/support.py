"""Channels, files and peers for the tests of the data path."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from xftp.protocol.records import CHUNK_BYTES
from xftp.transport.active import ActiveChannel
from xftp.transport.partial import PartialFile
from xftp.transport.passive import PassiveChannel
from xftp.transport.tls import DataTls

HOST = "127.0.0.1"


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def record(number: int, data: bytes) -> bytes:
    """Make a record by hand (appendix B.4)."""
    return number.to_bytes(4, "big") + data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Give a descriptor of a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def partial(path: Path, offset: int = 0, *, extend: bool = False) -> PartialFile:
    """Open new content for `path`."""
    with opened(path.parent) as directory:
        return PartialFile.open(directory, path.name, offset, extend=extend)


def listening(
    limit: int, expected: int | None = None, tls: DataTls | None = None
) -> PassiveChannel:
    """Listen for the data connections of a transfer."""
    return PassiveChannel.listen(HOST, HOST, expected=expected, limit=limit, tls=tls)


def linked(count: int) -> tuple[PassiveChannel, ActiveChannel]:
    """Make both ends of `count` data connections."""
    passive = listening(count, count)
    return passive, ActiveChannel([passive.endpoint] * count)


async def dial(channel: PassiveChannel, host: str = HOST) -> socket.socket:
    """Connect to a listening channel by hand, from `host`."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind((host, 0))
    await asyncio.get_running_loop().sock_connect(sock, (HOST, channel.endpoint.port))
    return sock


async def send_all(sock: socket.socket, data: bytes) -> None:
    """Send `data` and close."""
    await asyncio.get_running_loop().sock_sendall(sock, data)
    sock.close()


def reset(sock: socket.socket) -> None:
    """Close so that the peer sees a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
