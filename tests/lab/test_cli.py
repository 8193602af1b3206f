"""xftp-lab: what it prints, and its exit statuses."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the lab's extra is not installed")

from mininet_topos import cli
from mininet_topos.experiments.registry import experiments
from mininet_topos.running import results as stored
from mininet_topos.running import runner

from .running.support import outcome, results


def test_list_shows_every_row_with_its_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist's workers have it
    assert cli.main(["list"]) == 0
    printed = capsys.readouterr().out
    for name, experiment in experiments().items():
        assert name in printed
        assert experiment.source.split(",")[0] in printed


def test_an_unknown_row_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "A22"]) == 2
    assert "there is no experiment A22: did you mean" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["run"], ["nonsense"], ["run", "A8", "--repeat", "0"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith("xftp-lab: ")


def test_not_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner.os, "geteuid", lambda: 1000)
    assert cli.main(["run", "A2", "--results", str(tmp_path)]) == 1
    assert "A2 needs root" in capsys.readouterr().err


def test_results_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["run", "A8", "--results", str(tmp_path / "file" / "r")]) == 4
    assert "Not a directory" in capsys.readouterr().err


def test_report_without_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--results", str(tmp_path)]) == 4
    assert "there are no results" in capsys.readouterr().err


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored.write(tmp_path, results("A2", outcome("XFTP", 1, 100.0)))
    assert cli.main(["report", "--results", str(tmp_path)]) == 0
    assert "A2" in capsys.readouterr().out
    assert {"A2.json", "report.html", "figures"} == set(os.listdir(tmp_path))


def test_a_row_is_run_and_its_result_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A8 needs no root."""
    assert cli.main(["run", "a8", "--results", str(tmp_path)]) == 0
    assert f"wrote {tmp_path}/A8.json" in capsys.readouterr().err.replace("\n", "")
    assert all(outcome.usable for outcome in stored.read(tmp_path / "A8.json").outcomes)


def test_ctrl_c_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(run: runner.Run) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.Run, "execute", interrupted)
    assert cli.main(["run", "A8", "--results", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_sigterm_ends_a_run_that_a_script_has_put_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a one is started with SIGINT ignored."""

    def killed(run: runner.Run) -> list[str]:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)  # the signal ends it
        raise AssertionError("SIGTERM was not heard")

    monkeypatch.setattr(runner.Run, "execute", killed)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert cli.main(["run", "A8", "--results", str(tmp_path)]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
