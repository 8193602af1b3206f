"""Hashes of files for clients: in threads of low priority, in turns, none twice.

A hash of a large file is a lot of work for a short command. So the threads that do it are few and
give way to transfers; every session has one hash at a time, and they take turns slice by slice;
what was computed is kept as long as the file is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from xftp.errors import FileBusyError, RestartError
from xftp.protocol.hashes import ByteRange
from xftp.transport.files import SourceFile
from xftp.transport.hashing import FileHash

SLICE_BYTES = 64 << 20
"""What is hashed before it is another session's turn, or an ABOR is seen: about 50 ms."""

KEPT = 1024
"""Digests that are remembered."""

_NICENESS = 10
_SETTLED_S = 2.0
"""A file changed within this time may change again without a change of its time stamps."""

_Key = tuple[int, ...]


class HashWorker:
    """Computes digests for all sessions of a server."""

    def __init__(self, threads: int | None = None) -> None:
        """threads: at once; half of the processors by default."""
        self._count = threads or max(1, (os.cpu_count() or 1) // 2)
        self._threads: ThreadPoolExecutor | None = None
        self._turns: asyncio.Semaphore | None = None
        self._known: OrderedDict[tuple[_Key, str, int, int], str] = OrderedDict()

    async def digest(
        self, source: SourceFile, algorithm: str, wanted: ByteRange | None
    ) -> tuple[ByteRange, str]:
        """Hash a range of a file, or all of it; give what was hashed, and the digest.

        A range is cut at the end of the file. Cancelled, it ends after the slice it is at. Raises
        RestartError if the range begins behind the end, FileBusyError if the file changes
        meanwhile, LocalFileError.
        """
        before = os.fstat(source.fileno())
        hashed = _within(wanted, before.st_size)
        key = (_identity(before), algorithm, hashed.start, hashed.end)
        if key in self._known:
            self._known.move_to_end(key)
            return hashed, self._known[key]
        content = FileHash(source.fileno(), source.name, algorithm, hashed.start)
        while content.end < hashed.end:
            await self._advance(content, min(content.end + SLICE_BYTES, hashed.end))
        if _identity(os.fstat(source.fileno())) != _identity(before):
            raise FileBusyError(f"{source.name}: was changed while it was read")
        if time.time() - before.st_ctime > _SETTLED_S:
            self._known[key] = content.digest()
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return hashed, content.digest()

    def close(self) -> None:
        """End the threads once they have nothing to do."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _advance(self, content: FileHash, end: int) -> None:
        """Hash one slice when it is its turn: whoever waits longest is next."""
        if self._threads is None or self._turns is None:
            self._turns = asyncio.Semaphore(self._count)
            self._threads = ThreadPoolExecutor(self._count, "hashes", initializer=_give_way)
        async with self._turns:
            loop = asyncio.get_running_loop()
            job = loop.run_in_executor(self._threads, content.advance, end)
            try:
                await asyncio.shield(job)
            except asyncio.CancelledError:
                await asyncio.wait([job])
                raise


def _within(wanted: ByteRange | None, size: int) -> ByteRange:
    if wanted is None:
        return ByteRange(0, size)
    if wanted.start >= size:
        raise RestartError(f"The range begins at {wanted.start}, the file has {size} bytes")
    return ByteRange(wanted.start, min(wanted.end, size))


def _identity(status: os.stat_result) -> _Key:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _give_way() -> None:
    """Let the transfers' thread go before this one (Linux: priorities are those of threads)."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
