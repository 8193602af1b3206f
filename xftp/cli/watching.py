"""The options of `xftpd` for whoever watches it: logs, metrics, the socket of `xftpd status`."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from xftp.errors import FileError
from xftp.server import Server
from xftp.server.metrics import MetricsServer
from xftp.server.status import StatusSocket, somebody_listens
from xftp.server.transfer_log import TransferLog

from .params import Command, with_options

logger = logging.getLogger(__name__)

NO_SOCKET = "none"


def runtime_directories() -> list[Path]:
    """Give where the socket may be, the best place first.

    RUNTIME_DIRECTORY is systemd's (systemd.exec(5)), XDG_RUNTIME_DIR a user's.
    """
    found = [Path(name) for name in os.environ.get("RUNTIME_DIRECTORY", "").split(":") if name]
    if os.geteuid() == 0:
        found.append(Path("/run"))
    if "XDG_RUNTIME_DIR" in os.environ:
        found.append(Path(os.environ["XDG_RUNTIME_DIR"]))
    own = Path(tempfile.gettempdir()) / f"xftpd-{os.geteuid()}"
    return [*found, own]


def socket_name(port: int | str) -> str:
    """Give the name of the socket of the daemon on this port; `*`: a pattern for all."""
    return f"xftpd-{port}.sock"


def default_socket(port: int) -> Path:
    """Give where the daemon on this port has its socket unless told otherwise. Raises OSError."""
    directory = runtime_directories()[0]
    if not directory.exists():
        directory.mkdir(mode=0o700)
    if directory.stat().st_uid != os.geteuid():
        raise PermissionError(f"{directory} is another user's")
    for remains in directory.glob(socket_name("*")):  # of daemons that were killed
        if not somebody_listens(remains):
            remains.unlink(missing_ok=True)
    return directory / socket_name(port)


def _address(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, int] | None:
    """Read HOST:PORT, [IPV6]:PORT or PORT."""
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is no HOST:PORT", ctx, param)
    return host.strip("[]") or "127.0.0.1", int(port)


_OPTIONS = (
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How the log is written; json is one object a line.",
    ),
    click.option(
        "--log-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Log to this file instead of standard error; it may be rotated at any time.",
    ),
    click.option(
        "--transfer-log",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Note every transfer in this file, in the form of xferlog; SIGHUP reopens it.",
    ),
    click.option(
        "--metrics",
        "metrics_address",
        metavar="[HOST:]PORT",
        callback=_address,
        help="Serve metrics for Prometheus here; HOST is 127.0.0.1 if not given.",
    ),
    click.option(
        "--status-socket",
        metavar="PATH",
        help="Where `xftpd status` asks [default: xftpd-PORT.sock in /run or the user's runtime "
        "directory]; `none` for nowhere.",
    ),
)


def watching_options(command: Command) -> Command:
    """Give a command the options that `Watching` is made of, and those of the log."""
    return with_options(command, *_OPTIONS)


@dataclass
class Watching:
    """What runs beside the server for those who watch it."""

    transfer_log: TransferLog | None
    metrics_address: tuple[str, int] | None
    status_socket: str | None

    @classmethod
    def take(cls, values: dict[str, Any]) -> Watching:
        """Take the options out of the values of a command's. Raises FileError."""
        path = values.pop("transfer_log")
        log = None if path is None else TransferLog(path)
        return cls(log, values.pop("metrics_address"), values.pop("status_socket"))

    async def start(self, server: Server, stack: AsyncExitStack) -> None:
        """Begin; what ends it is put on `stack`. Raises XftpError."""
        if self.transfer_log is not None:
            stack.callback(self.transfer_log.close)
            server.shared.watch.listeners.append(self.transfer_log.note)
        if self.metrics_address is not None:
            metrics = MetricsServer(server, *self.metrics_address)
            stack.push_async_callback(metrics.stop)
            logger.info("metrics on %s:%d", self.metrics_address[0], metrics.port)
        await self._start_socket(server, stack)

    async def _start_socket(self, server: Server, stack: AsyncExitStack) -> None:
        if self.status_socket == NO_SOCKET:
            return
        try:
            chosen = self.status_socket
            path = default_socket(server.server_port) if chosen is None else Path(chosen)
            status = StatusSocket(server, path)
            await status.start()
        except (OSError, FileError) as error:
            if self.status_socket is not None:
                raise
            logger.info("no socket for xftpd status: %s", error)
        else:
            stack.push_async_callback(status.stop)

    def reopen(self) -> None:
        """Go on in new files, for logrotate."""
        if self.transfer_log is None:
            return
        try:
            self.transfer_log.reopen()
        except FileError as error:
            logger.error("the transfer log stays where it was: %s", error)
