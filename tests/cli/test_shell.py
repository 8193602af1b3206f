"""The shell, fed through a pipe, and its parts."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from xftp.cli.shell_words import WORDS, find_word, help_lines
from xftp.errors import ArgumentError

from .conftest import Client, Place, wait_until


def session(xftp: Client, place: Place, *lines: str, expect: int = 0) -> tuple[str, str]:
    """Run lines in the test's directory of the server; give what was printed and said."""
    host, _, port = place.address.rpartition(":")
    script = "\n".join((f"open {host} {port}", f"cd {place.name}", *lines, "bye", "get never", ""))
    done = xftp("shell", stdin=script.encode(), expect=expect)
    return done.stdout.decode(), done.stderr.decode()


def test_a_session(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"content")
    (xftp.here / "local file").write_bytes(b"up")
    printed, said = session(
        xftp,
        place,
        "pwd",
        "get file",
        "get file 'other name'",
        "put 'local file'",
        "mkdir sub",
        "rename 'local file' sub/moved",
        "size sub/moved",
        "delete file",
        "ls",
        "# a comment",
        "",
        "status",
    )
    assert "xftp>" not in printed
    assert f"/{place.name}\n" in printed
    assert "2 bytes\n" in printed
    assert "\nsub/\n" in printed
    assert (xftp.here / "file").read_bytes() == b"content"
    assert (xftp.here / "other name").read_bytes() == b"content"
    assert (place.path / "sub/moved").read_bytes() == b"up"
    assert not (place.path / "file").exists()
    assert said.count(" over ") == 3


def test_ls_takes_a_pattern(xftp: Client, place: Place) -> None:
    (place.path / "sub").mkdir()
    for name in ("one.dat", "two.dat", "three.txt", "sub/four.dat"):
        (place.path / name).write_bytes(b"content")
    printed, _ = session(xftp, place, "ls *.dat")
    assert [line for line in printed.splitlines() if line.endswith(".dat")] == [
        "one.dat",
        "two.dat",
    ]
    printed, _ = session(xftp, place, "ls sub/f*")
    assert "four.dat" in printed.splitlines()
    _, said = session(xftp, place, "dir *.none", expect=1)
    assert "*.none: no such file on the server" in said


def test_a_failing_command_does_not_end_the_shell_but_is_seen_at_its_end(
    xftp: Client, place: Place
) -> None:
    (place.path / "file").write_bytes(b"content")
    _, said = session(xftp, place, "get missing", "nonsense", "cd", "get 'x", "get file", expect=1)
    assert (xftp.here / "file").read_bytes() == b"content"
    assert said.count("xftp: ") == 4
    assert "there is no word 'nonsense'" in said
    assert "usage: cd DIRECTORY" in said


def test_commands_need_a_connection(xftp: Client) -> None:
    done = xftp("shell", stdin=b"ls\nstatus\nhelp\n", expect=1)
    assert b"not connected" in done.stderr
    assert b"multiple [N|off]" in done.stdout


@pytest.mark.parametrize("width", [50, 80, 132])
def test_help_breaks_between_words(width: int) -> None:
    lines = list(help_lines(WORDS, width))
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    for word in WORDS:
        assert f"{word.name} {word.usage}".rstrip() in said
        assert word.help in said


def test_a_url_on_the_command_line(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"content")
    xftp("shell", place.url, stdin=b"get file")
    assert (xftp.here / "file").read_bytes() == b"content"
    xftp("shell", "ftp://127.0.0.1:1/", stdin=b"help", expect=3)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("multiple", "over 4 connections"),
        ("mul 6", "over 6 connections"),
        ("multiple 1000", "over 8 connections"),
        ("multiple 1", "over 1 connection "),
        ("multiple off", "over 1 connection "),
    ],
)
def test_multiple(xftp: Client, place: Place, line: str, answer: str) -> None:
    (place.path / "file").write_bytes(bytes(200_000))
    printed, said = session(xftp, place, line, "get file")
    assert answer in printed
    # A short file may be there before every connection is, so only the single one is certain.
    if "over 1 " in answer:
        assert "over 1 connection" in said


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5"])
def test_multiple_with_nonsense(xftp: Client, place: Place, value: str) -> None:
    _, said = session(xftp, place, f"multiple {value}", expect=1)
    assert "multiple takes a number from 1 upward, or off" in said


def test_mget_and_mput(xftp: Client, place: Place) -> None:
    for name in ("a.txt", "b.txt", "c.dat", "evil\x1b.txt"):
        (place.path / name).write_text(name)
    (place.path / "d.txt").mkdir()
    session(xftp, place, "mget *.txt", "lcd ..", "mput here/?.txt", "mget no*such", expect=1)
    assert sorted(each.name for each in xftp.here.iterdir()) == ["a.txt", "b.txt", "evil\x1b.txt"]
    assert (place.path / "a.txt").read_text() == "a.txt"


def test_mput_sends_under_base_names(xftp: Client, place: Place) -> None:
    (xftp.here / "sub").mkdir()
    for name in ("a", "b"):
        (xftp.here / "sub" / name).write_text(name)
    session(xftp, place, "mput sub/*")
    assert sorted(each.name for each in place.path.iterdir()) == ["a", "b"]


def test_existing_files_in_a_script(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"new")
    (xftp.here / "file").write_bytes(b"old")
    _, said = session(xftp, place, "get file", expect=1)
    assert "--overwrite" in said
    session(xftp, place, "get --overwrite file")
    assert (xftp.here / "file").read_bytes() == b"new"


def test_text(xftp: Client, place: Place) -> None:
    (xftp.here / "text").write_bytes(b"one\ntwo\n")
    printed, said = session(xftp, place, "ascii", "put text", "get text copy", "binary")
    assert "type is ascii" in printed
    assert "type is binary" in printed
    assert (xftp.here / "copy").read_bytes() == b"one\ntwo\n"
    assert "over 1 connection" in said


def test_quote_and_user(xftp: Client, place: Place) -> None:
    printed, _ = session(xftp, place, "quote noop", 'user joe "open sesame"', "verbose", "pwd")
    assert "200 " in printed
    assert "logged in as joe" in printed


def test_a_failed_login_leaves_the_shell(xftp: Client, place: Place) -> None:
    _, said = session(xftp, place, "user joe wrong", "user anonymous me", "pwd", expect=1)
    assert "530" in said
    assert said.count("xftp: ") == 1


def test_sigterm_ends_a_shell_that_waits(xftp: Client, place: Place) -> None:
    process = xftp.start("shell", place.url, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"pwd\n")
    process.stdin.flush()
    while place.name.encode() not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    process.communicate()


def test_ctrl_c_ends_a_script(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(bytes(2_000_000))
    process = xftp.start("shell", "--limit-rate", "300k", place.url, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"get file\nget file again\n")
    process.stdin.flush()
    part = xftp.here / "file.xftp.part"
    wait_until(lambda: part.exists() and part.stat().st_blocks > 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
    assert not (xftp.here / "again").exists()


def test_abbreviations() -> None:
    assert find_word("st").name == "status"
    assert find_word("LS").name == "ls"
    assert find_word("l" + "s").name == "ls"
    assert find_word("?").name == "help"
    assert find_word("qui").name == "bye"
    with pytest.raises(ArgumentError, match=r"could be passive, prompt, put, pwd"):
        find_word("p")


def test_every_word_is_found_and_explained() -> None:
    for word in WORDS:
        assert find_word(word.name) is word
        assert word.help
        assert not word.help.endswith(".")


def test_history_holds_no_password(tmp_path: Path) -> None:
    from xftp.cli.shell_prompt import _DiscreetHistory

    path = tmp_path / "history"
    history = _DiscreetHistory(str(path))
    for line in (
        "user joe secret1",
        "quote PASS secret2",
        "open ftp://joe:secret3@host/",
        "user a",
    ):
        history.append_string(line)
    kept = path.read_text()
    assert "secret" not in kept
    assert "user a" in kept
