"""The commands that talk to no server: `xftp plan` and `xftp doctor`.

What they need is imported when they run, so that the others start as fast as without them.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import click

from .params import connection_count

_MAX_WIDTH = 100


def _parsed(_: click.Context, param: click.Parameter, text: str | None) -> object:
    """Read the value of an option of `xftp plan`. Raises click.BadParameter."""
    if text is None:
        return None
    from tuning.errors import TuningError

    from .plan import PARSERS

    try:
        return PARSERS[param.name or ""](text)
    except TuningError as error:
        raise click.BadParameter(str(error)) from error


def _count(context: click.Context, param: click.Parameter, text: str | None) -> int | None:
    return None if text is None else connection_count(context, param, text)


@click.command("plan")
@click.option(
    "--rate", "rate_bps", metavar="RATE", callback=_parsed, help="Of the link, as 50mbit."
)
@click.option("--rtt", "rtt_s", metavar="TIME", callback=_parsed, help="Round-trip time, as 600ms.")
@click.option(
    "--loss",
    metavar="SHARE",
    callback=_parsed,
    help="Segments lost whatever the load, as 1e-3 or 0.1%.  [default: none]",
)
@click.option(
    "--size",
    "size_bytes",
    metavar="SIZE",
    callback=_parsed,
    help="Of the file, as 1GB.  [default: 100MB]",
)
@click.option(
    "--profile",
    metavar="NAME",
    callback=_parsed,
    help="Rate (of downloads) and RTT by name: t1-geo, italsat, hybrid, hts-geo, leo, lan.",
)
@click.option(
    "--max-connections",
    metavar="N",
    callback=_count,
    help="Plan no more data connections than that.  [default: 8]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one line of JSON.")
@click.pass_context
def plan_command(context: click.Context, /, as_json: bool, **values: Any) -> None:
    """Compute what a link needs, and how long a file takes.

    --rate and --rtt go before those of the profile. Nothing is sent and nothing changed.
    """
    from tuning.errors import TuningError

    from .plan import Request, advice_lines, advise

    given = {name: value for name, value in values.items() if value is not None}
    profile = given.get("profile")
    if profile is not None:
        given = {"rate_bps": profile.down_bps, "rtt_s": profile.rtt_s} | given
    for name, option, example in (("rate_bps", "--rate", "50mbit"), ("rtt_s", "--rtt", "600ms")):
        if name not in given:
            raise click.UsageError(f"a plan needs {option} (like {example}) or --profile")
    try:
        advice = advise(Request(**given), _options_of(context, "get"))
    except TuningError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(advice.as_json()))
    else:
        for line in advice_lines(advice):
            click.echo(line)


def _options_of(context: click.Context, command: str) -> frozenset[str]:
    """Give the long options that another command of the same group has."""
    group = context.find_root().command
    found = group.commands.get(command) if isinstance(group, click.Group) else None
    return frozenset(name for each in found.params for name in each.opts) if found else frozenset()


@click.command("doctor")
@click.option(
    "--fix", "wants_fix", is_flag=True, help="As root: load xftp's congestion control (BPF)."
)
@click.option(
    "--strict", "is_strict", is_flag=True, help="Exit with 1 for what is limited too, and tuning."
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as one line of JSON.")
@click.pass_context
def doctor_command(
    context: click.Context, /, wants_fix: bool, is_strict: bool, as_json: bool
) -> None:
    """Look at what this machine has, and say how to mend what it lacks.

    \b
    Exit status 0: files can be transferred. What is limited, or missing for
                   tuning only, makes them slower on long links and is shown.
                1: something that every transfer needs is missing, or --fix
                   failed; with --strict, anything is limited or missing.

    What only the lab needs never counts. Nothing is changed but by --fix, which changes no sysctl.
    """
    from .doctor import diagnose, diagnosis_lines, load_algorithms
    from .machine import Machine

    machine = Machine()
    fix = load_algorithms(machine) if wants_fix else None
    diagnosis = diagnose(machine, fix, is_strict=is_strict)
    if as_json:
        click.echo(json.dumps(diagnosis.as_json()))
    else:
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
        # In a pipe click takes the colours away; NO_COLOR: https://no-color.org.
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        for line in diagnosis_lines(diagnosis, width):
            click.echo(line, color=False if plain else None)
    context.exit(diagnosis.exit_status)
