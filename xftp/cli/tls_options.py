"""The options of the client for TLS, and what they mean for a URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from xftp.client.tls import TlsOptions, security_of
from xftp.client.url import FtpUrl
from xftp.errors import ArgumentError

from .params import Command, with_options
from .terminal import say

if TYPE_CHECKING:
    from .settings import Settings

WARNING = (
    "WARNING: --insecure: the server's certificate is not checked. Whoever is on the way can read "
    "and change everything, the password too"
)


def tls_options(command: Command) -> Command:
    """Add the options that protect a session, or leave it less protected."""
    return with_options(
        command,
        click.option(
            "--tls",
            is_flag=True,
            help="Protect ftp:// sessions too, as ftpes:// does: without TLS nothing moves.",
        ),
        click.option(
            "--cacert",
            "ca_file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="With TLS: trust the certificates in FILE (PEM) instead of the system's.",
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="With TLS: do not check who the server is. Anybody in between can read all.",
        ),
        click.option(
            "--clear-data",
            is_flag=True,
            help="With TLS: protect commands and password only; files and listings go in clear.",
        ),
    )


def tls_of(settings: Settings) -> TlsOptions:
    """Translate the options, and say loudly, with -q too, if one gives protection up."""
    if settings.insecure:
        say(f"xftp: {WARNING}")
    return TlsOptions(
        required=settings.tls,
        ca_file=settings.ca_file,
        checks_certificate=not settings.insecure,
        protects_data=not settings.clear_data,
    )


def check_tls(url: FtpUrl, settings: Settings) -> None:
    """Refuse options that would protect nothing: whoever gives them believes that there is TLS.

    Raises ArgumentError.
    """
    if security_of(url.scheme, TlsOptions(required=settings.tls)) != "none":
        return
    given = {
        "--cacert": settings.ca_file is not None,
        "--insecure": settings.insecure,
        "--clear-data": settings.clear_data,
    }
    for option, is_given in given.items():
        if is_given:
            raise ArgumentError(
                f"{option} is for sessions with TLS: say --tls too, or ftpes://{url.host}"
            )
