"""Fuzz the targets with atheris, one after the other: `make fuzz`, `python -m tests.fuzz --help`.

What was found to be worth trying stays in the directory of `--work`, beside the inputs that are
kept in the repository. An input that breaks a promise is left there as NAME/crash-…; put a small
form of it into `tests/fuzz/corpus/NAME/` when it is mended, and every run of the tests tries it.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

from .targets import CORPUS, TARGETS

_ROOT = Path(__file__).parents[2]
_PATIENCE_S = 60
_MOST_MIB = 1024
"""What one target may take of memory: it is a finding if it needs more."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="of each target [%(default)s]")
    parser.add_argument(
        "--work", type=Path, default=_ROOT / "fuzz-results", help="where inputs are [%(default)s]"
    )
    given = parser.parse_args()
    for name in given.names:
        if name not in TARGETS:
            parser.error(f"there is no target {name}: {', '.join(TARGETS)}")
    return given


def _fuzz(name: str, seconds: int, work: Path) -> bool:
    """Fuzz one target; tell whether nothing was found."""
    found = work / name
    found.mkdir(parents=True, exist_ok=True)
    print(f"== {name}: {seconds} s", flush=True)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.one_target", name),
            *(f"-max_total_time={seconds}", f"-timeout={_PATIENCE_S}"),
            *(f"-rss_limit_mb={_MOST_MIB}", f"-artifact_prefix={found}/", "-print_final_stats=1"),
            *(str(found), str(CORPUS / name)),
        ],
        cwd=_ROOT,
        check=False,
    )
    return ended.returncode == 0


def main() -> int:
    """Fuzz what is asked for; 1 if any promise was broken."""
    given = _arguments()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: say pip install '.[fuzz]'", file=sys.stderr)
        return 2
    broken = [name for name in given.names or TARGETS if not _fuzz(name, given.seconds, given.work)]
    print(f"broken: {', '.join(broken)}; see {given.work}" if broken else "nothing was found")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
