"""Stored results: whole or not there, versioned, and clear about what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mininet_topos.running import results as stored
from mininet_topos.running.machine import describe
from mininet_topos.running.results import ResultsError

from .support import outcome, results


def test_there_and_back(tmp_path: Path) -> None:
    made = results("A2", outcome("XFTP", 1, 100.0), outcome("XFTP", 2, 0, error="it broke"))
    path = stored.write(tmp_path, made)
    assert path == tmp_path / "A2.json"
    assert stored.read(path) == made
    assert stored.read_all(tmp_path) == [made]
    assert os.listdir(tmp_path) == ["A2.json"]


def test_a_full_disk_is_told_and_the_old_result_stays(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    old = stored.write(tmp_path, results("A2", outcome("XFTP", 1, 100.0)))
    before = old.read_bytes()
    # The temporary file's name, made to lead to a disk that is full.
    (tmp_path / f".A2.json.{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(ResultsError, match="the disk is full; nothing was overwritten"):
        stored.write(tmp_path, results("A2", outcome("XFTP", 1, 200.0)))
    assert old.read_bytes() == before
    assert os.listdir(tmp_path) == ["A2.json"]


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="file/results"):
        stored.prepare(tmp_path / "file" / "results")


def test_preparing_leaves_nothing(tmp_path: Path) -> None:
    stored.prepare(tmp_path / "a" / "b")
    assert os.listdir(tmp_path / "a" / "b") == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Expecting"),
        ("[]", "format None cannot be read"),
        ('{"format": 99}', "format 99 cannot be read, only 1"),
        ('{"format": 1}', "lack 'experiment'"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "A2.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match=problem):
        stored.read(path)


def test_an_empty_directory_has_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no results"):
        stored.read_all(tmp_path)


def test_the_machine_is_described_in_plain_values() -> None:
    described = json.loads(json.dumps(describe()))
    assert described["cores"] >= 1
    assert described["kernel"]
    assert described["packages"]["xftp"]
    assert "net.ipv4.tcp_congestion_control" in described["sysctls"]
