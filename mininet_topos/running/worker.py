"""One run in a process of its own: `python -m mininet_topos.running.worker '{"experiment": …}'`.

Prints the outcome as one JSON object. Ends, with everything it made taken down, on SIGINT and
SIGTERM and when its standard input is closed: then its parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from ..errors import LabError, LeftOutError
from ..experiments.outcome import LEFT_OUT, Outcome
from ..experiments.registry import chosen
from ..experiments.spec import Point
from .scenario import run_point

NICENESS = -15
"""Of all programs of a run (setpriority(2)); the emulators ask for real time besides."""


AUTOGROUP = Path("/proc/self/autogroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which run a worker is to do."""

    experiment: str
    index: int
    """Of the point in `Experiment.points(quick)`."""

    quick: bool
    repeat: int
    seed: int

    def to_json(self) -> str:
        """Give the worker's argument."""
        return json.dumps(asdict(self))

    def point(self) -> Point:
        """Look the point up. Raises LabError."""
        return chosen([self.experiment])[0].points(self.quick)[self.index]


def work(order: Order) -> Outcome:
    """Do the run; a run that fails gives an outcome with the error."""
    point, began_s = order.point(), time.monotonic()
    try:
        return run_point(point, repeat=order.repeat, seed=order.seed)
    except LabError as error:
        left_out = isinstance(error, LeftOutError)
        return Outcome(
            series=point.series,
            x=point.x,
            repeat=order.repeat,
            seed=order.seed,
            seconds=round(time.monotonic() - began_s, 3),
            error=LEFT_OUT + str(error) if left_out else f"{type(error).__name__}: {error}",
        )


def _interrupt(number: int, frame: FrameType | None) -> None:
    # A second signal must not stop the tidying up that the first one began.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Interrupt this process when its standard input ends."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def _go_first() -> None:
    """Let the run, and all that it starts, go before the machine's other programs.

    Only root may; what it did not help shows in the outcome's lateness. Where the kernel groups
    processes by session (sched(7), autogroup), niceness counts within a session only, and the
    session has one of its own.
    """
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
        if AUTOGROUP.exists():
            AUTOGROUP.write_text(str(NICENESS))


def main() -> int:
    """Run one order; 0 if its outcome was printed."""
    _go_first()
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Whatever prints to standard output must not get between the outcome's bytes.
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        outcome = work(Order(**json.loads(sys.argv[1])))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    with os.fdopen(output, "w") as stream:
        json.dump(outcome.as_json(), stream, allow_nan=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
