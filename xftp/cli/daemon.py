"""`xftpd`: the daemon's command line and configuration file."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import sys
import tomllib
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import xftp
from xftp.errors import XftpError
from xftp.server import Account, Server, Settings

from .params import buffer_size, initial_window, link_rate
from .running import prepare_streams
from .settings import tuning_options

if TYPE_CHECKING:
    from .tuning import DaemonTuning

logger = logging.getLogger(__name__)

DEFAULT_PORT = 2121
_PATIENCE_S = 60.0


def _port_range(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Read a range of ports: 50000-50100."""
    if value is None:
        return ()
    first, dash, last = value.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise click.BadParameter(f"{value!r} is no range of ports like 50000-50100", ctx, param)
    if not 1024 <= int(first) <= int(last) <= 65535:
        raise click.BadParameter(f"{value}: ports go from 1024 to 65535, the lower one first")
    return tuple(range(int(first), int(last) + 1))


def _named_passwords(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Read NAME:PASSWORD, as often as it is given."""
    pairs = [value.partition(":")[::2] for value in values]
    if not all(name and password for name, password in pairs):
        raise click.BadParameter("a user is given as NAME:PASSWORD", ctx, param)
    return tuple(pairs)


def _directory(ctx: click.Context, param: click.Parameter, value: object) -> Path:
    """Read the name of a directory that exists; a configuration file may hold anything."""
    path = Path(str(value))
    if not path.is_dir():
        raise click.BadParameter(f"there is no directory {path}", ctx, param)
    return path


def _ipv4(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else str(ipaddress.IPv4Address(value))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no IPv4 address", ctx, param) from error


def _read_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """Let the configuration file give the options that the command line does not."""
    if path is None:
        return
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", ctx, param) from error
    names = {
        word.removeprefix("--"): option.name
        for option in ctx.command.params
        for word in option.opts
        if word not in ("--config", "--version", "--help")
    }
    unknown = [key for key in values if key not in names]
    if unknown:
        raise click.BadParameter(f"{path}: there is no option {unknown[0]!r}", ctx, param)
    wrong = [key for key, value in values.items() if not _is_option_value(value)]
    if wrong:
        raise click.BadParameter(f"{path}: {wrong[0]!r} is no text, number or list", ctx, param)
    several = {option.name for option in ctx.command.params if getattr(option, "multiple", False)}
    ctx.default_map = {
        names[key]: [value] if names[key] in several and isinstance(value, str) else value
        for key, value in values.items()
    }


def _is_option_value(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int | float)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_read_config,
    is_eager=True,
    expose_value=False,
    help="TOML file with any of the options below, e.g. `port = 21`.",
)
@click.option(
    "--root",
    metavar="DIRECTORY",
    callback=_directory,
    required=True,
    help="The directory that users see as /. Nothing outside can be reached.",
)
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--anonymous", is_flag=True, help="Let anybody log in as `anonymous`.")
@click.option("--writable", is_flag=True, help="Allow uploads and changes; else only reading.")
@click.option(
    "--user",
    "users",
    metavar="NAME:PASSWORD",
    multiple=True,
    callback=_named_passwords,
    help="A user who may log in. Others on this machine can see it: prefer --config.",
)
@click.option(
    "-n",
    "--connections",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Data connections of one transfer at most.",
)
@click.option(
    "--passive-ports",
    metavar="FIRST-LAST",
    callback=_port_range,
    help="Ports for data connections [default: any].",
)
@click.option(
    "--public-host", metavar="IPV4", callback=_ipv4, help="Address to tell clients, behind NAT."
)
@click.option(
    "--sessions", type=click.IntRange(1), default=500, show_default=True, help="Sessions at once."
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Close a session that is silent for this long.",
)
@click.option("--fsync", is_flag=True, help="Acknowledge an upload only once it is on the disk.")
@tuning_options
@click.option(
    "--allow-cc",
    "allowed_algorithms",
    metavar="NAME",
    multiple=True,
    help="A congestion control that clients may ask for [default: all that there are].",
)
@click.option(
    "--max-buffer",
    metavar="BYTES",
    default="64M",
    show_default=True,
    callback=buffer_size,
    help="The largest socket buffer that clients may ask for.",
)
@click.option(
    "--max-initial-window",
    metavar="SEGMENTS",
    default="1000",
    show_default=True,
    callback=initial_window,
    help="The largest initial window that clients may ask for.",
)
@click.option(
    "--max-rate",
    metavar="RATE",
    callback=link_rate,
    help="The highest rate in bits/s that clients may ask for, as 50mbit [default: any].",
)
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice: every command and reply.")
@click.version_option(xftp.__version__, prog_name="xftpd")
def main(
    root: Path,
    host: str,
    port: int,
    anonymous: bool,
    writable: bool,
    users: tuple[tuple[str, str], ...],
    connections: int,
    passive_ports: tuple[int, ...],
    public_host: str | None,
    sessions: int,
    idle_timeout: float,
    fsync: bool,
    verbose: int,
    allowed_algorithms: tuple[str, ...],
    max_buffer: int,
    max_initial_window: int,
    max_rate: float | None,
    **wish: Any,
) -> None:
    """Serve the files below --root by FTP, over several data connections at once.

    Prints `listening on HOST:PORT` once it does. SIGTERM and Ctrl-C let running transfers finish
    (for a minute at most); a second one ends them.
    """
    prepare_streams()
    accounts = [Account(name, root, password, writable) for name, password in users]
    if anonymous:
        accounts.append(Account("anonymous", root, None, writable))
    if not accounts:
        raise click.UsageError("Nobody could log in: give --anonymous or --user NAME:PASSWORD.")
    tuner = _tuner(wish, allowed_algorithms, max_buffer, max_initial_window, max_rate)
    settings = Settings(
        accounts=tuple(accounts),
        connection_limit=connections,
        passive_ports=passive_ports,
        public_host=public_host,
        session_limit=sessions,
        idle_timeout_s=idle_timeout,
        sync_uploads=fsync,
        tuner=tuner,
    )
    levels = {0: logging.WARNING, 1: logging.INFO}
    logging.basicConfig(
        level=levels.get(verbose, logging.DEBUG),
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    for problem in tuner.problems():
        logger.warning("%s", problem)
    try:
        _run(_serve(settings, host, port))
    except XftpError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"cannot listen on {host}:{port}: {error.strerror or error}"
        ) from error


def _tuner(
    wish: dict[str, Any],
    algorithms: tuple[str, ...],
    max_buffer: int,
    max_initial_window: int,
    max_rate: float | None,
) -> DaemonTuning:
    """Make what sets the data sockets, from the options of `tuning_options` and the limits."""
    from .tuning import DaemonTuning, Limits, Wish

    limits = Limits(
        algorithms=algorithms,
        buffer_bytes=max_buffer,
        initial_window_segments=max_initial_window,
        rate_bps=max_rate,
    )
    defaults = {"rate_bps" if name == "link_rate_bps" else name: v for name, v in wish.items()}
    return DaemonTuning(Wish(**defaults), limits)


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def _serve(settings: Settings, host: str, port: int) -> None:
    server = Server(settings)
    await server.start(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on {shown}:{server.server_port}", flush=True)
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, None)
    await signals.get()
    ending = asyncio.create_task(server.shut_down(_PATIENCE_S))
    again = asyncio.create_task(signals.get())
    await asyncio.wait((ending, again), return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not ending.done():
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending
        await server.close()


if __name__ == "__main__":
    main()
