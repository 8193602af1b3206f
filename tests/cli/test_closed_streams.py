"""Standard streams that are closed, as daemons and supervisors have it, or that take no more."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import WAIT_S, Client, Place, wait_until

START = "import sys; sys.argv[0] = 'xftp'; from xftp.cli.start import main; main()"
"""The program as it is installed, with its head start."""


def run(
    xftp: Client, shut: str, *arguments: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run xftp from a shell; shut: redirections."""
    command = [sys.executable, "-c", START, *arguments]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {shut}', "sh", *command],
        input=stdin,
        capture_output=True,
        cwd=xftp.here,
        env=xftp.environment,
        timeout=WAIT_S,
    )
    assert b"Traceback" not in done.stderr
    return done


SHUT = pytest.mark.parametrize("shut", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])


@SHUT
def test_files_move(xftp: Client, place: Place, shut: str) -> None:
    (place.path / "there").write_bytes(b"there")
    (xftp.here / "here").write_bytes(b"here")
    assert run(xftp, shut, "get", place.url_of("there")).returncode == 0
    assert (xftp.here / "there").read_bytes() == b"there"
    assert run(xftp, shut, "put", "here", place.url).returncode == 0
    assert (place.path / "here").read_bytes() == b"here"
    assert run(xftp, shut, "mirror", place.url, "copy").returncode == 0
    assert (xftp.here / "copy" / "here").read_bytes() == b"here"


@pytest.mark.parametrize("verify", ["--verify", "--no-verify"])
def test_a_file_is_never_written_to_the_server_as_commands(
    xftp: Client, place: Place, verify: str
) -> None:
    (place.path / "evil").write_bytes(f"DELE {place.name}/victim\r\n".encode())
    (place.path / "victim").write_bytes(b"victim")
    done = run(xftp, "1>&-", "get", "-o", "-", verify, place.url_of("evil"))
    assert (done.returncode, done.stderr) == (4, b"xftp: standard output: Bad file descriptor\n")
    assert (place.path / "victim").exists()


def test_replies_are_never_read_as_a_file(xftp: Client, place: Place) -> None:
    done = run(xftp, "0<&-", "put", "-", place.url_of("new"))
    assert done.returncode == 4
    assert b"standard input: Bad file descriptor" in done.stderr
    assert not (place.path / "new").exists()


@pytest.mark.parametrize("arguments", [["ls"], ["get", "--json"], ["mirror", "--json"]])
def test_output_that_was_asked_for_and_has_no_place(
    xftp: Client, place: Place, arguments: list[str]
) -> None:
    for name in ("one", "two"):
        (place.path / name).write_bytes(b"content")
    where = place.url_of("one") if arguments[0] == "get" else place.url
    copy = ["copy"] if arguments[0] == "mirror" else []
    done = run(xftp, "1>&-", *arguments, where, *copy)
    assert (done.returncode, done.stderr) == (4, b"xftp: standard output: is closed\n")


def test_a_mirror_goes_on_when_nobody_reads_what_it_tells(xftp: Client, place: Place) -> None:
    for name in ("one", "two"):
        (place.path / name).write_bytes(b"content")
    done = run(xftp, "> /dev/full", "mirror", "--json", place.url, "copy")
    assert done.returncode == 4
    assert done.stderr == b"xftp: standard output: No space left on device\n"
    assert sorted(os.listdir(xftp.here / "copy")) == ["one", "two"]


def test_the_daemon_serves(xftp: Client, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(b"there")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    daemon = [sys.executable, "-m", "xftp.cli.daemon", "--root", str(root), "--anonymous"]
    daemon += ["--host", "127.0.0.1", "--port", str(port)]
    command = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *daemon]
    with subprocess.Popen(command, env=xftp.environment) as process:
        try:
            url = f"ftp://127.0.0.1:{port}/there"
            wait_until(lambda: xftp("get", url, expect=None).returncode == 0)
        finally:
            process.terminate()
    assert (xftp.here / "there").read_bytes() == b"there"
