"""The terminal, if there is one: questions, passwords, and an end that may come at any time."""

from __future__ import annotations

import contextlib
import getpass
import signal
import sys
from collections.abc import Iterator, Mapping

from .text import printable


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


def complain(message: object) -> None:
    """Write one line about what went wrong; it may hold what a server said."""
    say(f"xftp: {printable(str(message))}")


def ask_password(question: str) -> str:
    """Ask without echo. Raises Interrupted for Ctrl-C and Ctrl-D."""
    with _answers_to_signals():
        return getpass.getpass(printable(question))


def ask_line(question: str) -> str:
    """Ask for one line. Raises Interrupted for Ctrl-C and Ctrl-D."""
    with _answers_to_signals():
        print(printable(question), end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.strip()


def ask_choice(question: str, choices: Mapping[str, str]) -> str:
    """Ask until the answer is one of `choices` (letter → word) or begins one of the words.

    Returns the letter. Raises Interrupted for Ctrl-C and Ctrl-D.
    """
    menu = ", ".join(f"{letter} = {word}" for letter, word in choices.items())
    while True:
        answer = ask_line(f"{question} [{menu}] ").lower()
        for letter, word in choices.items():
            if answer and (answer == letter or word.startswith(answer)):
                return letter


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
