"""The parent of all runs: a worker process per run, as many at once as do not disturb each other.

Every run says whether its emulators and hosts kept to their times. One whose did not is done
again, alone, when all others are done; if it is late even then it stays in the results, marked, and
is not judged.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from tuning import congestion
from tuning.errors import TuningError

from ..errors import ExperimentError, LabError, MissingToolError
from ..experiments.outcome import Outcome
from ..experiments.spec import SETUP_S, Experiment, Scenario
from ..experiments.table import place
from . import machine, results
from .bytecode import compile_programs
from .lateness import worst
from .scenario import algorithms
from .schedule import USABLE_SHARE, Capacity, makespan_s
from .worker import Order, work

_PROJECT = Path(__file__).parents[2]

STOP_TIMEOUT_S = 30.0
"""For a worker to take its topology down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run in the plan."""

    order: Order
    series: str
    x: float
    cores: float
    seconds: float
    limit_s: float
    alone: bool = False
    computed: bool = False
    """Nothing is run: it needs no process of its own."""

    @property
    def title(self) -> str:
        """Name it for people."""
        repeat = f" #{self.order.repeat + 1}" if self.order.repeat else ""
        alone = " (again, alone)" if self.alone else ""
        return f"{self.order.experiment} {self.series} {place(self.x)}{repeat}{alone}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run, and how."""

    experiments: Sequence[Experiment]
    directory: Path
    quick: bool = False
    repeats: int = 1
    seed: int = 1
    at_once: int | None = None
    """Runs at once at most; None: what the cores allow."""

    missing: bool = False
    """Only runs that the directory has no usable outcome of: failed, late, interrupted, new."""

    only: tuple[str, ...] = ()
    """Only runs of series that have one of these words in their names; empty: all."""

    def asks_for(self, job: Job) -> bool:
        """Tell whether a run is of a series that is to be run."""
        name = job.series.lower()
        return not self.only or any(word.lower() in name for word in self.only)

    def jobs(self) -> list[Job]:
        """Give every run of every experiment."""
        return [
            _job(experiment, index, self.quick, repeat, self.seed + repeat)
            for experiment in self.experiments
            for index in range(len(experiment.points(self.quick)))
            for repeat in range(self.repeats)
        ]

    def wanted(self) -> list[Job]:
        """Give the runs that are to be done now. Raises ResultsError."""
        usable = kept(self) if self.missing else {}
        return [job for job in self.jobs() if self.asks_for(job) and _key(job) not in usable]

    def capacity(self) -> Capacity[Job]:
        """Give what may run side by side on this machine."""
        return Capacity(USABLE_SHARE * (os.cpu_count() or 1), self.at_once)

    def expected_s(self) -> float:
        """Give how long it takes here, about."""
        return makespan_s(self.wanted(), self.capacity())


class Watcher:
    """Is told what happens; the display overrides what it shows."""

    def started(self, job: Job) -> None:
        """A worker was started."""

    def ended(self, job: Job, outcome: Outcome) -> None:
        """A worker has given its outcome."""

    def again(self, job: Job, why: str) -> None:
        """A run was late and will be done again."""

    def wrote(self, path: Path) -> None:
        """An experiment's results are in the file."""


@dataclass
class Run:
    """The state of one plan's run."""

    plan: Plan
    watcher: Watcher = field(default_factory=Watcher)
    outcomes: dict[str, dict[int, Outcome]] = field(default_factory=dict)
    """By experiment and place in its list of jobs."""

    failures: list[str] = field(default_factory=list)
    _places: dict[Job, tuple[str, int]] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)

    def execute(self) -> list[str]:
        """Run everything; give what failed, a sentence each.

        Raises LabError before the first run if the machine lacks something, ResultsError if a
        result cannot be written, KeyboardInterrupt after everything was taken down.
        """
        results.prepare(self.plan.directory)
        check_machine(self.plan.experiments)
        compile_programs()
        with ExitStack() as stack:
            needed = _algorithms(self.plan)
            if needed:
                # Held for all workers, so that they do not load and unload by turns.
                try:
                    stack.enter_context(congestion.loaded(needed))
                except TuningError as error:
                    raise MissingToolError(str(error)) from error
            asyncio.run(self._execute())
        return self.failures

    async def _execute(self) -> None:
        waiting = self._jobs()
        capacity = self.plan.capacity()
        running: dict[asyncio.Task[Outcome], Job] = {}
        try:
            while waiting or running:
                while (job := capacity.startable(waiting, list(running.values()))) is not None:
                    waiting.remove(job)
                    running[asyncio.create_task(run_job(job))] = job
                    self.watcher.started(job)
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    job = running.pop(task)
                    again = self._take(job, task.result())
                    if again is not None:
                        waiting.append(again)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._write_incomplete()

    def _jobs(self) -> list[Job]:
        """Give what is to be run; what is kept is taken into the outcomes."""
        plan = self.plan
        usable = kept(plan) if plan.missing or plan.only else {}
        waiting, sizes = [], dict[str, int]()
        for job in plan.jobs():
            name, is_asked_for = job.order.experiment, plan.asks_for(job)
            place = sizes.get(name, 0)
            sizes[name] = place + 1
            outcome = usable.get(_key(job))
            if outcome is not None and (plan.missing or not is_asked_for):
                self.outcomes.setdefault(name, {})[place] = outcome
                continue
            if is_asked_for:
                waiting.append(job)
                self._places[job] = (name, place)
            self._left[name] = self._left.get(name, 0) + 1
        return waiting

    def _take(self, job: Job, outcome: Outcome) -> Job | None:
        """Keep an outcome; give the job that repeats it alone if it was late among others."""
        name, place = self._places[job]
        # One that was late is kept too, marked so, until it has been done again.
        self.outcomes.setdefault(name, {})[place] = replace(outcome, alone=job.alone)
        if not outcome.error and not outcome.kept_up and not job.alone:
            self.watcher.again(job, worst(outcome.links, outcome.hosts_late_s))
            again = replace(job, alone=True)
            self._places[again] = self._places[job]
            return again
        self.watcher.ended(job, outcome)
        if outcome.error and not outcome.left_out:
            self.failures.append(f"{job.title}: {outcome.error}")
        elif not outcome.error and not outcome.kept_up:
            self.failures.append(f"{job.title}: links or hosts were late, even alone")
        self._left[name] -= 1
        if self._left[name] == 0:
            self._write(name, complete=True)
        return None

    def _write_incomplete(self) -> None:
        """After Ctrl-C, or where only some series were asked for: keep what there is.

        Of rows that have a result already only with --missing or --only: it is more than they had.
        """
        begun = {name for name, _ in self._places.values()}
        for name in begun:
            left = self._left[name]
            path = self.plan.directory / f"{name}.json"
            fresh = self.plan.missing or self.plan.only or not path.exists()
            if left and self.outcomes.get(name) and fresh:
                self._write(name, complete=False)

    def _write(self, name: str, *, complete: bool) -> None:
        experiment = next(each for each in self.plan.experiments if each.name == name)
        outcomes = [outcome for _, outcome in sorted(self.outcomes[name].items())]
        stored = results.Results(
            experiment=name,
            title=experiment.title,
            source=experiment.source,
            quick=self.plan.quick,
            repeats=self.plan.repeats,
            complete=complete,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine.describe(),
            outcomes=tuple(outcomes),
            deviations=experiment.deviations,
            extra={"seed": self.plan.seed},
        )
        self.watcher.wrote(results.write(self.plan.directory, stored))


Key = tuple[str, str, float, int, int]
"""Experiment, series, x, repeat, seed: one run."""


def _key(job: Job) -> Key:
    order = job.order
    return order.experiment, job.series, job.x, order.repeat, order.seed


def kept(plan: Plan) -> dict[Key, Outcome]:
    """Read the usable outcomes that the plan's directory has of its rows.

    Those of quick runs are others than those of whole ones. Raises ResultsError.
    """
    found: dict[Key, Outcome] = {}
    for experiment in plan.experiments:
        path = plan.directory / f"{experiment.name}.json"
        stored = results.read(path) if path.exists() else None
        if stored is None or stored.quick != plan.quick:
            continue
        for each in stored.outcomes:
            if each.usable:
                found[experiment.name, each.series, each.x, each.repeat, each.seed] = each
    return found


def check_machine(experiments: Sequence[Experiment]) -> None:
    """See that what is to be run can be. Raises MissingToolError."""
    for experiment in experiments:
        if experiment.needs_root and os.geteuid() != 0:
            raise MissingToolError(
                f"{experiment.name} needs root: it makes network namespaces; run "
                "`sudo xftp-lab run …` (`xftp-lab list` shows which rows need none)"
            )


async def run_job(job: Job) -> Outcome:
    """Run one job, in a process unless it is only computed."""
    return work(job.order) if job.computed else await run_worker(job)


async def run_worker(job: Job) -> Outcome:
    """Run one job in a process; on cancellation let it take its topology down first."""
    starting = asyncio.ensure_future(_start_worker(job))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _stop(await starting)  # cut off here, asyncio would kill it
        raise
    assert process.stdout is not None and process.stderr is not None
    reading = asyncio.gather(process.stdout.read(), process.stderr.read())
    try:
        async with asyncio.timeout(job.limit_s):
            said, complained = await reading
            await process.wait()
    except TimeoutError:
        await _stop(process)
        return _failed(job, f"the worker was not done after {job.limit_s:.0f} s")
    except asyncio.CancelledError:
        await _stop(process)
        raise
    if process.returncode != 0:
        last = complained.decode(errors="replace").strip()[-1000:] or "it said nothing"
        return _failed(job, f"the worker ended with {process.returncode}: {last}")
    try:
        return Outcome.from_json(json.loads(said))
    except (ValueError, LabError) as error:
        return _failed(job, f"the worker gave no outcome: {error}")


async def _start_worker(job: Job) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "mininet_topos.running.worker",
        job.order.to_json(),
        stdin=asyncio.subprocess.PIPE,  # closed when we die, at which it ends
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(_PROJECT)},
        start_new_session=True,  # Ctrl-C comes to us alone, and we tell the workers
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Interrupt a worker and wait until it has tidied up."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _failed(job: Job, why: str) -> Outcome:
    order = job.order
    return Outcome(
        series=job.series, x=job.x, repeat=order.repeat, seed=order.seed, kept_up=False, error=why
    )


def _job(experiment: Experiment, index: int, quick: bool, repeat: int, seed: int) -> Job:
    point = experiment.points(quick)[index]
    scenario = point.scenario
    run = isinstance(scenario, Scenario)
    return Job(
        order=Order(experiment=experiment.name, index=index, quick=quick, repeat=repeat, seed=seed),
        series=point.series,
        x=point.x,
        cores=scenario.cores if isinstance(scenario, Scenario) else 0.5,
        seconds=scenario.seconds + (SETUP_S if run else 0.5),
        computed=not run,
        limit_s=(scenario.limit_s if isinstance(scenario, Scenario) else 60.0) + 120.0,
    )


def _algorithms(plan: Plan) -> frozenset[str]:
    names: set[str] = set()
    for experiment in plan.experiments:
        for point in experiment.points(plan.quick):
            if isinstance(point.scenario, Scenario):
                names |= algorithms(point.scenario)
    return frozenset(names)


def check_plan(plan: Plan) -> None:
    """Raise ExperimentError for numbers that cannot be."""
    if plan.repeats < 1:
        raise ExperimentError(f"{plan.repeats} repeats are none: give 1 or more")
    if plan.at_once is not None and plan.at_once < 1:
        raise ExperimentError(f"{plan.at_once} runs at once are none: give 1 or more")
    if not any(plan.asks_for(job) for job in plan.jobs()):
        raise ExperimentError(f"no series has {' or '.join(plan.only)} in its name")
