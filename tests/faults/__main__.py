"""Runs of xftp and xftpd in which one thing goes wrong: `make faults`.

    python -m tests.faults [--count N] [--seed S] [--jobs J]     draw N runs from the seed S
    python -m tests.faults --run 'fault=reset-all direction=down …'     one run again

Each failure is printed with the line that repeats it. The exit status is 0 if there was none.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

from .judging import tail
from .running import Outcome, run
from .scenario import BY_NAME, Range, Scenario, campaign, parse
from .support import allowed_here

TELL_EVERY = 20
"""Runs without problems, until one hears that it goes on."""

JOBS_PER_CORE = 2
"""Most of a run is waiting."""


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    if arguments.run:
        scenarios: Sequence[Scenario] = [parse(text) for text in arguments.run]
    else:
        allowed = allowed_here(with_long=not arguments.quick)
        print(f"seed {arguments.seed}, {arguments.count} runs, {_described(allowed)}", flush=True)
        scenarios = campaign(arguments.seed, arguments.count, allowed)
        scenarios = [each for each in scenarios if arguments.only in each.fault]
    started_s = time.monotonic()
    outcomes = []
    for outcome in _outcomes(scenarios, arguments.jobs, arguments.keep):
        outcomes.append(outcome)
        _tell(outcome, len(outcomes), len(scenarios))
    _summarise(outcomes, time.monotonic() - started_s)
    return int(any(outcome.problems for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="runs to draw")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--jobs", type=int, default=JOBS_PER_CORE * (os.cpu_count() or 1))
    parser.add_argument("--quick", action="store_true", help="nothing that waits long, as in CI")
    parser.add_argument("--only", default="", metavar="WORD", help="faults that hold WORD")
    parser.add_argument("--run", action="append", metavar="SCENARIO", help="this one")
    parser.add_argument("--keep", action="store_true", help="leave the files of what failed")
    return parser.parse_args()


def _described(allowed: Range) -> str:
    without = [name for name in Range.__dataclass_fields__ if not getattr(allowed, name)]
    return ", ".join(name.replace("with_", "without ") for name in without) or "everything"


def _outcomes(scenarios: Sequence[Scenario], jobs: int, keep: bool) -> Iterator[Outcome]:
    with ProcessPoolExecutor(jobs, initializer=_leave_interrupts) as pool:
        running: list[Future[Outcome]] = [pool.submit(play, each, keep) for each in scenarios]
        try:
            for future in as_completed(running):
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _leave_interrupts() -> None:
    """Let Ctrl-C end the parent: a run that has begun ends what it has started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def play(scenario: Scenario, keep: bool) -> Outcome:
    """Run one scenario in this process; what breaks the harness is a problem too."""
    try:
        return asyncio.run(run(scenario, keep=keep))
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        return Outcome(scenario, [f"{type(error).__name__}: {error}"], False, 0.0, [])


def _tell(outcome: Outcome, number: int, count: int) -> None:
    if not outcome.problems:
        if number % TELL_EVERY == 0:
            print(f"{number}/{count}", flush=True)
        return
    print(f"\n{number}/{count} FAILED: {outcome.scenario}")
    for problem in outcome.problems:
        print(f"  {problem}")
    print(f"  again: make faults FAULTS_ARGS=\"--run '{outcome.scenario}'\"", flush=True)
    if outcome.kept_in is not None:
        print(f"  kept in {outcome.kept_in}")
        for log in sorted(Path(outcome.kept_in, "logs").glob("*.err")):
            print(f"  {log.name}:\n{tail(log)}", flush=True)


def _summarise(outcomes: Sequence[Outcome], seconds: float) -> None:
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    print(f"\n{len(outcomes)} runs in {seconds:.0f} s, {failed} failed")
    print(f"{'fault':18} {'runs':>4} {'came':>4} {'went on':>7} {'failed':>6} {'longest':>8}")
    for name in BY_NAME:
        those = [outcome for outcome in outcomes if outcome.scenario.fault == name]
        if those:
            count = Counter[str]()
            for outcome in those:
                count["came"] += outcome.happened
                count["went on"] += outcome.statuses[:1] == [0]
                count["failed"] += bool(outcome.problems)
            longest_s = max(outcome.seconds for outcome in those)
            print(
                f"{name:18} {len(those):4} {count['came']:4} {count['went on']:7}"
                f" {count['failed']:6} {longest_s:6.1f} s"
            )


if __name__ == "__main__":
    sys.exit(main())
