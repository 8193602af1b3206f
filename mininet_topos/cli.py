"""xftp-lab: list | run NAME… | report. Exit status: 0 done, 1 failed, 2 usage, 4 a file problem."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from .errors import ExperimentError, LabError
from .experiments.registry import chosen, experiments
from .experiments.spec import Experiment
from .running.display import Display, describe_time
from .running.results import ResultsError
from .running.runner import Plan, Run, check_plan

FAILED, USAGE, FILE_PROBLEM = 1, 2, 4

RESULTS = Path("lab-results")

_directory = click.option(
    "--results",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=RESULTS,
    show_default=True,
    help="Directory of the results.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def lab() -> None:
    """Measure the published figures again, over emulated satellite links."""


@lab.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def list_command(names: Sequence[str]) -> None:
    """Show the rows: source, what is measured, how long it takes on this machine."""
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "measures", "source", "quick", "whole", "root"):
        table.add_column(heading, overflow="fold")
    for experiment in _chosen(names or ("all",)):
        table.add_row(
            experiment.name,
            f"{experiment.title}: {experiment.measures}",
            experiment.source,
            _time(experiment, quick=True),
            _time(experiment, quick=False),
            "yes" if experiment.needs_root else "no",
        )
    _output().print(table)


@lab.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--quick", is_flag=True, help="Fewer points and smaller files.")
@click.option(
    "--repeat",
    "repeats",
    type=int,
    default=1,
    show_default=True,
    help="Runs of each point, for means and 95% confidence intervals.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the first run.")
@click.option(
    "--at-once",
    type=int,
    default=None,
    help="Runs side by side at most. [default: what the cores allow]",
)
@click.option(
    "--missing",
    is_flag=True,
    help="Only what the results lack: runs that failed, were late or were not begun.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="WORD",
    help="Only series that have WORD in their names, such as bbr; other results stay. May be "
    "repeated.",
)
@_directory
def run_command(
    names: Sequence[str],
    quick: bool,
    repeats: int,
    seed: int,
    at_once: int | None,
    missing: bool,
    only: tuple[str, ...],
    directory: Path,
) -> int:
    """Run rows by NAME, such as A2; a letter is a whole chapter, `all` everything."""
    plan = Plan(
        experiments=_chosen(names),
        directory=directory,
        quick=quick,
        repeats=repeats,
        seed=seed,
        at_once=at_once,
        missing=missing,
        only=only,
    )
    try:
        check_plan(plan)
    except ExperimentError as error:
        raise click.UsageError(str(error)) from error
    console = Console(stderr=True)
    with _ending_like_ctrl_c(), Display(console, len(plan.wanted()), plan.expected_s()) as display:
        failures = Run(plan, display).execute()
    for failure in failures:
        _complain(failure)
    return FAILED if failures else 0


@lab.command("report")
@_directory
def report_command(directory: Path) -> int:
    """Write report.html and its pictures from the results."""
    # Matplotlib takes a second to import, which the other commands need not wait for.
    from .report.page import write_report

    page, judged = write_report(directory, experiments())
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "what", "verdict"):
        table.add_column(heading)
    for each in judged:
        table.add_row(each.experiment.name, each.experiment.title, each.summary)
    output = _output()
    output.print(table)
    output.print(f"wrote {page}", markup=False, highlight=False, soft_wrap=True)
    return 0


@contextlib.contextmanager
def _ending_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: with everything taken down.

    A shell's script starts what it puts in the background with SIGINT ignored: here it counts.
    """
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.signal(
        signal.SIGTERM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupt)


def _chosen(names: Sequence[str]) -> list[Experiment]:
    try:
        return chosen(names)
    except ExperimentError as error:
        raise click.UsageError(str(error)) from error


def _time(experiment: Experiment, *, quick: bool) -> str:
    plan = Plan(experiments=[experiment], directory=RESULTS, quick=quick)
    return describe_time(plan.expected_s())


def _output() -> Console:
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=_WIDTH_ELSEWHERE)


_WIDTH_ELSEWHERE = 100
"""Columns in a pipe or a file, where nobody tells how many there are: fits a mail, or a page."""


def _complain(problem: object) -> None:
    print(f"xftp-lab: {problem}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; give the exit status."""
    try:
        status = lab.main(arguments, prog_name="xftp-lab", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except ResultsError as error:
        _complain(error)
        return FILE_PROBLEM
    except LabError as error:
        _complain(error)
        return FAILED
    except click.ClickException as error:
        _complain(error.format_message())
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted; everything was taken down")
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
