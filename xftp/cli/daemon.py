"""`xftpd`: the daemon's command line and configuration file."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import tomllib
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import xftp
from xftp.errors import FileError, XftpError
from xftp.server import Account, Server, Settings
from xftp.server.proxies import Network

from .limits import limit_options, raise_descriptor_limit, take_limits
from .logs import start_logging
from .params import buffer_size, initial_window, link_rate
from .privileges import Identity, PrivilegeError, unreadable
from .running import prepare_streams
from .settings import tuning_options
from .status import WORD as STATUS_WORD
from .status import status_command
from .users import DaemonCommand, join_accounts
from .watching import Watching, watching_options

if TYPE_CHECKING:
    from .tuning import DaemonTuning

logger = logging.getLogger(__name__)

DaemonCommand.beside[STATUS_WORD] = status_command

DEFAULT_PORT = 2121


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


def _identity(ctx: click.Context, param: click.Parameter, text: str | None) -> Identity | None:
    """Look the user up that the daemon shall be."""
    try:
        return None if text is None else Identity.find(text).as_root()
    except PrivilegeError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _ipv4(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else str(ipaddress.IPv4Address(value))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no IPv4 address", ctx, param) from error


def _networks(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...]:
    """Read networks, 192.0.2.0/24 or single addresses."""
    try:
        return tuple(ipaddress.ip_network(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


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


@click.command(
    cls=DaemonCommand,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`xftpd user --help` tells how accounts with hashed passwords are kept in a file.",
)
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
    help="A user who may log in. Others on this machine can see it: prefer --users.",
)
@click.option(
    "--users",
    "users_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Users with hashed passwords, rights and limits of their own; SIGHUP reads it again.",
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
    "--public-address",
    "--public-host",
    "public_host",
    metavar="IPV4",
    callback=_ipv4,
    help="Address to tell clients, behind NAT.",
)
@click.option("--fsync", is_flag=True, help="Acknowledge an upload only once it is on the disk.")
@click.option(
    "--proxy-from",
    "proxies",
    metavar="CIDR",
    multiple=True,
    callback=_networks,
    help="Load balancers: their connections begin with a PROXY header, which is believed.",
)
@limit_options
@watching_options
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
@click.option(
    "--run-as",
    metavar="USER[:GROUP]",
    callback=_identity,
    help="As root: be USER once the port is bound and the settings are read.",
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
    users_file: Path | None,
    connections: int,
    passive_ports: tuple[int, ...],
    public_host: str | None,
    proxies: tuple[Network, ...],
    login_timeout: float,
    idle_timeout: float,
    data_timeout: float,
    stall_timeout: float,
    stop_timeout: float,
    fsync: bool,
    run_as: Identity | None,
    verbose: int,
    log_format: str,
    log_file: Path | None,
    allowed_algorithms: tuple[str, ...],
    max_buffer: int,
    max_initial_window: int,
    max_rate: float | None,
    **wish: Any,
) -> None:
    """Serve the files below --root by FTP, over several data connections at once.

    Prints `listening on HOST:PORT` once it does. SIGTERM and Ctrl-C let running transfers finish
    (for --stop-timeout at most); a second one ends them.
    """
    prepare_streams()
    given = [Account(name, root, password, writable) for name, password in users]
    if anonymous:
        given.append(Account("anonymous", root, None, writable))
    if not given and users_file is None:
        raise click.UsageError(
            "Nobody could log in: give --anonymous, --user NAME:PASSWORD or --users FILE."
        )

    def accounts() -> tuple[Account, ...]:
        return join_accounts(given, users_file, root)

    try:
        start_logging(verbose, log_format, log_file)
        watching = Watching.take(wish)
    except FileError as error:
        raise click.ClickException(str(error)) from error
    limits = take_limits(wish)
    tuner = _tuner(wish, allowed_algorithms, max_buffer, max_initial_window, max_rate)
    settings = Settings(
        accounts=_checked(accounts),
        connection_limit=connections,
        passive_ports=passive_ports,
        public_host=public_host,
        proxies=proxies,
        limits=limits,
        login_timeout_s=login_timeout,
        idle_timeout_s=idle_timeout,
        open_timeout_s=data_timeout,
        stall_timeout_s=stall_timeout,
        stop_timeout_s=stop_timeout,
        sync_uploads=fsync,
        tuner=tuner,
    )
    too_few = raise_descriptor_limit(limits, connections)
    if too_few is not None:
        logger.warning("%s", too_few)

    def bound() -> None:
        if run_as is not None:
            _become(run_as, settings)
        for problem in tuner.problems():
            logger.warning("%s", problem)

    try:
        _run(_serve(settings, host, port, accounts, bound, watching))
    except (XftpError, PrivilegeError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"cannot listen on {host}:{port}: {error.strerror or error}"
        ) from error


def _checked(accounts: Callable[[], tuple[Account, ...]]) -> tuple[Account, ...]:
    try:
        return accounts()
    except XftpError as error:
        raise click.ClickException(str(error)) from error


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


def _become(identity: Identity, settings: Settings) -> None:
    """Drop root for good, and see that what is served can be read then. Raises PrivilegeError."""
    identity.assume()
    for account in settings.accounts:
        if unreadable(account.root):
            raise PrivilegeError(f"{identity.name} may not read {account.root}")
    logger.info("running as %s", identity.name)


async def _serve(
    settings: Settings,
    host: str,
    port: int,
    accounts: Callable[[], tuple[Account, ...]],
    bound: Callable[[], None],
    watching: Watching,
) -> None:
    """Serve until a signal ends it.

    accounts: reads them again, for SIGHUP; bound: called once the port is, before anybody is
    served.
    """
    server = Server(settings)
    await server.start(host, port)
    async with AsyncExitStack() as stack:
        try:
            await watching.start(server, stack)
            bound()
        except BaseException:
            await server.close()
            raise
        await _serve_until_signalled(server, host, accounts, watching)


async def _serve_until_signalled(
    server: Server, host: str, accounts: Callable[[], tuple[Account, ...]], watching: Watching
) -> None:
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, None)
    loop.add_signal_handler(signal.SIGHUP, _reload, server, accounts, watching)
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on {shown}:{server.server_port}", flush=True)
    await signals.get()
    ending = asyncio.create_task(server.shut_down(server.settings.stop_timeout_s))
    again = asyncio.create_task(signals.get())
    await asyncio.wait((ending, again), return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not ending.done():
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending
        await server.close()


def _reload(
    server: Server, accounts: Callable[[], tuple[Account, ...]], watching: Watching
) -> None:
    """Read the accounts again; those that cannot be read leave everything as it is."""
    watching.reopen()
    try:
        server.reload(accounts())
    except XftpError as error:
        logger.error("the accounts stay as they were: %s", error)
    else:
        logger.info("the accounts were read again")


if __name__ == "__main__":
    main()
