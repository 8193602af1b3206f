"""A program that is not installed costs its own runs only, and no failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from mininet_topos.errors import LeftOutError
from mininet_topos.experiments.outcome import Outcome
from mininet_topos.experiments.registry import experiments
from mininet_topos.running import worker
from mininet_topos.running.programs import tools
from mininet_topos.running.runner import Plan, Run


def test_the_reason_names_the_package() -> None:
    with pytest.raises(
        LeftOutError, match="nosuchtool is not installed: apt-get install a-package"
    ):
        tools.installed("nosuchtool", "a-package")


def left_out_run(monkeypatch: pytest.MonkeyPatch) -> Outcome:
    def refuse(*arguments: object, **more: object) -> Outcome:
        raise LeftOutError("aria2c is not installed: apt-get install aria2")

    monkeypatch.setattr(worker, "run_point", refuse)
    return worker.work(worker.Order(experiment="F1", index=0, quick=True, repeat=0, seed=1))


def test_the_result_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = left_out_run(monkeypatch)
    assert outcome.left_out and not outcome.usable
    assert outcome.error == "left out: aria2c is not installed: apt-get install aria2"
    assert not Outcome(series="a", x=0, error="it broke").left_out


def test_it_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = Plan(experiments=[experiments()["F1"]], directory=tmp_path, quick=True)
    run = Run(plan)
    job, *others = run._jobs()
    assert others
    assert run._take(job, left_out_run(monkeypatch)) is None
    assert run.failures == []
    assert run._take(others[0], Outcome(series="a", x=0, error="it broke")) is None
    assert len(run.failures) == 1
