"""Those who judge runs see what is wrong with them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .judging import (
    Ended,
    judge_daemon,
    judge_first,
    judge_saving,
    judge_second,
    judge_words,
    survives,
)
from .programs import Places, Programs
from .scenario import Scenario
from .stage import NAME, Stage, find_route

CONTENT = b"the right bytes"
SAID = "xftp: the connection was lost\n"


def stage_of(tmp_path: Path, fault: str = "kill-daemon", direction: str = "down") -> Stage:
    places = Places(tmp_path)
    places.make()
    scenario = Scenario(fault, direction, 4, len(CONTENT), 0.5, 1)
    programs = Programs(places, "127.0.0.1")
    stage = Stage(scenario, places, programs, find_route(os.getpid()), random.Random(1))
    stage.versions.append(CONTENT)
    return stage


def put(stage: Stage, content: bytes, name: str = NAME) -> None:
    (stage.target_directory / name).write_bytes(content)


def failed(status: int | None = 1, said: str = SAID, *, happened: bool = True) -> Ended:
    return Ended(status, said, False, happened)


DONE = Ended(0, "", False, True)


def test_what_is_right(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    put(stage, CONTENT)
    assert judge_first(stage, DONE) == []
    assert judge_second(stage, DONE) == []


def test_success_for_wrong_bytes(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    put(stage, b"the wrong bytes")
    assert "wrong bytes: 15 bytes for 15, the first wrong one 4" in judge_first(stage, DONE)[0]
    assert "wrong bytes" in judge_second(stage, DONE)[0]


def test_success_for_nothing(tmp_path: Path) -> None:
    assert "there is no file" in judge_first(stage_of(tmp_path), DONE)[0]


def test_success_with_leftovers(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    put(stage, CONTENT)
    put(stage, b"", f"{NAME}.xftp.part")
    assert "there is ['file', 'file.xftp.part']" in judge_first(stage, DONE)[0]
    assert "the next run left" in judge_second(stage, DONE)[0]


def test_a_source_that_changed_has_several_right_versions(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "source-replaced")
    stage.versions.append(b"new")
    put(stage, CONTENT)
    assert judge_first(stage, DONE) == []
    assert "the next run left wrong bytes" in judge_second(stage, DONE)[0]


def test_what_a_failure_may_leave(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    put(stage, b"half", f"{NAME}.xftp.part")
    put(stage, b"{}", f"{NAME}.xftp.journal")
    assert judge_first(stage, failed()) == []
    put(stage, b"", "core")
    assert judge_first(stage, failed()) == ["a cut transfer left ['core']"]


def test_a_wrong_file_with_the_name(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, direction="up")
    put(stage, b"half")
    assert "a wrong file has the name" in judge_first(stage, failed())[0]
    told = failed(said="xftp: differs; the wrong file is still on the server as file\n")
    assert judge_first(stage, told) == []


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (failed(2), "the exit status is 2"),
        (failed(said="Segmentation fault"), "no word of why"),
        (failed(happened=False), "it should have gone on"),
    ],
)
def test_how_a_failure_ends(tmp_path: Path, ended: Ended, problem: str) -> None:
    assert problem in judge_first(stage_of(tmp_path), ended)[0]


def test_what_should_have_gone_on(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "reset-one")
    assert survives(stage.scenario)
    assert not survives(Scenario("reset-one", "down", 1, 10, 0.5, 1))
    assert not survives(Scenario("kill-daemon", "down", 4, 10, 0.5, 1))
    assert "it should have gone on" in judge_first(stage, failed())[0]


def test_what_was_there_moves_again(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.scenario = Scenario("kill-client", "down", 4, 3_000_000, 0.5, 1, slow=True)
    assert judge_saving(stage, 2_000_000, 1_500_000) == []
    assert (
        "moved 3000000 bytes again, 2100000 would do"
        in judge_saving(stage, 2_000_000, 3_000_000)[0]
    )
    stage.scenario = Scenario("kill-client", "down", 4, 3_000_000, 0.5, 1)
    assert judge_saving(stage, 2_000_000, 3_000_000) == []


def test_the_next_run_fails(tmp_path: Path) -> None:
    problems = judge_second(stage_of(tmp_path), failed(3))
    assert problems[0].startswith("the next run ended with 3: xftp: ")
    assert problems[1] == "the next run left no file"


@pytest.mark.parametrize(
    "code", ["raise OSError", "open('/dev/null')", "import asyncio as a; a.sleep(0)"]
)
def test_a_stack_is_no_sentence(tmp_path: Path, code: str) -> None:
    said = tmp_path / "err"
    with said.open("wb") as errors:
        command = [sys.executable, "-W", "default::ResourceWarning", "-c", code]
        subprocess.run(command, stderr=errors, check=False)
    program: Any = SimpleNamespace(said=said, words=said.read_text)
    assert judge_words(program)
    said.write_text(SAID)
    assert judge_words(program) == []


def test_a_file_that_stays_open(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.idle_descriptors = ["socket", "socket", "/dev/null"]
    daemon: Any = SimpleNamespace(descriptors=lambda: ["/dev/null", "socket", "socket"])
    stage.daemon = daemon
    assert judge_daemon(stage) == []
    daemon.descriptors = lambda: ["/dev/null", "socket", "socket", "socket"]
    assert "'socket': 1" in judge_daemon(stage)[0]
