"""The commands on names of a server: `xftp ls`, `rm`, `rmdir`, `mkdir`, `mv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from xftp.client.url import FtpUrl

from .running import run
from .settings import session_options, settings_from
from .urls import Wanted, literal_option, one_wanted, read_url, several_urls, several_wanted

_urls = click.argument("urls", nargs=-1, required=True, metavar="URL...", callback=several_urls)


@click.command("ls")
@click.option("-l", "long", is_flag=True, help="Show kind, permissions, size and time too.")
@literal_option
@session_options
@click.argument("url", callback=one_wanted)
@click.pass_context
def ls_command(
    context: click.Context, /, url: Wanted, long: bool, literal: bool, **values: Any
) -> None:
    """List a directory of the server.

    Of 'ftp://host/dir/*.nc', in quotes, the names that fit.
    """
    from .remote import list_directory

    settings = settings_from(values)
    context.exit(run(lambda: list_directory(url.taken(literal), settings, long=long)))


@click.command("rm")
@click.option("-r", "--recursive", is_flag=True, help="Remove directories, with all in them.")
@literal_option
@session_options
@click.argument("urls", nargs=-1, required=True, metavar="URL...", callback=several_wanted)
@click.pass_context
def rm_command(
    context: click.Context,
    /,
    urls: Sequence[Wanted],
    recursive: bool,
    literal: bool,
    **values: Any,
) -> None:
    """Delete files of the server.

    'ftp://host/dir/*.tmp', in quotes, stands for all that fit.

    A symbolic link is deleted, not what it leads to.
    """
    from .remote import remove

    settings = settings_from(values)
    _need_names([each.url for each in urls])
    wanted = [each.taken(literal) for each in urls]
    context.exit(run(lambda: remove(wanted, settings, recursive=recursive)))


@click.command("rmdir")
@session_options
@_urls
@click.pass_context
def rmdir_command(context: click.Context, /, urls: Sequence[FtpUrl], **values: Any) -> None:
    """Remove empty directories of the server."""
    from .remote import remove_directories

    settings = settings_from(values)
    _need_names(urls)
    context.exit(run(lambda: remove_directories(urls, settings)))


@click.command("mkdir")
@click.option(
    "-p",
    "--parents",
    is_flag=True,
    help="Make those that lead to it too; one that is there is no error.",
)
@session_options
@_urls
@click.pass_context
def mkdir_command(
    context: click.Context, /, urls: Sequence[FtpUrl], parents: bool, **values: Any
) -> None:
    """Make directories on the server."""
    from .remote import make_directories

    settings = settings_from(values)
    _need_names(urls)
    context.exit(run(lambda: make_directories(urls, settings, parents=parents)))


@click.command("mv")
@session_options
@_urls
@click.argument("new", metavar="NEWPATH")
@click.pass_context
def mv_command(context: click.Context, /, urls: Sequence[FtpUrl], new: str, **values: Any) -> None:
    """Rename a file of the server, or move files into a directory.

    NEWPATH is relative to the login directory, or a URL. What ends in / or is a directory keeps
    the names of the files.
    """
    from .remote import rename

    settings = settings_from(values)
    _need_names(urls)
    path = _path_on_the_same_server(context, urls, new)
    context.exit(run(lambda: rename(urls, path, settings)))


def _need_names(urls: Sequence[FtpUrl]) -> None:
    """Raise click.UsageError for a URL that names the login directory or the root."""
    for url in urls:
        if not url.path.strip("/"):
            raise click.UsageError(f"{replace(url, password=None)} names no file or directory")


def _path_on_the_same_server(context: click.Context, urls: Sequence[FtpUrl], new: str) -> str:
    """Give the path that NEWPATH means. Raises click.UsageError."""
    path, places = new, {(url.host, url.port) for url in urls}
    if "://" in new:
        target = read_url(new, context, context.command.params[-1])
        places.add((target.host, target.port))
        path = target.path
    if len(places) > 1:
        raise click.UsageError("mv renames on one server; all URLs have to name the same")
    return path


FILE_COMMANDS = (ls_command, rm_command, rmdir_command, mkdir_command, mv_command)
