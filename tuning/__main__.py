"""python -m tuning load | unload | list: the BPF congestion control of this machine.

Exit status: 0 done, 1 could not be done, 2 usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import congestion, routes
from .errors import TuningError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "load":
            _report("loaded", congestion.load(options.names or None))
        elif options.command == "unload":
            _report("unloaded", congestion.unload(options.names or None))
            if left := routes.remove_leftovers():
                print(f"removed the routes that killed transfers left: {', '.join(left)}")
        else:
            _list()
    except TuningError as error:
        print(f"tuning: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tuning", description="TCP congestion control as BPF programs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command, help_ in (
        ("load", "put algorithms into the kernel, until unload or reboot (root)"),
        ("unload", "remove them and everything load made (root)"),
    ):
        one = commands.add_parser(command, help=help_)
        one.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    commands.add_parser("list", help="show what there is and what an ordinary user may choose")
    return parser


def _report(what: str, names: Sequence[str]) -> None:
    print(f"{what}: {', '.join(names) if names else 'nothing new'}")


def _list() -> None:
    available, allowed = congestion.available(), congestion.allowed()
    for name in sorted({*available, *congestion.names()}):
        if name in allowed:
            state = "everyone"
        elif name in available:
            state = "root only"
        else:
            state = "not loaded"
        algorithm = congestion.ALGORITHMS.get(name)
        print(f"{name:15} {state:10} {algorithm.summary if algorithm else 'of the kernel'}")


if __name__ == "__main__":
    sys.exit(main())
