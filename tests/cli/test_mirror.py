"""`xftp mirror` as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from .conftest import Client, Place, wait_until


def fill(root: Path) -> None:
    for name, content in {"a": b"a", "d/b": b"bb", "d/e/c": b"c" * 20_000}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_there_and_back(xftp: Client, place: Place) -> None:
    fill(xftp.here / "source")
    done = xftp("mirror", "source", place.url + "copy")
    assert done.stdout == done.stderr == b""
    assert files(place.path / "copy") == files(xftp.here / "source")
    done = xftp("mirror", "-v", place.url + "copy/", "back")
    assert b"3 files (20 kB) moved, 2 directories made" in done.stderr
    assert files(xftp.here / "back") == files(xftp.here / "source")


def test_json(xftp: Client, place: Place) -> None:
    fill(place.path)
    done = xftp("mirror", "--json", place.url, "copy")
    *lines, last = (json.loads(line) for line in done.stdout.splitlines())
    assert [line["path"] for line in lines if line["action"] == "mkdir"] == ["d", "d/e"]
    fetched = {line["path"]: line["bytes"] for line in lines if line["action"] == "fetch"}
    assert fetched == {"a": 1, "d/b": 2, "d/e/c": 20_000}
    assert {line["status"] for line in lines} == {"done"}
    assert last["summary"].items() >= {"moved": 3, "bytes": 20_003, "failed": 0}.items()
    assert done.stderr == b""


def test_dry_run_and_delete(xftp: Client, place: Place) -> None:
    fill(place.path)
    (xftp.here / "old").mkdir()
    (xftp.here / "old" / "x").touch()
    done = xftp("mirror", "--dry-run", "--delete", "--exclude", "e/", place.url, ".")
    assert done.stdout.splitlines() == [
        b"mkdir d",
        b"fetch a",
        b"fetch d/b",
        b"delete old/x",
        b"delete old",
    ]
    assert files(xftp.here) == {"old/x": b""}
    xftp("mirror", "--delete", "--include", "*", "--exclude", "e/", place.url, ".")
    assert sorted(files(xftp.here)) == ["a", "d/b", "d/e/c"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("a", "b"), 2),
        (("ftp://h/a", "ftp://h/b"), 2),
        (("--include", "[z-a]", "ftp://h/a", "b"), 2),
        (("--checksum", "--no-verify", "ftp://h/a", "b"), 2),
        (("ftp://127.0.0.1:1/a", "b"), 3),
    ],
)
def test_what_cannot_work(xftp: Client, arguments: tuple[str, ...], status: int) -> None:
    xftp("mirror", *arguments, expect=status)


def test_exit_statuses(xftp: Client, place: Place) -> None:
    fill(place.path)
    xftp("mirror", place.url + "missing", "x", expect=1)
    xftp("mirror", "missing", place.url + "y", expect=4)
    (xftp.here / "a").mkdir()  # where a file is to go
    done = xftp("mirror", place.url, ".", expect=1)
    assert b"a: the target has a directory of that name" in done.stderr
    assert (xftp.here / "d" / "b").read_bytes() == b"bb"


def test_a_source_that_is_missing_deletes_nothing(xftp: Client, place: Place) -> None:
    fill(place.path)
    done = xftp("mirror", "--delete", "missing", place.url, expect=4)
    assert b"cut" not in done.stderr
    assert sorted(files(place.path)) == ["a", "d/b", "d/e/c"]


def test_a_server_that_cannot_be_reached_cuts_nothing(xftp: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = xftp("mirror", f"ftp://127.0.0.1:{port}/", "copy", expect=3)
    assert done.stderr.decode() == f"xftp: 127.0.0.1 port {port}: Connection refused\n"


def test_interrupted_and_run_again(xftp: Client, place: Place) -> None:
    """What was there before is not fetched again, and what was cut is gone on with."""
    (place.path / "first").write_bytes(b"first")
    content = os.urandom(3_000_000)
    (place.path / "second").write_bytes(content)
    command = ("mirror", "-n", "2", place.url, "copy")
    process = xftp.start(*command[:1], "--limit-rate", "400k", *command[1:])
    part = xftp.here / "copy" / "second.xftp.part"
    wait_until(lambda: part.exists() and part.stat().st_blocks * 512 > 500_000)
    wait_until((xftp.here / "copy" / "first").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
    assert not (xftp.here / "copy" / "second").exists()
    done = xftp(*command, "--json")
    *lines, last = (json.loads(line) for line in done.stdout.splitlines())
    assert [line["path"] for line in lines] == ["second"]
    assert last["summary"]["unchanged"] == 1
    assert (xftp.here / "copy" / "second").read_bytes() == content


def test_a_rate_limit_is_of_all_sessions_together(xftp: Client, place: Place) -> None:
    for number in range(4):  # larger than what moves as a series: each in a session of its own
        (place.path / str(number)).write_bytes(os.urandom(2_000_000))
    began = time.monotonic()
    xftp("mirror", "--limit-rate", "4M", place.url, "copy")
    assert time.monotonic() - began > 8_000_000 / (4 << 20) - 0.2
