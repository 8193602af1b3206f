"""`xftpd user`: the accounts in a users file, added, changed, listed and removed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from xftp.errors import ArgumentError, XftpError
from xftp.server.accounts import ANONYMOUS_NAMES
from xftp.server.accounts_file import (
    LIMITS,
    Entry,
    check_home,
    check_name,
    edited_users,
    read_users,
)
from xftp.server.passwords import hash_password
from xftp.server.permissions import (
    ALL,
    READ_ONLY,
    Permission,
    parse_permissions,
    permission_names,
)

from .homes import prepare_home
from .params import rate
from .terminal import Interrupted, ask_password, can_ask

_Value = TypeVar("_Value")

WORD = "user"
"""The word behind `xftpd` that means this and not the daemon's options."""

FILE_VARIABLE = "XFTPD_USERS"


# -- values ------------------------------------------------------------------------------------


def _name(_: click.Context, param: click.Parameter, name: str) -> str:
    return _checked(lambda: check_name(name), name)


def _home(_: click.Context, param: click.Parameter, home: Path | None) -> Path | None:
    return home if home is None else _checked(lambda: check_home(home), home)


def _checked(check: Callable[[], None], value: _Value) -> _Value:
    try:
        check()
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error
    return value


def _permissions(
    _: click.Context, param: click.Parameter, text: str | None
) -> frozenset[Permission] | None:
    """Read `list,read,write`, `read-only` or `all`. Raises click.BadParameter."""
    if text is None:
        return None
    named = {"all": ALL, "read-only": READ_ONLY}
    try:
        return named.get(text) or parse_permissions(text.split(","))
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def _size(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read a number of bytes, with K, M, G or T behind it. Raises click.BadParameter."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", text.upper())
    size = int(found[1]) << 10 * " KMGT".index(found[2] or " ") if found else 0
    if size < 1:
        raise click.BadParameter(f"{text!r} is no size, as 500M or 20G")
    return size


_users_option = click.option(
    "--users",
    "path",
    metavar="FILE",
    envvar=FILE_VARIABLE,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The users file of `xftpd --users` [default: that of {FILE_VARIABLE}].",
)
_stdin_option = click.option(
    "--stdin", "from_stdin", is_flag=True, help="Take the password from standard input: one line."
)
_name_argument = click.argument("name", callback=_name)


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn errors into what click shows, with exit status 1."""
    try:
        yield
    except XftpError as error:
        raise click.ClickException(str(error)) from error
    except Interrupted as error:
        raise click.Abort from error


def _new_password(name: str, from_stdin: bool) -> str:
    """Get a password for `name`. Raises click.ClickException if there is none to get."""
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif can_ask():
        password = ask_password(f"New password for {name}: ")
        if password != ask_password("The same again: "):
            raise click.ClickException("the passwords differ, nothing was changed")
    else:
        raise click.UsageError("there is no terminal to ask for the password: use --stdin")
    if not password:
        raise click.ClickException("a password is needed")
    return password


# -- commands ----------------------------------------------------------------------------------


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
def user_commands() -> None:
    """Keep the accounts in a users file. A running xftpd takes changes at SIGHUP."""


@user_commands.command("add")
@_users_option
@_stdin_option
@click.option(
    "--home",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    callback=_home,
    help="What the user sees as /; relative to the daemon's --root [default: that].",
)
@click.option(
    "--permissions",
    metavar="LIST",
    default="read-only",
    show_default=True,
    callback=_permissions,
    help="What the user may do: some of list,read,write,append,delete,rename,mkdir, or `all`.",
)
@click.option(
    "--create-home", is_flag=True, help="Make the home if it is not there, for the file's owner."
)
@click.option(
    "--root",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The daemon's --root, to find a relative home.",
)
@click.option("--pam", "asks_pam", is_flag=True, help="Let PAM compare the password.")
@click.option("--sessions", type=click.IntRange(1), metavar="N", help="Sessions at once.")
@click.option(
    "--connections", type=click.IntRange(1, 64), metavar="N", help="Data connections per transfer."
)
@click.option(
    "--limit-rate",
    metavar="RATE",
    callback=rate,
    help="Bytes per second of all transfers of the user together: 500k, 2M, or 50mbit.",
)
@click.option(
    "--quota",
    metavar="SIZE",
    callback=_size,
    help="Bytes of all files beneath the home: 500M, 20G.",
)
@click.option(
    "--quota-entries", type=click.IntRange(1), metavar="N", help="Files and directories there."
)
@click.option(
    "--idle-timeout",
    type=click.IntRange(1),
    metavar="SECONDS",
    help="End a session without command and transfer after this time [default: the daemon's].",
)
@click.option(
    "--stall-timeout",
    type=click.IntRange(1),
    metavar="SECONDS",
    help="End a transfer of which nothing moves for this time [default: the daemon's].",
)
@_name_argument
def add_command(
    path: Path,
    from_stdin: bool,
    home: Path | None,
    create_home: bool,
    root: Path | None,
    asks_pam: bool,
    permissions: frozenset[Permission],
    sessions: int | None,
    connections: int | None,
    limit_rate: float | None,
    quota: int | None,
    quota_entries: int | None,
    idle_timeout: int | None,
    stall_timeout: int | None,
    name: str,
) -> None:
    """Add a user, and the file if there is none. `anonymous` gets no password."""
    entry = Entry(
        home=home,
        permissions=permissions,
        sessions=sessions,
        connections=connections,
        rate_bytes_per_s=None if limit_rate is None else int(limit_rate),
        quota_bytes=quota,
        quota_entries=quota_entries,
        idle_timeout_s=idle_timeout,
        stall_timeout_s=stall_timeout,
        pam=asks_pam,
    )
    with _sentences():
        if os.path.exists(path) and name in read_users(path):  # before anybody types a password
            raise click.ClickException(f"{path}: there is a user {name} already")
        if name == ANONYMOUS_NAMES[0] and asks_pam:
            raise click.UsageError("anonymous has no password that PAM could compare")
        if home is not None:
            note = prepare_home(home, root, path, create=create_home)
            if note is not None:
                click.echo(note, err=True)
        if name != ANONYMOUS_NAMES[0] and not asks_pam:
            password = _new_password(name, from_stdin)
            entry = replace(entry, password_hash=hash_password(password))
        with edited_users(path) as users:
            if name in users:
                raise click.ClickException(f"{path}: there is a user {name} already")
            users[name] = entry


@user_commands.command("passwd")
@_users_option
@_stdin_option
@_name_argument
def passwd_command(path: Path, from_stdin: bool, name: str) -> None:
    """Give a user a new password, which PAM compares no more.

    Sessions with the old one end at the next SIGHUP.
    """
    with _sentences():
        _find(read_users(path), name, path)
        if name == ANONYMOUS_NAMES[0]:
            raise click.ClickException(f"{name} logs in with any password")
        password_hash = hash_password(_new_password(name, from_stdin))
        with edited_users(path) as users:
            found = _find(users, name, path)
            users[name] = replace(found, password_hash=password_hash, pam=False)


@user_commands.command("list")
@_users_option
def list_command(path: Path) -> None:
    """List the users, what they may do, their homes and limits."""
    with _sentences():
        for name, entry in sorted(read_users(path).items()):
            click.echo(
                "\t".join(
                    (
                        name,
                        ",".join(permission_names(entry.permissions)) or "nothing",
                        str(entry.home or "."),
                        *_limits(entry),
                    )
                )
            )


def _limits(entry: Entry) -> Iterator[str]:
    for key in LIMITS:
        if (value := getattr(entry, key)) is not None:
            yield f"{key}={value}"
    if entry.pam:
        yield "pam"


@user_commands.command("remove")
@_users_option
@_name_argument
def remove_command(path: Path, name: str) -> None:
    """Remove a user; files stay. Sessions of the user end at the next SIGHUP."""
    with _sentences():
        _find(read_users(path), name, path)
        with edited_users(path) as users:
            _find(users, name, path)
            del users[name]


def _find(users: dict[str, Entry], name: str, path: Path) -> Entry:
    if name not in users:
        raise click.ClickException(f"{path}: there is no user {name}")
    return users[name]
