"""The daemon's configuration file: TOML with the options of the command line, by their names."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click

from .params import Command

_NOT_IN_A_FILE = ("--config", "--version", "--help")


def config_option(command: Command) -> Command:
    """Add --config, which gives the options that the command line does not."""
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_read,
        is_eager=True,
        expose_value=False,
        help="TOML file with any of the options below, e.g. `port = 21`.",
    )(command)


def _read(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """Make what the file says the defaults. Raises click.BadParameter."""
    if path is None:
        return
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", ctx, param) from error
    names = {
        word.removeprefix("--"): option.name
        for option in ctx.command.params
        for word in option.opts
        if word not in _NOT_IN_A_FILE
    }
    unknown = [key for key in values if key not in names]
    if unknown:
        raise click.BadParameter(f"{path}: there is no option {unknown[0]!r}", ctx, param)
    wrong = [key for key, value in values.items() if not _is_option_value(value)]
    if wrong:
        raise click.BadParameter(f"{path}: {wrong[0]!r} is no text, number or list", ctx, param)
    several = {option.name for option in ctx.command.params if getattr(option, "multiple", False)}
    ctx.default_map = {
        names[key]: [value] if names[key] in several and isinstance(value, str) else value
        for key, value in values.items()
    }


def _is_option_value(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int | float)
