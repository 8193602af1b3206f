"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import report
from bench.cases import Direction, all_cases, xftp
from bench.processes import BenchError
from bench.runner import run_all, run_one, workplace, write_sparse

UNITS = {"": 1, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
MEMORY_CONNECTIONS = 8
MEMORY_GOAL_MB = 100
SPARE_BYTES = 1 << 30


def size(text: str) -> int:
    """Return the bytes in "2GiB", "500MB" or "4096"."""
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text)
    if match is None or match[2] not in UNITS or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 2GiB or 500MB")
    return int(match[1]) * UNITS[match[2]]


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--size", type=size, help="of the file moved (default 2GiB; 10GiB with --memory)")
    add("--repeat", type=positive, default=3, metavar="R", help="rounds; the median counts")
    add("--directory", type=Path, default=Path("/dev/shm"), help="best one that is in memory")
    add("--only", metavar="REGEX", help="only cases such as 'xftpd [+] xftp, get, N=4'")
    add("--json", type=Path, metavar="FILE", help="also write every run to FILE")
    add("--markdown", action="store_true", help="print the table as the README has it")
    add("--memory", action="store_true", help="peak memory with a 10 GiB sparse file instead")
    return parser.parse_args()


def compare(options: argparse.Namespace, console: Console) -> None:
    """Measure all programs and print the table."""
    size_bytes: int = options.size or 2 << 30
    cases = [case for case in all_cases() if re.search(options.only or "", case.label)]
    if not cases:
        raise BenchError(f"--only {options.only}: no such case")
    progress = Console(stderr=True)
    with (
        workplace(options.directory, 2 * size_bytes + SPARE_BYTES) as place,
        progress.status("") as status,
    ):
        results = run_all(cases, place, size_bytes, options.repeat, status.update)
    rows = report.rows(results)
    title = (
        f"{size_bytes / 2**30:g} GiB over loopback, {options.directory}, median of "
        f"{options.repeat}. {report.machine()}"
    )
    if options.markdown:
        print(report.markdown_table(rows, title))
    else:
        console.print(report.terminal_table(rows, title))
    for reason in results.left_out:
        progress.print(f"Left out: {reason}", markup=False)
    if options.json:
        text = json.dumps(report.as_json(results, rows, options.repeat), indent=2)
        options.json.write_text(text + "\n")


def memory(options: argparse.Namespace, console: Console) -> bool:
    """Print the peak memory of both ends; return whether it stays below the goal."""
    size_bytes: int = options.size or 10 << 30
    table = Table(title=f"{size_bytes / 2**30:g} GiB sparse file, N={MEMORY_CONNECTIONS}")
    table.add_column("direction")
    for heading in ("seconds", "client peak MB", "server peak MB"):
        table.add_column(heading, justify="right")
    peak_bytes = 0
    with workplace(options.directory, size_bytes + SPARE_BYTES) as place:
        source = place.root / "file"
        write_sparse(source, size_bytes)
        for direction in (Direction.GET, Direction.PUT):
            usage = run_one(xftp(direction, MEMORY_CONNECTIONS), place, source)
            ends = (usage.client_peak_bytes, usage.server_peak_bytes)
            peak_bytes = max(peak_bytes, *ends)
            table.add_row(
                direction.value, f"{usage.wall_s:.1f}", *(f"{end / 1e6:.1f}" for end in ends)
            )
    console.print(table)
    return peak_bytes < MEMORY_GOAL_MB * 1e6


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Not a terminal: wide enough for every column rather than folded to 80.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    try:
        if options.memory:
            if not memory(options, console):
                print(f"More than {MEMORY_GOAL_MB} MB.", file=sys.stderr)
                return 1
        else:
            compare(options, console)
    except BenchError as error:
        print(f"The benchmark stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
