"""Hashes of files, piece by piece, so that a long one can stop and take turns with others."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import importlib
import os
import zlib
from collections.abc import Callable
from typing import Protocol

from xftp.errors import LocalFileError, ParameterError, file_error
from xftp.protocol.hashes import DIGEST_BITS

BLOCK_BYTES = 1 << 20
"""What is read at once."""

FOLLOW_BYTES = 8 << 20
"""What has to have arrived before it is worth a thread to hash it on the way."""

FOLLOW_S = 0.05
"""How often it is looked for."""


class Hasher(Protocol):
    """What hashlib's objects do."""

    def update(self, data: memoryview, /) -> object:
        """Take the next bytes."""

    def hexdigest(self) -> str:
        """Give the digest of all bytes so far."""


class _Crc32:
    """The CRC of ZIP, Ethernet and XCRC, as a hash object."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, data: memoryview) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def _openssl(name: str) -> Callable[[], Hasher]:
    return lambda: hashlib.new(name, usedforsecurity=False)


@functools.cache
def _makers() -> dict[str, Callable[[], Hasher]]:
    makers: dict[str, Callable[[], Hasher]] = {
        "SHA-256": _openssl("sha256"),
        "SHA-512": _openssl("sha512"),
        "SHA-1": _openssl("sha1"),
        "MD5": _openssl("md5"),
        "CRC32": _Crc32,
    }
    # An extra that may be installed or not: all the rest of this room needs nothing installed.
    with contextlib.suppress(ImportError):
        makers["BLAKE3"] = importlib.import_module("blake3").blake3
    return {name: makers[name] for name in DIGEST_BITS if name in makers}


def algorithms() -> tuple[str, ...]:
    """Give the names of the hashes that can be computed here, the preferred first."""
    return tuple(_makers())


def new_hash(algorithm: str) -> Hasher:
    """Begin a hash. Raises ParameterError for one that there is not."""
    if algorithm not in _makers():
        raise ParameterError(f"{algorithm} cannot be computed here")
    return _makers()[algorithm]()


class FileHash:
    """The hash of the bytes of an open file from `start` on, in order. Its functions block."""

    def __init__(self, descriptor: int, name: str, algorithm: str, start: int = 0) -> None:
        """Begin; name: for errors. Raises ParameterError for a hash that there is not."""
        self._hasher = new_hash(algorithm)
        self._descriptor = descriptor
        self._name = name
        self._buffer = memoryview(bytearray(BLOCK_BYTES))
        self.end = start
        """Where the bytes end that were taken so far."""

    def advance(self, end: int) -> None:
        """Take the bytes up to `end`. Raises LocalFileError if there are fewer."""
        while self.end < end:
            piece = self._buffer[: min(BLOCK_BYTES, end - self.end)]
            try:
                count = os.preadv(self._descriptor, [piece], self.end)
            except OSError as error:
                raise file_error(error, self._name) from error
            if count == 0:
                raise LocalFileError(f"{self._name}: the file became shorter while it was read")
            self._hasher.update(piece[:count])
            self.end += count

    def digest(self) -> str:
        """Give the digest so far, in hexadecimal."""
        return self._hasher.hexdigest()


def digest_of(descriptor: int, name: str, algorithm: str, start: int, end: int) -> str:
    """Hash the bytes from `start` to `end` of an open file. Blocks."""
    content = FileHash(descriptor, name, algorithm, start)
    content.advance(end)
    return content.digest()


class Follower:
    """Hashes a file behind a transfer: what has moved, while more does, from the page cache."""

    def __init__(self, content: FileHash, frontier: Callable[[], int]) -> None:
        """Begin to follow; frontier: tells up to where the bytes are all there."""
        self._content = content
        self._frontier = frontier
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(FOLLOW_S)
            end = self._frontier()
            if end - self._content.end >= FOLLOW_BYTES:
                job = loop.run_in_executor(None, self._content.advance, end)
                try:
                    await asyncio.shield(job)
                except asyncio.CancelledError:
                    await asyncio.wait([job])  # nobody else may go on with the hash meanwhile
                    raise

    async def stop(self) -> None:
        """Follow no more. What went wrong on the way is raised by `finish`."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def finish(self, end: int) -> str:
        """Hash the rest up to `end`; give the digest of all. Raises LocalFileError."""
        await self.stop()
        if not self._task.cancelled():
            self._task.result()
        job = asyncio.get_running_loop().run_in_executor(None, self._content.advance, end)
        try:
            await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.wait([job])
            raise
        return self._content.digest()
