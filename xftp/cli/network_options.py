"""The options of `xftpd` for its addresses and ports: where it listens and what it tells."""

from __future__ import annotations

import ipaddress

import click

from xftp.server.proxies import Network

from .params import Command, port_range, with_options

DEFAULT_PORT = 2121


def _ipv4(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else str(ipaddress.IPv4Address(value))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no IPv4 address", ctx, param) from error


def _port_or_none(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    if value == "none":
        return None
    if not (value.isascii() and value.isdigit() and int(value) < 65536):
        raise click.BadParameter(f"{value!r} is no port; give a number or none", ctx, param)
    return int(value)


def _networks(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...]:
    """Read networks, 192.0.2.0/24 or single addresses."""
    try:
        return tuple(ipaddress.ip_network(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def network_options(command: Command) -> Command:
    """Add --host, --port, --passive-ports, --data-port, --public-address and --proxy-from."""
    return with_options(
        command,
        click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=DEFAULT_PORT,
            show_default=True,
            help="Port to listen on; 0 takes a free one.",
        ),
        click.option(
            "--passive-ports",
            metavar="FIRST-LAST",
            callback=port_range,
            help="Ports for data connections [default: any].",
        ),
        click.option(
            "--data-port",
            "standing_port",
            metavar="PORT|none",
            default="0",
            callback=_port_or_none,
            help="Where the data connections of all sessions may come, so that xftp need not ask "
            "first [default: the first of --passive-ports; without them the one below --port if "
            "it is free, else any].",
        ),
        click.option(
            "--public-address",
            "--public-host",
            "public_host",
            metavar="IPV4",
            callback=_ipv4,
            help="Address to tell clients, behind NAT.",
        ),
        click.option(
            "--proxy-from",
            "proxies",
            metavar="CIDR",
            multiple=True,
            callback=_networks,
            help="Load balancers: their connections begin with a PROXY header, which is believed.",
        ),
    )
