"""The terminal, if there is one: questions, passwords, and an end that may come at any time."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping

from .text import printable

_LINE_BYTES = 4096
"""The longest line that a terminal gives (termios(3), canonical mode)."""


class Interrupted(Exception):
    """The person, or the system, wants this to end: Ctrl-C or SIGTERM.

    Not an XftpError: no other file is tried after it.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """The status that shells use for a process ended by the signal: 130, 143."""
        return 128 + self.signal_number


def can_ask() -> bool:
    """Tell whether a person sees questions and can answer them."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(message: str) -> None:
    """Write one line for the person on standard error, which may be gone."""
    with contextlib.suppress(BrokenPipeError):
        print(message, file=sys.stderr, flush=True)


def complain(message: object, program: str = "xftp") -> None:
    """Write one line about what went wrong; it may hold what a server said."""
    say(f"{program}: {printable(str(message))}")


def ask_password(question: str) -> str:
    """Ask without echo. Raises Interrupted for Ctrl-C and Ctrl-D."""
    _typed_ahead.extend(_pending_lines())  # getpass would throw it away
    with _answers_to_signals():
        import getpass

        return getpass.getpass(printable(question))


def ask_line(question: str) -> str:
    """Ask for one line. Raises Interrupted for Ctrl-C and Ctrl-D."""
    with _answers_to_signals():
        print(printable(question), end="", file=sys.stderr, flush=True)
        line = _pushed_back.popleft() if _pushed_back else _read_line()
        if not line:
            raise EOFError
        return line.strip()


def ask_choice(question: str, choices: Mapping[str, str]) -> str:
    """Ask until the answer is one of `choices` (letter → word) or begins one of the words.

    What was typed before the question and is no answer to it is kept for `typed_ahead`. Returns
    the letter. Raises Interrupted for Ctrl-C and Ctrl-D.
    """
    menu = ", ".join(f"{letter} = {word}" for letter, word in choices.items())
    question = f"{question} [{menu}] "
    early = deque(_pending_lines())
    while early:
        line = early.popleft()
        if (letter := _chosen(line, choices)) is not None:
            _pushed_back.extend(early)
            say(f"{question}{line.strip()}")
            return letter
        _typed_ahead.append(line)
    while True:
        letter = _chosen(ask_line(question), choices)
        if letter is not None:
            return letter


def _chosen(line: str, choices: Mapping[str, str]) -> str | None:
    """Give the letter that a line chooses; None if it is no answer."""
    answer = line.strip().lower()
    for letter, word in choices.items():
        if answer and (answer == letter or word.startswith(answer)):
            return letter
    return None


# -- what was typed before it was asked for -----------------------------------------------------

_typed_ahead: deque[str] = deque()
"""Lines that were typed before a question that they did not answer."""

_pushed_back: deque[str] = deque()
"""Lines that were read from the terminal and not looked at yet."""


def typed_ahead() -> str | None:
    """Give the next line that was typed before a question and did not answer it."""
    for lines in (_typed_ahead, _pushed_back):
        if lines:
            return lines.popleft().rstrip("\r\n")
    return None


def confess_typed_ahead() -> None:
    """Say what was typed ahead and not used, at the end of a command that reads no more lines."""
    while (line := typed_ahead()) is not None:
        if line.strip():
            say(f"xftp: typed ahead, and no answer: {printable(line)}")


def _pending_lines() -> list[str]:
    """Take the whole lines that wait in the terminal, which gives one at a time."""
    lines = list(_pushed_back)
    _pushed_back.clear()
    while select.select([sys.stdin], [], [], 0)[0]:
        read = _read_line()
        if not read:
            break
        lines += read.splitlines(keepends=True)
    return lines


def _read_line() -> str:
    """Read one line past Python's buffer, which might take the next ones too; "" at the end."""
    data, descriptor = b"", sys.stdin.fileno()
    # What was typed while another program had the terminal raw ends in a carriage return, and
    # comes as one piece.
    while not data.endswith((b"\n", b"\r")):
        select.select([descriptor], [], [])  # an event loop may have made it non-blocking
        more = os.read(descriptor, _LINE_BYTES)
        if not more:
            break
        data += more
    return data.decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def _answers_to_signals() -> Iterator[None]:
    """Let signals break a blocking read although an event loop has taken them over."""

    def interrupt(signal_number: int, _: object) -> None:
        raise Interrupted(signal_number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    except Interrupted:
        say("")
        raise
    except EOFError as error:
        say("")
        raise Interrupted(signal.SIGINT) from error
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
