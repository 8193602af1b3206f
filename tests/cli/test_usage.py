"""What is wrong with a command line is said before anything is connected, with status 2."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from xftp.cli.client import xftp_command
from xftp.cli.daemon import xftpd_command

URL = "ftp://192.0.2.1/dir/file"  # RFC 5737: nobody is there


PROGRAM = str(Path(sys.executable).with_name("xftp"))


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(xftp_command, arguments)
    return done.exit_code, done.output


@pytest.mark.parametrize("value", ["0", "-1", "x", "", "1.5", "000", "٣"])
def test_bad_numbers_of_connections(value: str) -> None:
    status, said = run("get", "-n", value, URL)
    assert status == 2
    assert "whole number from 1 upward" in said
    assert repr(value) in said


@pytest.mark.parametrize("value", ["0", "-1", "fast", "5x", "0.1", "k"])
def test_bad_rates(value: str) -> None:
    status, said = run("put", "--limit-rate", value, "file", URL)
    assert status == 2
    assert "rate" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["get", "ftp://192.0.2.1/"], "is a directory"),
        (["get", "ftp://192.0.2.1/dir/"], "is a directory"),
        (["get", "-o", "no-such-directory", URL, URL], "several files need a directory"),
        (["get", "-o", "-", "--json", URL], "--json"),
        (["get", "-o", "-", "--resume", URL], "cannot be resumed"),
        (["get", "-v", "-q", URL], "contradict"),
        (["get"], "Missing argument"),
        (["put", URL], "Missing argument"),
        (["put", "-", "ftp://192.0.2.1/dir/"], "needs a name"),
        (["put", "-", "file", "ftp://192.0.2.1/dir/"], "alone"),
        (["put", "--resume", "-", URL], "cannot be resumed"),
        (["mv", URL, "ftp://192.0.2.2/file"], "one server"),
        (["rm", "ftp://192.0.2.1/"], "names no file"),
        (["get", "--retries", "-1", URL], "--retries"),
        (["get", "--listen-ports", "50000", URL], "no range of ports"),
        (["get", "--listen-ports", "80-90", URL], "from 1024 to 65535"),
        (["fetch", URL], "No such command"),
        ([], "Missing command"),
    ],
)
def test_usage_errors(arguments: list[str], sentence: str) -> None:
    status, said = run(*arguments)
    assert status == 2
    assert sentence in said


@pytest.mark.parametrize("url", ["file", "http://host/x", "ftp://", "ftp://host:99999/x"])
def test_what_is_no_url_ends_with_2(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xftp.cli.client", "put", __file__, url], capture_output=True
    )
    assert done.returncode == 2
    first, second = done.stderr.decode().splitlines()
    assert first.startswith("xftp: ")
    assert "URL" in first
    assert url in first
    assert second == "Try 'xftp put --help'."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "ftp://h/x", "file"], "'URL...': file: expected a URL"),
        (["ls", "sftp://joe:secret@h/"], "'URL': sftp://…@h/: expected a URL"),
        (["rm", "joe:secret@h"], "'URL...': …@h: expected a URL"),
        (["mirror", "http://h/", "x"], "'SOURCE': http://h/: expected a URL"),
        (["shell", "host"], "'[URL]': host: expected a URL"),
    ],
)
def test_the_argument_that_is_no_url_is_named(arguments: list[str], said: str) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert f"Invalid value for {said}" in output
    assert "secret" not in output


@pytest.mark.parametrize(
    "options", [("-4", "-6"), ("--overwrite", "--skip"), ("--resume", "--overwrite", "--skip")]
)
def test_options_that_contradict_each_other(options: tuple[str, ...]) -> None:
    status, said = run("get", *options, URL)
    assert status == 2
    assert "contradict each other" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("--root", "/no/such"),
        ("--data-port", "65536"),
        ("--data-port", "any"),
        ("--bogus",),
        ("user",),
        ("status", "--bogus"),
        (),
    ],
)
def test_the_daemon_says_what_is_wrong_as_the_client_does(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xftp.cli.daemon", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.startswith("xftpd: ")
    assert second.startswith("Try 'xftpd ")


def test_both_tell_their_version_alike() -> None:
    versions = {
        name: CliRunner().invoke(command, ["--version"]).output.split()
        for name, command in (("xftp", xftp_command), ("xftpd", xftpd_command))
    }
    assert {words[0] for words in versions.values()} == set(versions)
    assert len({tuple(words[1:]) for words in versions.values()}) == 1


def test_usage_errors_are_a_sentence_with_a_hint() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xftp.cli.client", "get", "-n", "0", URL], capture_output=True
    )
    assert done.returncode == 2
    said = done.stderr.decode().splitlines()
    assert said[0].startswith("xftp: ")
    assert said[1] == "Try 'xftp get --help'."


def test_help_says_what_works_where() -> None:
    status, said = run("--help")
    assert status == 0
    words = " ".join(said.split())
    assert "need Linux" in words
    assert "not tested" in words
    for command in ("get", "put", "ls", "shell", "rm", "rmdir", "mkdir", "mv"):
        assert run(command, "--help")[0] == 0


def test_version() -> None:
    status, said = run("--version")
    assert status == 0
    assert said.startswith("xftp ")
    assert sys.platform in said


def test_help_does_not_load_what_only_transfers_need() -> None:
    code = (
        "import sys; from xftp.cli.client import xftp_command\n"
        "xftp_command(['--help'], standalone_mode=False)\n"
        "sys.exit(sorted({'rich', 'prompt_toolkit', 'uvloop', 'aioftp'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_flight_does_not_wait_for_what_comes_after_it() -> None:
    later = {
        "xftp.client.series",
        "xftp.client.upload",
        "xftp.client.ranges",
        "xftp.transport.receiver",
        "tuning.tcp_info",
        "tuning.rtnetlink",
        "rich",
    }
    code = f"import sys, xftp.cli.get; sys.exit(sorted({later!r} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--rate", "50mbit", "--rtt", "600ms"]])
def test_output_that_finds_no_room_is_an_error_in_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert done.stderr == f"xftp: standard output: {os.strerror(errno.ENOSPC)}\n"
