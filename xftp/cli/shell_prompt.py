"""The prompt of the shell on a terminal: editing, history, completion."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import sys
from collections.abc import AsyncGenerator, Iterable

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from xftp.errors import ArgumentError, FileError, XftpError
from xftp.protocol.listings import Entry, safe_name

from .shell_files import local_names, local_path
from .shell_state import ShellState
from .shell_words import all_names, find_word
from .terminal import say, typed_ahead
from .text import printable

HISTORY_NAME = "history"
_SECRET = re.compile(r"\s*(us\w*\s+\S+\s+\S|quo\w*\s+pass\b|.*://[^/\s]*:[^/\s]*@)", re.IGNORECASE)
"""Lines that hold a password: user NAME PASSWORD, quote PASS, a URL with one."""


class Prompt:
    """Reads lines from a person."""

    def __init__(self, state: ShellState, text: str) -> None:
        self._text = text
        self._completer = ShellCompleter(state)
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=self._completer,
            complete_while_typing=False,
        )

    async def read(self) -> str | None:
        """Give the next line, "" after Ctrl-C, None after Ctrl-D."""
        line = typed_ahead()
        if line is not None:
            say(f"{self._text}{printable(line)}")
            return line
        try:
            line = await self._session.prompt_async(self._text)
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None
        finally:
            # uvloop made the terminal non-blocking, for everybody who has it open.
            os.set_blocking(sys.stdin.fileno(), True)
        await self._completer.settle()
        return line


class ShellCompleter(Completer):
    """Completes words, and the names that a word's arguments are."""

    def __init__(self, state: ShellState) -> None:
        self._state = state
        self._fetching: asyncio.Task[list[Entry]] | None = None

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Give nothing: names of the server have to be awaited."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Complete the last word before the cursor."""
        raw = re.search(r"(?:\\.|[^\s\\])*\Z", document.text_before_cursor)
        typed = raw[0] if raw else ""
        before = document.text_before_cursor[: len(document.text_before_cursor) - len(typed)]
        start = _unquoted(typed)
        for name in await self._names(before.split(), start):
            if name.startswith(start):
                end = "" if name.endswith("/") else " "
                yield Completion(_quoted(name) + end, -len(typed), display=printable(name))

    async def settle(self) -> None:
        """Wait for a listing that completion asked for: the session does one thing at a time."""
        if self._fetching is not None:
            with contextlib.suppress(XftpError):
                await self._fetching
            self._fetching = None

    async def _names(self, before: list[str], start: str) -> list[str]:
        if not before:
            return all_names()
        try:
            names = find_word(before[0]).names
        except ArgumentError:
            return []
        if names == "word":
            return all_names()
        if names.startswith("local"):
            return _local_names(start, directories_only=names.endswith("directory"))
        if names.startswith("remote"):
            return await self._remote_names(start, directories_only=names.endswith("directory"))
        return []

    async def _remote_names(self, start: str, *, directories_only: bool) -> list[str]:
        directory, slash, _ = start.rpartition("/")
        await self.settle()
        self._fetching = asyncio.ensure_future(self._state.listing(directory or slash))
        try:
            # Typing on gives up the completion, but must not cut a reply off half-way.
            entries = await asyncio.shield(self._fetching)
        except XftpError:
            return []
        return sorted(
            f"{directory}{slash}{entry.name}{'/' if entry.kind == 'dir' else ''}"
            for entry in entries
            if safe_name(entry.name)
            and printable(entry.name) == entry.name
            and entry.kind not in ("cdir", "pdir")
            and (entry.kind == "dir" or not directories_only)
        )


def _local_names(start: str, *, directories_only: bool) -> list[str]:
    directory, slash, _ = start.rpartition("/")
    try:
        names = local_names(local_path(directory or slash or "."))
    except FileError:
        return []
    return [
        f"{directory}{slash}{name}"
        for name in names
        if printable(name) == name and (name.endswith("/") or not directories_only)
    ]


def _unquoted(typed: str) -> str:
    """Read a word as the shell will, also while its quotation is still open."""
    for attempt in (typed, f"{typed}'", f'{typed}"'):
        with contextlib.suppress(ValueError):
            return "".join(shlex.split(attempt))
    return typed


def _quoted(name: str) -> str:
    """Escape what the shell would read otherwise, with backslashes so that one can go on typing."""
    return re.sub(r"([\s\\'\"])", r"\\\1", name)


class _DiscreetHistory(FileHistory):
    """A history file that never holds a password."""

    def store_string(self, string: str) -> None:
        """Keep a line, unless it holds a password."""
        if not _SECRET.match(string):
            super().store_string(string)


def _history() -> History:
    """Give the history of the person, or one for this time only where nothing can be kept."""
    try:
        path = user_state_path("xftp", ensure_exists=True) / HISTORY_NAME
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return _DiscreetHistory(str(path))
