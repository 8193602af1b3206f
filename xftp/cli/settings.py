"""The options that several commands share, and the values they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from xftp.client.options import Existing, Family
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS

from .params import connection_count, rate

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person chose on the command line."""

    user: str | None = None
    """Name to log in with; the one of the URL goes before it."""

    netrc_file: Path | None = None
    """Where passwords are looked for; None: NETRC or ~/.netrc."""

    family: Family = "any"
    """Which addresses of a host name are tried."""

    passive: bool = True
    """Connect to the server for data."""

    verbose: bool = False
    """Show the control connection and every data connection."""

    quiet: bool = False
    """Show errors only."""

    connections: int = MULT_DEFAULT_CONNECTIONS
    """Data connections wanted."""

    limit_rate: float | None = None
    """Bytes per second of one transfer; None: no limit."""

    retries: int = 0
    """New tries after a lost connection."""

    existing: Existing | None = None
    """What to do with a file that is there; None: ask, or refuse where nobody can be asked."""

    preserve_times: bool = True
    """Give the copy the time of the original."""

    json: bool = False
    """Print reports on standard output."""


def session_options(command: Command) -> Command:
    """Add the options of everything that talks to a server."""
    return _with(
        command,
        click.option("--user", metavar="NAME", help="Log in as NAME (a user in the URL wins)."),
        click.option(
            "--netrc-file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Look for passwords in FILE instead of ~/.netrc.",
        ),
        click.option(
            "--active/--passive",
            default=False,
            help="Who opens data connections: the server, or this side (default).",
        ),
        click.option("-4", "family", flag_value="ipv4", help="Use IPv4 only."),
        click.option("-6", "family", flag_value="ipv6", help="Use IPv6 only."),
        click.option("-v", "--verbose", is_flag=True, help="Show the control connection."),
        click.option("-q", "--quiet", is_flag=True, help="Show errors only."),
    )


def transfer_options(command: Command) -> Command:
    """Add the options of everything that moves files."""
    return _with(
        command,
        click.option(
            "-n",
            "--connections",
            metavar="N",
            callback=connection_count,
            default=str(MULT_DEFAULT_CONNECTIONS),
            show_default=True,
            help="Data connections for one file; cut to what both ends allow.",
        ),
        click.option(
            "--limit-rate",
            metavar="RATE",
            callback=rate,
            help="The most bytes per second: 500k, 2M (k is 1024, as in curl), or 50mbit.",
        ),
        click.option(
            "--retries",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="Connect again and go on, up to N times, when the connection is lost.",
        ),
        click.option("--overwrite", "existing", flag_value="overwrite", help="Replace files."),
        click.option(
            "--resume", "existing", flag_value="resume", help="Go on where a transfer stopped."
        ),
        click.option("--skip", "existing", flag_value="skip", help="Leave files that are there."),
        click.option(
            "--preserve-times/--no-preserve-times",
            default=True,
            help="Give the copy the time of the original (default), or not.",
        ),
    )


def json_option(command: Command) -> Command:
    """Add --json."""
    return _with(
        command,
        click.option(
            "--json", is_flag=True, help="Print a report per file on standard output, one per line."
        ),
    )


def settings_from(values: dict[str, Any]) -> Settings:
    """Make the settings from what click parsed, and take it out of `values`."""
    chosen = {
        name: value
        for name in Settings.__dataclass_fields__
        if (value := values.pop(name, None)) is not None
    }
    if "active" in values:
        chosen["passive"] = not values.pop("active")
    settings = Settings(**chosen)
    if settings.verbose and settings.quiet:
        raise click.UsageError("--verbose and --quiet contradict each other")
    return settings


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
