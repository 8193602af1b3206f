"""The command `xftp`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import click

import xftp
from xftp.client.url import FtpUrl, parse_url
from xftp.errors import ArgumentError

from .local_commands import doctor_command, plan_command
from .mirror_options import mirror_options
from .running import guarded, prepare_streams, run
from .settings import (
    Settings,
    json_option,
    moving_options,
    session_options,
    settings_from,
    strict_option,
    transfer_options,
    tuning_options,
)
from .terminal import complain

ELSEWHERE = (
    "Full speed and all features need Linux. Elsewhere (macOS, BSD) the transfers are plain "
    "asyncio: no sendfile, no late binding of records to connections, no RTT and no count of "
    "retransmissions in the reports. That is not tested. Windows is not supported."
)
EPILOG = f"""\
A URL is ftp://[USER@]HOST[:PORT]/PATH; the path is relative to the login directory. Passwords come
from the URL, from XFTP_PASSWORD, from ~/.netrc (or the file that NETRC names), or from a prompt.

Exit status: 0 done, 1 transfer failed, 2 usage, 3 could not connect or log in, 4 a file problem on
this side, 130 ended by Ctrl-C.

{ELSEWHERE}
"""
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"xftp {xftp.__version__} ({sys.platform})")
        if sys.platform != "linux":
            click.echo(ELSEWHERE)
        context.exit()


@click.group(context_settings=CONTEXT, epilog=EPILOG, no_args_is_help=False)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def xftp_command() -> None:
    """Move files by FTP, each over several data connections at once."""


@xftp_command.command("get")
@transfer_options
@tuning_options
@strict_option
@click.option("-o", "--output", metavar="PATH", help="Write to PATH: file, directory, or - .")
@json_option
@session_options
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.pass_context
def get_command(
    context: click.Context, /, urls: Sequence[str], output: str | None, **values: Any
) -> None:
    """Fetch files into this directory."""
    from .get import STDOUT, get_files, plan_downloads

    settings = settings_from(values)
    if output == STDOUT and settings.json:
        raise click.UsageError("-o - and --json would both write to standard output")
    if output == STDOUT and settings.existing == "resume":
        raise click.UsageError("standard output cannot be resumed")
    downloads = plan_downloads([parse_url(url) for url in urls], output)
    context.exit(run(lambda: get_files(downloads, settings)))


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
    target = _last_url(url)
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
    """Make the directory TARGET like SOURCE, one of which is a URL; move only what changed.

    A file has changed if its size or its time differs. Symbolic links are left out.
    """
    from .mirror import mirror_files, mirror_order

    order = mirror_order(source, target, values)
    settings = settings_from(values)
    context.exit(run(lambda: mirror_files(order, settings)))


@xftp_command.command("ls")
@click.option("-l", "long", is_flag=True, help="Show kind, permissions, size and time too.")
@session_options
@click.argument("url")
@click.pass_context
def ls_command(context: click.Context, /, url: str, long: bool, **values: Any) -> None:
    """List a directory of the server."""
    from .remote import list_directory

    settings = settings_from(values)
    place = parse_url(url)
    context.exit(run(lambda: list_directory(place, settings, long=long)))


@xftp_command.command("rm")
@session_options
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.pass_context
def rm_command(context: click.Context, /, urls: Sequence[str], **values: Any) -> None:
    """Delete files of the server."""
    from .remote import remove

    _each(context, urls, values, remove)


@xftp_command.command("mkdir")
@session_options
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.pass_context
def mkdir_command(context: click.Context, /, urls: Sequence[str], **values: Any) -> None:
    """Make directories on the server."""
    from .remote import make_directory

    _each(context, urls, values, make_directory)


@xftp_command.command("mv")
@session_options
@click.argument("url")
@click.argument("new", metavar="NEWPATH")
@click.pass_context
def mv_command(context: click.Context, /, url: str, new: str, **values: Any) -> None:
    """Rename a file of the server; NEWPATH is relative to the login directory, or a URL."""
    from .remote import rename

    settings = settings_from(values)
    old = parse_url(url)
    path = new
    if "://" in new:
        target = parse_url(new)
        if (target.host, target.port) != (old.host, old.port):
            raise click.UsageError("mv renames on one server; both URLs have to name the same")
        path = target.path
    context.exit(run(lambda: rename(old, path, settings)))


@xftp_command.command("shell")
@transfer_options
@tuning_options
@strict_option
@session_options
@click.argument("url", required=False)
@click.pass_context
def shell_command(context: click.Context, /, url: str | None, **values: Any) -> None:
    """Type commands at a prompt, or read them from standard input."""
    from .shell import run_shell

    settings = settings_from(values)
    place = parse_url(url) if url else None
    context.exit(run_shell(place, settings))


xftp_command.add_command(plan_command)
xftp_command.add_command(doctor_command)


def _last_url(text: str) -> FtpUrl:
    if "://" not in text:
        raise ArgumentError(
            f"the last argument is the URL to send to, like ftp://host/directory/, not {text!r}"
        )
    return parse_url(text)


def _each(
    context: click.Context,
    urls: Sequence[str],
    values: dict[str, Any],
    work: Callable[[Sequence[FtpUrl], Settings], Coroutine[Any, Any, int]],
) -> None:
    settings = settings_from(values)
    places = [parse_url(url) for url in urls]
    for place in places:
        if not place.path.strip("/"):
            raise click.UsageError(f"{replace(place, password=None)} names no file or directory")
    context.exit(run(lambda: work(places, settings)))


def _command_line() -> int:
    try:
        status = xftp_command.main(prog_name="xftp", standalone_mode=False)
    except click.UsageError as error:
        complain(error.format_message())
        if error.ctx is not None:
            click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        return error.exit_code
    return status if isinstance(status, int) else 0


def main() -> None:
    """Run `xftp` with the arguments of the process and end it."""
    prepare_streams()
    sys.exit(guarded(_command_line))


if __name__ == "__main__":
    main()
