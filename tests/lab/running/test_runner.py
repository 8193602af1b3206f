"""The parent of all runs, with workers that compute only, or are made up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mininet_topos.errors import ExperimentError, MissingToolError
from mininet_topos.experiments.outcome import Outcome
from mininet_topos.experiments.registry import chosen
from mininet_topos.running import results, runner
from mininet_topos.running.runner import Job, Plan, Run, Watcher, check_machine, check_plan


class Notes(Watcher):
    """Remembers what was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, job: Job) -> None:
        self.lines.append(f"started {job.title}")

    def again(self, job: Job, why: str) -> None:
        self.lines.append(f"again {job.title}")

    def wrote(self, path: Path) -> None:
        self.lines.append(f"wrote {path.name}")


def outcome_of(job: Job, **more: object) -> Outcome:
    order = job.order
    return Outcome(series=job.series, x=job.x, repeat=order.repeat, seed=order.seed, **more)  # type: ignore[arg-type]


def plan(directory: Path, name: str = "A2", repeats: int = 1) -> Plan:
    return Plan(experiments=chosen([name]), directory=directory, quick=True, repeats=repeats)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Job], Outcome]], None]:
    """Replace the workers."""

    def put_in(work: Callable[[Job], Outcome]) -> None:
        async def run_job(job: Job) -> Outcome:
            await asyncio.sleep(0)
            return work(job)

        monkeypatch.setattr(runner, "run_job", run_job)
        monkeypatch.setattr(runner, "check_machine", lambda experiments: None)
        monkeypatch.setattr(runner, "_algorithms", lambda plan: frozenset())

    return put_in


def test_a_real_worker_gives_its_outcome(tmp_path: Path) -> None:
    job = plan(tmp_path, "A8").jobs()[1]
    outcome = asyncio.run(runner.run_worker(job))
    assert outcome.values["value"] == pytest.approx(22, abs=0.5)
    assert (outcome.series, outcome.x) == (job.series, job.x)


def test_every_point_and_repeat_is_run_once_and_kept_in_order(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(outcome_of)
    notes = Notes()
    assert Run(plan(tmp_path, repeats=2), notes).execute() == []
    written = results.read(tmp_path / "A2.json")
    assert [(o.x, o.repeat) for o in written.outcomes] == [
        (x, repeat) for x in (1, 4, 8, 12) for repeat in (0, 1)
    ]
    assert (written.quick, written.repeats, written.complete) == (True, 2, True)
    assert notes.lines.count("wrote A2.json") == 1


def test_a_late_run_is_done_again_alone(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(lambda job: outcome_of(job, kept_up=job.alone or job.x != 8))
    notes = Notes()
    assert Run(plan(tmp_path), notes).execute() == []
    assert notes.lines[-2:] == ["started A2 XFTP 8 (again, alone)", "wrote A2.json"]
    written = results.read(tmp_path / "A2.json")
    assert [outcome.x for outcome in written.outcomes if outcome.alone] == [8]
    assert all(outcome.kept_up for outcome in written.outcomes)


def test_one_that_is_late_even_alone_is_kept_and_told(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(lambda job: outcome_of(job, kept_up=job.x != 8))
    failures = Run(plan(tmp_path), Notes()).execute()
    assert failures == ["A2 XFTP 8 (again, alone): links or hosts were late, even alone"]
    assert not results.read(tmp_path / "A2.json").outcomes[2].usable


def test_a_run_that_fails_does_not_end_the_others(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(lambda job: outcome_of(job, error="it broke" if job.x == 4 else ""))
    assert Run(plan(tmp_path), Notes()).execute() == ["A2 XFTP 4: it broke"]
    assert len(results.read(tmp_path / "A2.json").outcomes) == 4


def test_an_interrupted_plan_keeps_what_is_whole(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    def work(job: Job) -> Outcome:
        if job.x == 4:
            raise KeyboardInterrupt
        return outcome_of(job)

    made_up(work)
    with pytest.raises(KeyboardInterrupt):
        Run(plan(tmp_path), Notes()).execute()
    kept = list(tmp_path.glob("*.json"))
    assert all(not results.read(path).complete for path in kept)


def test_what_is_missing_is_run_and_what_was_in_time_is_kept(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(lambda job: outcome_of(job, kept_up=job.x != 8, error="no" if job.x == 4 else ""))
    Run(plan(tmp_path), Notes()).execute()
    made_up(lambda job: outcome_of(job, values={"second": 1.0}))
    again, notes = replace(plan(tmp_path), missing=True), Notes()
    assert [job.x for job in again.wanted()] == [4, 8]
    assert Run(again, notes).execute() == []
    assert sorted(notes.lines) == ["started A2 XFTP 4", "started A2 XFTP 8", "wrote A2.json"]
    written = results.read(tmp_path / "A2.json")
    assert [(o.x, bool(o.values)) for o in written.outcomes] == [
        (1, False),
        (4, True),
        (8, True),
        (12, False),
    ]
    assert written.complete
    assert Run(again, Notes()).execute() == []
    assert again.wanted() == []


def test_runs_of_another_kind_are_all_missing(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(outcome_of)
    Run(plan(tmp_path), Notes()).execute()
    for other in ({"quick": False}, {"seed": 2}):
        again = replace(plan(tmp_path), missing=True, **other)  # type: ignore[arg-type]
        assert again.wanted() == again.jobs()


def test_an_interrupted_search_for_the_missing_loses_nothing(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    made_up(lambda job: outcome_of(job, error="no" if job.x in (4, 8) else ""))
    Run(plan(tmp_path), Notes()).execute()

    def work(job: Job) -> Outcome:
        if job.x == 4:
            raise KeyboardInterrupt
        return outcome_of(job)

    made_up(work)
    with pytest.raises(KeyboardInterrupt):
        Run(replace(plan(tmp_path), missing=True), Notes()).execute()
    usable = {o.x for o in results.read(tmp_path / "A2.json").outcomes if o.usable}
    assert {1, 12} <= usable


def test_only_some_series_are_run_and_the_others_stay(
    tmp_path: Path, made_up: Callable[[Callable[[Job], Outcome]], None]
) -> None:
    """B1 has Reno and XFTP."""
    made_up(lambda job: outcome_of(job, values={"run": 1.0}))
    only = replace(plan(tmp_path, "B1"), only=("xft", "nobody's"))
    assert {job.series for job in only.wanted()} == {"XFTP"}
    Run(only, Notes()).execute()
    written = results.read(tmp_path / "B1.json")
    assert {each.series for each in written.outcomes} == {"XFTP"}
    assert not written.complete

    made_up(lambda job: outcome_of(job, values={"run": 2.0}))
    Run(replace(only, only=("reno",)), Notes()).execute()
    written = results.read(tmp_path / "B1.json")
    assert {(each.series, each.values["run"]) for each in written.outcomes} == {
        ("XFTP", 1.0),
        ("Reno", 2.0),
    }
    Run(replace(only, missing=True), Notes()).execute()
    written = results.read(tmp_path / "B1.json")
    assert {each.values["run"] for each in written.outcomes if each.series == "XFTP"} == {1.0}


def test_a_word_that_no_series_has(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no series has nonsense in its name"):
        check_plan(replace(plan(tmp_path), only=("nonsense",)))


def test_a_worker_that_dies_is_a_failed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.sys, "executable", "/bin/false")
    job = plan(tmp_path, "A8").jobs()[0]
    outcome = asyncio.run(runner.run_worker(job))
    assert outcome.error == "the worker ended with 1: it said nothing"
    assert not outcome.usable


def test_a_cancelled_worker_is_told_to_tidy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets SIGINT, not SIGKILL: the stand-in says so in a file."""
    script, note, ready = tmp_path / "worker", tmp_path / "note", tmp_path / "ready"
    script.write_text(
        f"#!/bin/sh\ntrap 'echo tidied > {note}; exit 130' INT\necho > {ready}\n"
        "while :; do sleep 0.05; done\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(runner.sys, "executable", str(script))

    async def scene() -> None:
        task = asyncio.create_task(runner.run_worker(plan(tmp_path, "A8").jobs()[0]))
        async with asyncio.timeout(30):
            while not ready.exists():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert note.read_text() == "tidied\n"


def test_rows_that_run_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.os, "geteuid", lambda: 1000)
    check_machine(chosen(["A8"]))
    with pytest.raises(MissingToolError, match="A2 needs root"):
        check_machine(chosen(["A2"]))


@pytest.mark.parametrize("numbers", [{"repeats": 0}, {"at_once": 0}])
def test_numbers_that_cannot_be(tmp_path: Path, numbers: dict[str, int]) -> None:
    with pytest.raises(ExperimentError, match="are none"):
        check_plan(Plan(experiments=[], directory=tmp_path, **numbers))  # type: ignore[arg-type]
