"""`--version`, in the same words for every command."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

import xftp

from .params import Command

ELSEWHERE = (
    "Full speed and all features need Linux. Elsewhere (macOS, BSD) the transfers are plain "
    "asyncio: no sendfile, no late binding of records to connections, no RTT and no count of "
    "retransmissions in the reports. That is not tested. Windows is not supported."
)


def version_option(program: str) -> Callable[[Command], Command]:
    """Add --version to a command."""

    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            click.echo(f"{program} {xftp.__version__} ({sys.platform})")
            if sys.platform != "linux":
                click.echo(ELSEWHERE)
            context.exit()

    return click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the version and exit.",
    )
