"""The options that several commands share, and the values they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from xftp.client.options import Existing, Family, Verify

from .params import (
    AUTO,
    Command,
    algorithm,
    buffer_size,
    connection_count,
    initial_window,
    link_rate,
    port_range,
    profile_name,
    rate,
    with_options,
)
from .tls_options import tls_options


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

    listen_ports: tuple[int, ...] = ()
    """Where the server may connect to; none: any free port."""

    assume_xftpd: bool = False
    """The server is one of our own kind: send the first commands before its greeting."""

    no_memory: bool = False
    """Neither use nor keep what is learnt of servers and paths."""

    tls: bool = False
    """Protect sessions with ftp:// URLs by TLS too."""

    ca_file: Path | None = None
    """Certificates that are trusted; None: those of the system."""

    insecure: bool = False
    """Do not check who the server is."""

    clear_data: bool = False
    """Protect the control connection only."""

    verbose: bool = False
    """Show the control connection and every data connection."""

    quiet: bool = False
    """Show errors only."""

    connections: int | None = None
    """Data connections wanted; None: as many as pay."""

    limit_rate: float | None = None
    """Bytes per second of one transfer; None: no limit."""

    retries: int = 0
    """New tries after a lost connection."""

    existing: Existing | None = None
    """What to do with a file that is there; None: ask, or refuse where nobody can be asked."""

    preserve_times: bool = True
    """Give the copy the time of the original."""

    fsync: bool = False
    """See a download on the disk before it is done."""

    verify: Verify = "auto"
    """Compare hashes of both ends after a transfer."""

    json: bool = False
    """Print reports on standard output."""

    profile: str | None = None
    """Name of the link, which tells rate and round-trip time (tuning.profiles)."""

    link_rate_bps: float | None = None
    """Rate of the link in bits per second; None: not known."""

    send_buffer_bytes: int | None = None
    """Send buffer of each data connection; None: the system's."""

    receive_buffer_bytes: int | None = None
    """Receive buffer of each data connection; None: the system's."""

    congestion: str | None = None
    """Congestion-control algorithm of the data connections; None: the system's."""

    initial_window_segments: int | None = None
    """Initial window of each data connection; None: the system's."""

    strict_tuning: bool = False
    """Refuse to transfer where a setting of the sockets is not granted."""


def session_options(command: Command) -> Command:
    """Add the options of everything that talks to a server."""
    return with_options(
        tls_options(command),
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
        click.option(
            "--listen-ports",
            metavar="FIRST-LAST",
            callback=port_range,
            help="Ports of this side where the server connects [default: any].",
        ),
        click.option("-4", "only_ipv4", is_flag=True, help="Use IPv4 only."),
        click.option("-6", "only_ipv6", is_flag=True, help="Use IPv6 only."),
        click.option(
            "--assume-xftpd",
            is_flag=True,
            help="The server is xftpd: spare a round trip even if it is not remembered.",
        ),
        click.option(
            "--no-memory",
            is_flag=True,
            help="Do not remember servers and paths, and do not use what is remembered.",
        ),
        click.option("-v", "--verbose", is_flag=True, help="Show the control connection."),
        click.option("-q", "--quiet", is_flag=True, help="Show errors only."),
    )


def transfer_options(command: Command) -> Command:
    """Add the options of everything that moves files one by one."""
    return moving_options(existing_options(command))


def existing_options(command: Command) -> Command:
    """Add the options that say what becomes of a file that is there."""
    return with_options(
        command,
        click.option("--overwrite", is_flag=True, help="Replace files."),
        click.option("--resume", is_flag=True, help="Go on where a transfer stopped."),
        click.option("--skip", is_flag=True, help="Leave files that are there."),
    )


def moving_options(command: Command) -> Command:
    """Add the options of everything that moves files."""
    return with_options(
        command,
        click.option(
            "-n",
            "--connections",
            metavar="N",
            callback=connection_count,
            default=AUTO,
            show_default=True,
            help="Data connections for one file, cut to what both ends allow, or as many as pay.",
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
        click.option(
            "--preserve-times/--no-preserve-times",
            default=True,
            help="Give the copy the time of the original (default), or not.",
        ),
        click.option(
            "--fsync",
            is_flag=True,
            help="A download is done only once it is on the disk. (Whether an upload is, is the"
            " server's choice: xftpd sees to it.)",
        ),
        click.option(
            "--verify/--no-verify",
            default=None,
            callback=_verify,
            help="Compare the hashes of both ends and mend what differs. Default where the server"
            " has HASH: it costs no round trip with xftpd, one with others, and a second of one"
            " core at both ends for a gigabyte or two; worth leaving out only on a fast network"
            " that is trusted. --verify also tries older commands (XSHA256, XMD5, XCRC), and"
            " refuses to transfer where there is none.",
        ),
    )


def _verify(_: click.Context, param: click.Parameter, wanted: bool | None) -> Verify | None:
    if wanted is None:
        return None
    return "always" if wanted else "never"


def tuning_options(command: Command) -> Command:
    """Add the options that set the sockets of both ends."""
    return with_options(
        command,
        click.option(
            "--profile",
            metavar="NAME",
            callback=profile_name,
            help="The link: t1-geo, italsat, hybrid, hts-geo, leo, lan, or auto (with --rate).",
        ),
        click.option(
            "--rate",
            "link_rate_bps",
            metavar="RATE",
            callback=link_rate,
            help="Rate of the link in bits/s, as 50mbit: fill it from the first byte, paced.",
        ),
        click.option(
            "--sndbuf",
            "send_buffer_bytes",
            metavar="BYTES",
            callback=buffer_size,
            help="Send buffer of each data connection, as 4M.",
        ),
        click.option(
            "--rcvbuf",
            "receive_buffer_bytes",
            metavar="BYTES",
            callback=buffer_size,
            help="Receive buffer of each data connection, as 4M.",
        ),
        click.option(
            "--cc",
            "congestion",
            metavar="NAME",
            callback=algorithm,
            help="Congestion control of the data connections; xftp doctor lists what there is.",
        ),
        click.option(
            "--initial-window",
            "initial_window_segments",
            metavar="SEGMENTS",
            callback=initial_window,
            help="Segments that a data connection sends before the first acknowledgement.",
        ),
    )


def strict_option(command: Command) -> Command:
    """Add --strict-tuning."""
    return with_options(
        command,
        click.option(
            "--strict-tuning",
            is_flag=True,
            help="Do not transfer if a setting of the sockets is not granted.",
        ),
    )


def json_option(command: Command) -> Command:
    """Add --json."""
    return with_options(
        command,
        click.option(
            "--json", is_flag=True, help="Print a report per file on standard output, one per line."
        ),
    )


_EXISTING: dict[str, Existing] = {
    "overwrite": "overwrite",
    "resume": "resume",
    "skip": "skip",
}
_FAMILIES: dict[str, Family] = {"only_ipv4": "ipv4", "only_ipv6": "ipv6"}


def _take_one(values: dict[str, Any], meanings: Mapping[str, object], names: str) -> Any:
    """Take flags of which one may be given; give what it means. Raises click.UsageError."""
    given = [meaning for flag, meaning in meanings.items() if values.pop(flag, False)]
    if len(given) > 1:
        raise click.UsageError(f"{names} contradict each other")
    return given[0] if given else None


def settings_from(values: dict[str, Any]) -> Settings:
    """Make the settings from what click parsed, and take it out of `values`.

    Raises click.UsageError for options that contradict each other.
    """
    values["existing"] = _take_one(values, _EXISTING, "--overwrite, --resume and --skip")
    values["family"] = _take_one(values, _FAMILIES, "-4 and -6")
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
