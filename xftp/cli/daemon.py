"""`xftpd`: the daemon's command line."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import click

from xftp.errors import FileError, XftpError, system_reason
from xftp.server import Settings
from xftp.server.proxies import Network

from . import descriptors
from .admission import Admission, admission_options
from .config_file import config_option
from .granting import granting_options, take_tuner
from .limits import limit_options, raise_descriptor_limit, take_limits
from .logs import start_logging
from .network_options import network_options
from .privileges import Identity, PrivilegeError
from .protection import Protection, protection_options
from .running import command_line, guarded, loop_factory
from .serving import Service
from .status import WORD as STATUS_WORD
from .status import status_command
from .users import WORD as USER_WORD
from .users import user_commands
from .version import version_option
from .watching import Watching, watching_options

logger = logging.getLogger(__name__)

_BESIDE: dict[str, click.Command] = {USER_WORD: user_commands, STATUS_WORD: status_command}
"""Further commands, by the word that means them."""


class DaemonCommand(click.Command):
    """The daemon's command, with others beside it: what it takes itself are options only."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Give the context of the command that `args` mean."""
        if args and args[0] in _BESIDE:
            command = _BESIDE[args[0]]
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the context is of."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def _identity(ctx: click.Context, param: click.Parameter, text: str | None) -> Identity | None:
    """Look the user up that the daemon shall be."""
    try:
        return None if text is None else Identity.find(text).as_root()
    except PrivilegeError as error:
        raise click.BadParameter(str(error), ctx, param) from error


@click.command(
    cls=DaemonCommand,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`xftpd user --help` tells how accounts with hashed passwords are kept in a file, "
    "`xftpd status --help` how a running daemon is asked how it fares.",
)
@config_option
@admission_options
@network_options
@protection_options
@click.option(
    "-n",
    "--connections",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Data connections of one transfer at most.",
)
@click.option(
    "--fsync/--no-fsync",
    default=True,
    help="Acknowledge an upload only once it is on the disk (default), or as soon as the kernel"
    " has it.",
)
@limit_options
@watching_options
@granting_options
@click.option(
    "--run-as",
    metavar="USER[:GROUP]",
    callback=_identity,
    help="As root: be USER once the port is bound and the settings are read.",
)
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice: every command and reply.")
@version_option("xftpd")
def xftpd_command(
    host: str,
    port: int,
    connections: int,
    passive_ports: tuple[int, ...],
    standing_port: int | None,
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
    **others: Any,
) -> None:
    """Serve the files below --root by FTP, over several data connections at once.

    Prints `listening on HOST:PORT` once it does. SIGTERM and Ctrl-C let running transfers finish
    (for --stop-timeout at most); a second one ends them.
    """
    admission = Admission.take(others)
    try:
        start_logging(verbose, log_format, log_file)
        watching = Watching.take(others)
        protection = Protection.take(others)
    except FileError as error:
        raise click.ClickException(str(error)) from error
    limits = take_limits(others)
    tuner = take_tuner(others)
    settings = Settings(
        accounts=admission.first_accounts(),
        pam_service=admission.pam_service,
        connection_limit=connections,
        passive_ports=passive_ports,
        standing_port=standing_port,
        public_host=public_host,
        proxies=proxies,
        tls=protection.tls,
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
    service = Service(
        settings,
        host,
        port,
        admission.accounts,
        watching,
        tuner.problems,
        run_as,
        protection.implicit_port,
    )
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(service.run())
    except (XftpError, PrivilegeError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"cannot listen on {host}:{port}: {system_reason(error)}"
        ) from error


def main() -> None:
    """Run `xftpd` with the arguments of the process and end it."""
    descriptors.occupy(leads_nowhere=True)
    descriptors.make_streams()
    sys.exit(guarded(lambda: command_line(xftpd_command, "xftpd"), "xftpd"))


if __name__ == "__main__":
    main()
