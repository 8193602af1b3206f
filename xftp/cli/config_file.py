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
    options = {
        word.removeprefix("--"): option
        for option in ctx.command.params
        for word in option.opts
        if word not in _NOT_IN_A_FILE
    }
    unknown = [key for key in values if key not in options]
    if unknown:
        raise click.BadParameter(f"{path}: there is no option {unknown[0]!r}", ctx, param)
    ctx.default_map = {}
    for key, value in values.items():
        try:
            ctx.default_map[options[key].name] = _given(value, options[key])
        except ValueError as error:
            raise click.BadParameter(f"{path}: {key!r} {error}", ctx, param) from error


def _given(value: object, option: click.Parameter) -> object:
    """Give a value as the command line would, which checks it. Raises ValueError."""
    if getattr(option, "is_flag", False):
        if not isinstance(value, bool):
            raise ValueError("is true or false")
        return value
    if getattr(option, "count", False) and isinstance(value, bool):
        return int(value)
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str | int | float) for each in several):
        raise ValueError("is no text, number or list")
    if any(isinstance(each, bool) for each in several):
        raise ValueError("is neither true nor false, it takes a value")
    texts = [str(each) for each in several]
    if getattr(option, "multiple", False):
        return texts
    if isinstance(value, list):
        raise ValueError("is not a list")
    return texts[0]
