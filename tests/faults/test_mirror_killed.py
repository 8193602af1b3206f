"""A mirror of many files, of which one end is killed; run again, it completes what is missing."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_killed import WAIT_S, Programs, wait_until

FILES = {
    f"d{number % 3}/f{number}": random.Random(number).randbytes(60_000) for number in range(60)
}
WHEN = 1_600_000_000


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    for name in ("home", "served"):
        (tmp_path / name).mkdir()
    started = Programs(tmp_path / "home", tmp_path / "served")
    yield started
    for process in started.running:
        process.kill()
        process.communicate()


def fill(root: Path) -> None:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WHEN, WHEN))


def complete(root: Path) -> dict[str, bytes]:
    """Give the files that have their names."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if ".xftp." not in path.name and path.is_file()
    }


@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("victim", ["client", "server"])
def test_killed_and_run_again(programs: Programs, direction: str, victim: str) -> None:
    source, target = programs.served / "tree", programs.home / "tree"
    if direction == "up":
        source, target = target, source
    fill(source)
    daemon, port = programs.daemon()
    url = f"ftp://127.0.0.1:{port}/tree"
    ends = [url, "tree"] if direction == "down" else ["tree", url]
    client = programs.xftp("mirror", "--limit-rate", "1M", "--json", *ends)
    wait_until(lambda: target.exists() and len(complete(target)) >= 5)
    (client if victim == "client" else daemon).send_signal(signal.SIGKILL)
    if victim == "server":
        assert client.wait(WAIT_S) != 0
        daemon.wait(WAIT_S)
        _, port = programs.daemon()
        ends = [end.replace(url, f"ftp://127.0.0.1:{port}/tree") for end in ends]
    else:
        client.wait(WAIT_S)
    before = complete(target)
    assert 0 < len(before) < len(FILES)
    assert before.items() <= FILES.items(), "a name holds what was not sent"

    again = programs.xftp("mirror", "--json", *ends)
    told, said = again.communicate(timeout=WAIT_S)
    assert again.returncode == 0, said.decode()
    summary = json.loads(told.splitlines()[-1])["summary"]
    assert complete(target) == FILES
    assert not [*target.rglob("*.xftp.*")]
    assert summary["moved"] + summary["unchanged"] == len(FILES)
    assert summary["unchanged"] >= len(before) > 0
