"""The options that only `xftp mirror` has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--delete", is_flag=True, help="Remove from TARGET what SOURCE does not have."),
    click.option(
        "--checksum",
        is_flag=True,
        help="Compare the contents of files of the same size (the server's HASH), not times.",
    ),
    click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
    click.option(
        "--include",
        "includes",
        multiple=True,
        metavar="PATTERN",
        help="Take these although an --exclude fits; without --exclude take only these.",
    ),
    click.option(
        "--exclude",
        "excludes",
        multiple=True,
        metavar="PATTERN",
        help="Leave these out on both sides: *.tmp, cache/ (a directory), docs/**/*.html.",
    ),
    click.option("--json", is_flag=True, help="Print a line for each thing done, and a summary."),
)


def mirror_options(command: Command) -> Command:
    """Add them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
