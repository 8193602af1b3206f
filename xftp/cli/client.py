"""The command `xftp`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from xftp.client.url import FtpUrl

from . import descriptors
from .file_commands import FILE_COMMANDS
from .local_commands import doctor_command, plan_command
from .mirror_options import mirror_options
from .running import command_line, guarded, run
from .settings import (
    json_option,
    moving_options,
    session_options,
    settings_from,
    strict_option,
    transfer_options,
    tuning_options,
)
from .terminal import confess_typed_ahead
from .urls import Wanted, literal_option, one_url, read_url, several_wanted, shown
from .version import ELSEWHERE, version_option

EPILOG = f"""\
A URL is ftp://[USER@]HOST[:PORT]/PATH; the path is relative to the login directory. ftpes:// is the
same protected by TLS, and so is ftp:// with --tls; ftps:// is for servers that begin with TLS (port
990). Passwords come from the URL, from XFTP_PASSWORD, from ~/.netrc (or the file that NETRC names),
or from a prompt.

Exit status: 0 done, 1 transfer failed, 2 usage, 3 could not connect or log in, 4 a file problem on
this side, 130 ended by Ctrl-C.

{ELSEWHERE}
"""
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT, epilog=EPILOG, no_args_is_help=False)
@version_option("xftp")
def xftp_command() -> None:
    """Move files by FTP, each over several data connections at once."""


@xftp_command.command("get")
@transfer_options
@tuning_options
@strict_option
@click.option("-o", "--output", metavar="PATH", help="Write to PATH: file, directory, or - .")
@literal_option
@json_option
@session_options
@click.argument("urls", nargs=-1, required=True, metavar="URL...", callback=several_wanted)
@click.pass_context
def get_command(
    context: click.Context,
    /,
    urls: Sequence[Wanted],
    output: str | None,
    literal: bool,
    **values: Any,
) -> None:
    """Fetch files into this directory.

    'ftp://host/dir/*.nc', in quotes, stands for all that fit.

    What a transfer that was cut left is gone on with if the file is still the same on the server,
    and it is said so; --overwrite begins anew.
    """
    from .get import STDOUT, check_downloads, get_files, output_of

    settings = settings_from(values)
    output = output_of(output)
    if output == STDOUT and settings.json:
        raise click.UsageError("-o - and --json would both write to standard output")
    if output == STDOUT and settings.existing == "resume":
        raise click.UsageError("standard output cannot be resumed")
    wanted = [each.taken(literal) for each in urls]
    check_downloads(wanted, output)
    context.exit(run(lambda: get_files(wanted, output, settings)))


@xftp_command.command("put")
@transfer_options
@tuning_options
@strict_option
@json_option
@session_options
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.argument("url", metavar="URL")
@click.pass_context
def put_command(context: click.Context, /, files: Sequence[str], url: str, **values: Any) -> None:
    """Send files (- is standard input) to the server.

    A URL that ends in / or names a directory keeps the names of the files.
    """
    from .put import check_uploads, put_files

    settings = settings_from(values)
    target = _last_url(context, url)
    check_uploads(files, target, settings)
    context.exit(run(lambda: put_files(files, target, settings)))


@xftp_command.command("mirror")
@moving_options
@tuning_options
@strict_option
@mirror_options
@session_options
@click.argument("source")
@click.argument("target")
@click.pass_context
def mirror_command(context: click.Context, /, source: str, target: str, **values: Any) -> None:
    """Make the directory TARGET like SOURCE: move what changed.

    A file has changed if its size or its time differs. Symbolic links are left out.
    """
    from .mirror import mirror_files, mirror_order

    order = mirror_order(source, target, values)
    settings = settings_from(values)
    context.exit(run(lambda: mirror_files(order, settings)))


@xftp_command.command("shell")
@transfer_options
@tuning_options
@strict_option
@session_options
@click.argument("url", required=False, callback=one_url)
@click.pass_context
def shell_command(context: click.Context, /, url: FtpUrl | None, **values: Any) -> None:
    """Type commands at a prompt, or read them from standard input."""
    from .shell import run_shell

    settings = settings_from(values)
    context.exit(run_shell(url, settings))


for each in (*FILE_COMMANDS, plan_command, doctor_command):
    xftp_command.add_command(each)


def _last_url(context: click.Context, text: str) -> FtpUrl:
    if "://" not in text:
        raise click.UsageError(
            "the last argument is the URL to send to, like ftp://host/directory/,"
            f" not {shown(text)!r}"
        )
    return read_url(text, context, context.command.params[-1])


def run_program() -> int:
    """Run `xftp` with the arguments of the process, after `occupy`; give its exit status."""
    descriptors.make_streams()
    status = guarded(lambda: command_line(xftp_command, "xftp"))
    confess_typed_ahead()
    return status


def main() -> None:
    """Run `xftp` with the arguments of the process and end it."""
    descriptors.occupy()
    sys.exit(run_program())


if __name__ == "__main__":
    main()
