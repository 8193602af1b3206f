"""A run's process: its priority."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mininet_topos.running import worker


@pytest.fixture(autouse=True)
def autogroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for the file of the session's priority."""
    path = tmp_path / "autogroup"
    path.write_text("/autogroup-7 nice 0")
    monkeypatch.setattr(worker, "AUTOGROUP", path)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the priorities that are asked for, and change nothing."""
    found: list[int] = []
    monkeypatch.setattr(os, "setpriority", lambda kind, who, value: found.append(value))
    return found


@pytest.mark.parametrize(("own", "wanted"), [(0, worker.NICENESS), (10, worker.NICENESS)])
def test_a_run_goes_before_other_programs(
    own: int, wanted: int, asked: list[int], autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpriority", lambda kind, who: own)
    worker._go_first()
    assert asked == [wanted]
    assert autogroup.read_text() == str(wanted)


def test_a_kernel_without_groups_has_no_such_file(asked: list[int], autogroup: Path) -> None:
    autogroup.unlink()
    worker._go_first()
    assert len(asked) == 1
    assert not autogroup.exists()


def test_one_that_has_more_keeps_it(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpriority", lambda kind, who: -20)
    worker._go_first()
    assert asked == [-20]


def test_it_runs_without_where_only_root_may(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, who: int, value: int) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(os, "setpriority", refuse)
    worker._go_first()
