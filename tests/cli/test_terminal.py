"""What a person at a terminal sees and answers: bars, questions, passwords, the shell."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from .conftest import WAIT_S, Client, Place

CTRL_C = "\x03"
CTRL_D = "\x04"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """A process on a pseudo-terminal, and the text that appeared there."""

    def __init__(self, client: Client, *arguments: str) -> None:
        self._main, other = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            client.command(arguments),
            cwd=client.here,
            env=client.environment | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
            preexec_fn=lambda: os.login_tty(other),
        )
        os.close(other)

    def expect(self, text: str) -> None:
        """Wait until `text` appears after what was expected before."""
        deadline_s = time.monotonic() + WAIT_S
        while text not in self.shown:
            assert time.monotonic() < deadline_s, f"{text!r} did not appear in {self.shown!r}"
            assert self._read(), f"{text!r} did not appear in {self.shown!r}"
        self.shown = self.shown.partition(text)[2]

    def type(self, text: str) -> None:
        """Type text; a line ends with a carriage return."""
        os.write(self._main, text.encode())

    def end(self, status: int) -> str:
        """Wait for the end, check the status, give what was still shown."""
        while self._read():
            pass
        assert self.process.wait(WAIT_S) == status
        return self.shown

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)

    def _read(self) -> bool:
        if not select.select([self._main], [], [], WAIT_S)[0]:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:  # EIO: nobody has the other end open
            return False
        if b"\x1b[6n" in data:
            os.write(self._main, b"\x1b[1;1R")  # prompt_toolkit asks where the cursor is
        self.shown = _ESCAPES.sub("", self.shown + data.decode(errors="replace"))
        return bool(data)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(xftp: Client) -> Iterator[Open]:
    """Give a way to start xftp on a terminal."""
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(xftp, *arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("options", "answer", "content"),
    [
        ([], "y\r", b"abcdef"),
        ([], "n\r", b"xyz"),
        # What is there is no beginning of the remote file: it shows, and is mended.
        ([], "what\rresume\r", b"abcdef"),
        (["--no-verify"], "resume\r", b"xyzdef"),
    ],
)
def test_an_existing_file_is_asked_about(
    xftp: Client, place: Place, terminal: Open, options: list[str], answer: str, content: bytes
) -> None:
    (place.path / "file").write_bytes(b"abcdef")
    (xftp.here / "file").write_bytes(b"xyz")
    screen = terminal("get", *options, place.url_of("file"))
    screen.expect("file is already there. Overwrite? [y = yes, n = no, r = resume] ")
    screen.type(answer)
    screen.end(0)
    assert (xftp.here / "file").read_bytes() == content


@pytest.mark.parametrize("word", ["mget", "mput"])
@pytest.mark.parametrize(
    ("answers", "changed"),
    [(["a"], "abc"), (["s"], ""), (["n", "all"], "bc"), (["y", "skip all"], "a")],
)
def test_one_answer_for_all_existing_files(
    xftp: Client, place: Place, terminal: Open, word: str, answers: list[str], changed: str
) -> None:
    for name in "abc":
        (place.path / name).write_text("there")
        (xftp.here / name).write_text("here")
    question = " is already there. Overwrite? [y = yes, n = no, r = resume, a = all, s = skip all] "
    screen = terminal("shell", place.url)
    screen.expect("xftp>")
    screen.type(f"{word} ?\r")
    screen.expect(f"{word} a? ")
    screen.type("all\r")
    for answer in answers:
        screen.expect(question)
        screen.type(f"{answer}\r")
    screen.expect("xftp>")
    screen.type("bye\r")
    screen.end(0)
    folder, new, old = (xftp.here, "there", "here")
    if word == "mput":
        folder, new, old = (place.path, "here", "there")
    for name in "abc":
        assert (folder / name).read_text() == (new if name in changed else old)


def test_lines_typed_ahead_are_no_answers(xftp: Client, place: Place, terminal: Open) -> None:
    """They are what the shell does next; an answer that was typed ahead is one."""
    (place.path / "file").write_bytes(b"there")
    (xftp.here / "file").write_bytes(b"here")
    screen = terminal("shell", place.url)
    screen.expect("xftp>")
    screen.type("mget fil?\r")
    screen.expect("mget file?")
    screen.type("y\rmkdir made\ry\rlpwd\r")
    screen.expect("file: 5 bytes")
    screen.expect("xftp> mkdir made")
    screen.expect("xftp> lpwd")
    screen.expect("xftp>")
    screen.type("bye\r")
    screen.end(0)
    assert (xftp.here / "file").read_bytes() == b"there"
    assert (place.path / "made").is_dir()


def test_what_was_typed_ahead_of_one_command_is_told(
    xftp: Client, place: Place, terminal: Open
) -> None:
    (place.path / "file").write_bytes(b"there")
    (xftp.here / "file").write_bytes(b"here")
    screen = terminal("get", place.url_of("file"))
    screen.type("ls -l\r")
    screen.expect("Overwrite?")
    screen.type("n\r")
    assert "typed ahead, and no answer: ls -l" in screen.end(0)
    assert (xftp.here / "file").read_bytes() == b"here"


def test_ctrl_c_at_a_question(xftp: Client, place: Place, terminal: Open) -> None:
    (place.path / "file").write_bytes(b"abcdef")
    (xftp.here / "file").write_bytes(b"xyz")
    screen = terminal("put", "file", place.url)
    screen.expect("Overwrite?")
    screen.type(CTRL_C)
    screen.end(130)
    assert (place.path / "file").read_bytes() == b"abcdef"


def test_a_password_is_asked_without_echo(xftp: Client, place: Place, terminal: Open) -> None:
    (place.path / "file").write_bytes(b"x")
    screen = terminal("get", "--user", "joe", place.url_of("file"))
    screen.expect("Password for joe at 127.0.0.1: ")
    screen.type("open sesame\r")
    assert "sesame" not in screen.end(0)
    assert (xftp.here / "file").exists()


def test_a_bar_shows_rate_and_time_left(xftp: Client, place: Place, terminal: Open) -> None:
    (place.path / "file").write_bytes(bytes(3_000_000))
    screen = terminal("get", "-v", "-n", "2", "--limit-rate", "1M", place.url_of("file"))
    screen.expect(" of 3 MB")
    screen.expect("/s")
    screen.expect(" left")
    screen.expect("connection 1")
    screen.expect("file: 3 MB in ")
    screen.end(0)


def test_open_asks_who_logs_in(xftp: Client, place: Place, terminal: Open) -> None:
    screen = terminal("shell")
    screen.expect("xftp>")
    host, port = place.address.split(":")
    screen.type(f"open {host} {port}\r")
    screen.expect("User at 127.0.0.1 [anonymous]: ")
    screen.type("\r")
    screen.expect("logged in as anonymous")
    screen.type("bye\r")
    screen.end(0)


def test_the_shell_at_a_terminal(xftp: Client, place: Place, terminal: Open) -> None:
    (place.path / "some file").write_bytes(b"content")
    screen = terminal("shell", place.url)
    screen.expect("logged in as anonymous")
    screen.expect("xftp>")
    screen.type("nonsense\r")
    screen.expect("there is no word")
    screen.expect("xftp>")
    screen.type("get so\t")
    screen.expect("me\\")  # completes to: get some\ file
    screen.type("\r")
    screen.expect("some file: 7 bytes in ")
    screen.expect("xftp>")
    screen.type("half a line" + CTRL_C)
    screen.expect("xftp>")
    screen.type("mget some*\r")
    screen.expect("mget some file? [y = yes, n = no, a = all, q = quit] ")
    screen.type("n\r")
    screen.expect("xftp>")
    screen.type(CTRL_D)
    screen.end(0)
    assert (xftp.here / "some file").read_bytes() == b"content"
    history = xftp.here.parent / "home/.local/state/xftp/history"
    assert "+nonsense" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_ctrl_c_stops_the_running_command_only(xftp: Client, place: Place, terminal: Open) -> None:
    (place.path / "file").write_bytes(bytes(3_000_000))
    screen = terminal("shell", "--limit-rate", "500k", place.url)
    screen.expect("xftp>")
    screen.type("get file\r")
    screen.expect(" kB of 3 MB")
    screen.type(CTRL_C)
    screen.expect("partial file kept: file.xftp.part; say it again with --resume")
    screen.expect("xftp: interrupted")
    screen.expect("xftp>")
    screen.type("pwd\r")
    screen.expect(f"/{place.name}")
    screen.expect("xftp>")
    screen.type("bye\r")
    screen.end(0)
