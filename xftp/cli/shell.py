"""`xftp shell`: the classic prompt, or commands read from standard input."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from xftp.client.streams import descriptor_producer
from xftp.client.url import FtpUrl
from xftp.errors import ArgumentError, XftpError

from . import shell_words
from .running import interruptible, run
from .settings import Settings
from .shell_session import open_url
from .shell_state import ShellState
from .terminal import Interrupted, complain, say

PROMPT = "xftp> "

ReadLine = Callable[[], Awaitable[str | None]]
"""Gives the next line, "" when there is none in it, None at the end."""


def run_shell(url: FtpUrl | None, settings: Settings) -> int:
    """Read and run commands to the end; give the exit status."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        # Ctrl-C belongs to the running command; only SIGTERM ends the shell.
        return run(lambda: _interactive(url, settings), (signal.SIGTERM,))
    return run(lambda: _piped(url, settings))


async def _interactive(url: FtpUrl | None, settings: Settings) -> int:
    from .shell_prompt import Prompt  # prompt_toolkit takes a while to import

    state = ShellState(settings, interactive=True)
    prompt = Prompt(state, PROMPT)
    try:
        if url is not None:
            await _guarded(state, open_url(state, url))
        await _read_and_run(state, prompt.read)
    finally:
        await state.leave()
    return 0


async def _piped(url: FtpUrl | None, settings: Settings) -> int:
    state = ShellState(settings, interactive=False)
    read = _LinesOf(sys.stdin.fileno())
    try:
        if url is not None:
            await open_url(state, url)
        failures = await _read_and_run(state, read)
    finally:
        await state.leave()
    return 1 if failures else 0


class _LinesOf:
    """Reads lines from a pipe without holding the event loop, which has to see signals."""

    def __init__(self, descriptor: int) -> None:
        self._produce = descriptor_producer(descriptor, "standard input")
        self._rest = b""
        self._at_end = False

    async def __call__(self) -> str | None:
        """Give the next line, None at the end. Raises FileError."""
        while b"\n" not in self._rest and not self._at_end:
            data = await asyncio.to_thread(self._produce)
            self._at_end = data == b""
            self._rest += data or b""
        line, _, self._rest = self._rest.partition(b"\n")
        if not line and not self._rest and self._at_end:
            return None
        return line.decode("utf-8", "surrogateescape")


async def _read_and_run(state: ShellState, read: ReadLine) -> int:
    """Run line after line until the end; give the number of commands that failed."""
    failures = 0
    while not state.is_over and (line := await read()) is not None:
        if not await _guarded(state, run_line(state, line)):
            failures += 1
    return failures


async def run_line(state: ShellState, line: str) -> None:
    """Run one line; one that begins with # is a comment. Raises XftpError."""
    if line.lstrip().startswith("#"):
        return
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ArgumentError(f"the line cannot be read: {error}") from error
    if not words:
        return
    word = shell_words.find_word(words[0])
    arguments = words[1:]
    word.check(arguments)
    if word.needs_session:
        state.need_session()
    await word.run(state, arguments)


async def _guarded(state: ShellState, command: Coroutine[Any, Any, None]) -> bool:
    """Run a command so that its failure does not end the shell; tell whether it went well."""

    async def work() -> int:
        await command
        sys.stdout.flush()
        return 0

    try:
        if state.interactive:
            await interruptible(work(), (signal.SIGINT,))
        else:
            await work()
    except XftpError as error:
        complain(error)
    except Interrupted:
        if not state.interactive:
            raise
        say("xftp: interrupted")
    except UnicodeError as error:
        complain(f"the line cannot be sent: {error}")
    else:
        return True
    finally:
        state.forget_listings()
    state.notice_lost_session()
    return False
