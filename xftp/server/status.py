"""What a running server tells of itself: plain values, for JSON, metrics and people.

Whoever may open the socket, that is the daemon's own user, connects to it and reads one object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

from xftp.errors import FileError, file_error

from .server import Server
from .watch import RunningTransfer

FORMAT_VERSION = 1
_WRITE_TIMEOUT_S = 5.0


def snapshot(server: Server) -> dict[str, Any]:
    """Describe the server now. Times are seconds, rates bytes per second."""
    shared, watch = server.shared, server.shared.watch
    quotas = {
        "sessions": shared.sessions,
        "transfers": shared.transfers,
        "data_connections": shared.data_connections,
        "listeners": shared.listeners,
    }
    return {
        "version": FORMAT_VERSION,
        "process": os.getpid(),
        "listening": f"{server.server_host}:{server.server_port}",
        "up_s": round(time.time() - watch.started_at, 3),
        "started_at": watch.started_at,
        "is_stopping": server.is_stopping,
        "now": {name: quota.total for name, quota in quotas.items()},
        "addresses": shared.sessions.addresses,
        "refused": {name: quota.refused for name, quota in quotas.items()},
        "sessions_total": watch.sessions,
        "logins": {"ok": watch.logins[True], "refused": watch.logins[False]},
        "transfers_total": [
            {"direction": direction, "ok": ok, "count": count}
            for (direction, ok), count in sorted(watch.transfers.items())
        ],
        "bytes_total": watch.bytes_moved(),
        "sessions": [session.describe() for session in server.sessions],
        "transfers": [_transfer(each) for each in watch.running],
    }


def _transfer(running: RunningTransfer) -> dict[str, Any]:
    seconds = running.seconds
    return {
        "direction": running.direction,
        "path": running.path,
        "peer": running.peer_host,
        "user": running.user,
        "bytes": running.bytes,
        "seconds": round(seconds, 3),
        "bytes_per_s": round(running.bytes / seconds, 1) if seconds > 0 else 0.0,
        "connections": running.connections,
        "is_protected": running.is_protected,
    }


def somebody_listens(path: Path) -> bool:
    """Tell whether a running process has this socket. Raises OSError if we may not ask."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


class StatusSocket:
    """A local socket that answers every connection with a snapshot, and ends it."""

    def __init__(self, server: Server, path: Path) -> None:
        self._server = server
        self._path = path
        self._listening: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; what a killed daemon left there is removed. Raises FileError."""
        try:
            self._remove_remains()
            before = os.umask(0o177)
            try:
                self._listening = await asyncio.start_unix_server(self._answer, self._path)
            finally:
                os.umask(before)
        except OSError as error:
            raise file_error(error, str(self._path)) from error

    async def stop(self) -> None:
        """Listen no more."""
        if self._listening is None:
            return
        self._listening.close()
        await self._listening.wait_closed()
        with contextlib.suppress(OSError):  # without root it may not be ours to remove
            self._path.unlink(missing_ok=True)

    def _remove_remains(self) -> None:
        try:
            mode = self._path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise FileError(f"{self._path} is there and no socket")
        if somebody_listens(self._path):
            raise FileError(f"{self._path} belongs to another daemon that runs")
        self._path.unlink()

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(snapshot(self._server)).encode() + b"\n")
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await writer.drain()
        writer.close()
