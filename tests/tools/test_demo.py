"""The demonstration: what it says where it cannot show all, and its tables."""

from __future__ import annotations

import importlib
import io
import os
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

pytest.importorskip("pyroute2", reason="the lab's extra is not installed")

from mininet_topos.errors import ExperimentError, MissingToolError
from mininet_topos.experiments.outcome import FlowOutcome

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("demo")


@pytest.fixture
def geo(demo: ModuleType) -> ModuleType:
    return importlib.import_module("demo_geo")


def console() -> Console:
    return Console(file=io.StringIO(), width=100)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_without_root_it_stays_on_loopback_and_says_why(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    out = console()
    assert demo.over_a_link(out)
    assert said(out).startswith("Loopback only: an emulated satellite link needs root")


@pytest.mark.parametrize(
    ("error", "well"),
    [(MissingToolError("mnexec is not here"), True), (ExperimentError("it broke"), False)],
)
def test_what_is_missing_is_no_failure_and_what_breaks_is(
    demo: ModuleType,
    geo: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    well: bool,
) -> None:
    def fail(console: Console) -> None:
        raise error

    monkeypatch.setattr(geo, "why_not", lambda: "")
    monkeypatch.setattr(geo, "show", fail)
    out = console()
    assert demo.over_a_link(out) is well
    assert str(error) in said(out) + capsys.readouterr().err


def test_the_table_counts_the_whole_command(geo: ModuleType) -> None:
    outcome = FlowOutcome(
        kind="Xftp",
        command="xftp get",
        started_s=0.0,
        seconds=8.0,
        data_s=2.0,
        bytes=geo.SIZE_BYTES,
    )
    out = console()
    out.print(geo.table_of([(geo.Way(8, told_rate=True), outcome)]))
    row = next(line for line in said(out).splitlines() if "--rate" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == [
        "8 connections, --rate 50mbit",
        "8.0",
        "10.0",
        "equal",
    ]
