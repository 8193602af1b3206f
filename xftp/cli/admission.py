"""The options of `xftpd` that say who may log in, and to what."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from xftp.errors import FileError, XftpError
from xftp.server import Account
from xftp.server.accounts import ANONYMOUS_NAMES
from xftp.server.accounts_file import read_accounts
from xftp.server.pam import DEFAULT_SERVICE

from .params import Command, with_options


def _named_passwords(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Read NAME:PASSWORD, as often as it is given."""
    pairs = [value.partition(":")[::2] for value in values]
    if not all(name and password for name, password in pairs):
        raise click.BadParameter("a user is given as NAME:PASSWORD", ctx, param)
    return tuple(pairs)


def _directory(ctx: click.Context, param: click.Parameter, value: object) -> Path:
    """Read the name of a directory that exists; a configuration file may hold anything."""
    path = Path(str(value))
    if not os.path.isdir(path):
        raise click.BadParameter(f"there is no directory {path}", ctx, param)
    return path


def admission_options(command: Command) -> Command:
    """Add the options that `Admission` is made of."""
    return with_options(
        command,
        click.option(
            "--root",
            metavar="DIRECTORY",
            callback=_directory,
            required=True,
            help="The directory that users see as /. Nothing outside can be reached.",
        ),
        click.option("--anonymous", is_flag=True, help="Let anybody log in as `anonymous`."),
        click.option(
            "--writable", is_flag=True, help="Allow uploads and changes; else only reading."
        ),
        click.option(
            "--user",
            "users",
            metavar="NAME:PASSWORD",
            multiple=True,
            callback=_named_passwords,
            help="A user who may log in. Others on this machine can see it: prefer --users.",
        ),
        click.option(
            "--users",
            "users_file",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Users with hashed passwords, rights and limits of their own; SIGHUP reads it"
            " again.",
        ),
        click.option(
            "--pam-service",
            metavar="NAME",
            default=DEFAULT_SERVICE,
            show_default=True,
            help="The file of /etc/pam.d for users of the users file that have pam = true.",
        ),
    )


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may log in: the accounts of the command line, and those of the users file."""

    root: Path
    given: tuple[Account, ...]
    users_file: Path | None
    pam_service: str

    @classmethod
    def take(cls, values: dict[str, Any]) -> Admission:
        """Take the options out of the values of a command's.

        Raises click.UsageError if nobody could log in.
        """
        root, writable = values.pop("root"), values.pop("writable")
        given = [Account(name, root, password, writable) for name, password in values.pop("users")]
        if values.pop("anonymous"):
            given.append(Account(ANONYMOUS_NAMES[0], root, None, writable))
        users_file = values.pop("users_file")
        if not given and users_file is None:
            raise click.UsageError(
                "Nobody could log in: give --anonymous, --user NAME:PASSWORD or --users FILE."
            )
        return cls(root, tuple(given), users_file, values.pop("pam_service"))

    def accounts(self) -> tuple[Account, ...]:
        """Give the accounts as they are now. Raises XftpError if the users file is wrong."""
        return join_accounts(self.given, self.users_file, self.root)

    def first_accounts(self) -> tuple[Account, ...]:
        """Give the accounts to begin with. Raises click.ClickException."""
        try:
            return self.accounts()
        except XftpError as error:
            raise click.ClickException(str(error)) from error


def join_accounts(
    given: Sequence[Account], users_file: Path | None, root: Path
) -> tuple[Account, ...]:
    """Give the accounts of the command line and those of the users file.

    Raises FileError if it cannot be used, or if both know a name.
    """
    kept = () if users_file is None else read_accounts(users_file, root)
    twice = {account.name for account in given} & {account.name for account in kept}
    if twice:
        raise FileError(f"{users_file}: {min(twice)} is given on the command line too")
    return (*given, *kept)
