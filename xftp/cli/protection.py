"""The options of `xftpd` for TLS: its certificate, and what has to be protected."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from xftp.server.tls import ServerTls, TlsPolicy

from .params import Command, with_options

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

_FILE = click.Path(dir_okay=False, path_type=Path)


def protection_options(command: Command) -> Command:
    """Add the options that `Protection` is made of."""
    return with_options(
        command,
        click.option(
            "--tls-cert",
            metavar="FILE",
            type=_FILE,
            help="The certificate and its chain, as PEM: then there is TLS. SIGHUP reads it again.",
        ),
        click.option(
            "--tls-key",
            metavar="FILE",
            type=_FILE,
            help="Its private key, as PEM [default: in the file of --tls-cert].",
        ),
        click.option(
            "--require-tls",
            type=click.Choice(["control", "data"]),
            help="Let nobody log in without TLS; with `data`, transfer nothing without it either.",
        ),
        click.option(
            "--tls-min",
            type=click.Choice(list(_VERSIONS)),
            default="1.2",
            show_default=True,
            help="The oldest version of TLS that is spoken.",
        ),
        click.option(
            "--implicit-tls-port",
            metavar="PORT",
            type=click.IntRange(0, 65535),
            help="Listen there too, for clients that begin with TLS (ftps:// URLs, port 990).",
        ),
        click.option(
            "--tls-session-reuse/--no-tls-session-reuse",
            default=True,
            help="Whether a data connection has to resume the TLS session of its control connection"
            "  [default: it has to]",
        ),
        click.option(
            "--tls-close-notify/--no-tls-close-notify",
            default=True,
            help="Whether an upload has to be ended within TLS  [default: it has to]",
        ),
    )


@dataclass(frozen=True, slots=True)
class Protection:
    """What the operator wants of TLS."""

    tls: ServerTls | None
    implicit_port: int | None
    """Where clients begin with TLS; 0: a free port; None: nowhere."""

    @classmethod
    def take(cls, values: dict[str, Any]) -> Protection:
        """Take the options out of the values of a command's, and read the certificate.

        Raises FileError, click.UsageError.
        """
        certificate, key = values.pop("tls_cert"), values.pop("tls_key")
        required, implicit_port = values.pop("require_tls"), values.pop("implicit_tls_port")
        policy = TlsPolicy(
            requires_control=required is not None,
            requires_data=required == "data",
            minimum_version=_VERSIONS[values.pop("tls_min")],
            requires_resumed=values.pop("tls_session_reuse"),
            requires_close_notify=values.pop("tls_close_notify"),
        )
        if certificate is not None:
            return cls(ServerTls(certificate, key, policy), implicit_port)
        if key is not None or required is not None or implicit_port is not None:
            raise click.UsageError("TLS needs a certificate: give --tls-cert FILE.")
        return cls(None, None)
