"""The words of the shell: one row each; help, abbreviations and completion derive from it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xftp.errors import ArgumentError

from . import shell_files, shell_session, shell_transfers
from .shell_state import ShellState

Names = Literal["", "remote", "remote-directory", "local", "local-directory", "word"]
"""What the arguments of a word are, for completion."""


_USAGE_WIDTH = 32
"""Longer usages have a line of their own in help."""

_HELP_WIDTH = 80
_LEAST_HELP_WIDTH = 50


@dataclass(frozen=True, slots=True)
class Word:
    """One command of the shell."""

    name: str
    """As it is typed; any unique beginning will do."""

    run: Callable[[ShellState, list[str]], Awaitable[None]]
    """Does it. Raises XftpError."""

    usage: str
    """Its arguments, for help."""

    help: str
    """One line, without a final full stop."""

    least: int = 0
    """Arguments it needs."""

    most: int | None = 0
    """Arguments it takes; None: any number."""

    names: Names = ""
    """What its arguments name."""

    needs_session: bool = True
    """Whether it makes sense only with a server."""

    aliases: tuple[str, ...] = ()
    """Other words for the same."""

    def check(self, arguments: Sequence[str]) -> None:
        """Raise ArgumentError unless the number of arguments fits."""
        too_many = self.most is not None and len(arguments) > self.most
        if len(arguments) < self.least or too_many:
            raise ArgumentError(f"usage: {self.name} {self.usage}".rstrip())


async def show_help(_: ShellState, arguments: list[str]) -> None:
    """List the words, or explain one."""
    words = [find_word(arguments[0])] if arguments else list(WORDS)
    width = shutil.get_terminal_size((_HELP_WIDTH, 0)).columns if sys.stdout.isatty() else 0
    for line in help_lines(words, max(width, _LEAST_HELP_WIDTH) if width else _HELP_WIDTH):
        print(line)


def help_lines(words: Sequence[Word], width: int) -> Iterator[str]:
    """Write the explanations of words in `width` columns, broken between words only."""
    usages = [f"{word.name} {word.usage}".rstrip() for word in words]
    fitting = [len(usage) for usage in usages if len(usage) <= _USAGE_WIDTH]
    indent = " " * (max(fitting, default=0) + 2)
    for word, usage in zip(words, usages, strict=True):
        also = f" (also: {', '.join(word.aliases)})" if word.aliases else ""
        first = f"{usage:<{len(indent)}}"
        if len(first) > len(indent):  # too long for its column
            yield from textwrap.wrap(usage, width, subsequent_indent="  ", break_on_hyphens=False)
            first = indent
        yield from textwrap.wrap(
            word.help + also,
            width,
            initial_indent=first,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )


async def leave(state: ShellState, _: list[str]) -> None:
    """End the shell."""
    state.is_over = True


WORDS = (
    Word("open", shell_session.open_host, "HOST [PORT] | URL", "connect and log in", 1, 2,
         needs_session=False),
    Word("user", shell_session.user, "NAME [PASSWORD]", "log in", 1, 2),
    Word("close", shell_session.close, "", "say goodbye to the server", needs_session=False),
    Word("ls", shell_files.ls, "[-l] [DIRECTORY or PATTERN]", "list names on the server", 0, 2,
         "remote-directory"),
    Word("dir", shell_files.dir_, "[DIRECTORY or PATTERN]", "list with sizes and times", 0, 1,
         "remote-directory"),
    Word("cd", shell_files.cd, "DIRECTORY", "change the directory of the server", 1, 1,
         "remote-directory"),
    Word("pwd", shell_files.pwd, "", "show the directory of the server"),
    Word("lcd", shell_files.lcd, "[DIRECTORY]", "change the directory here", 0, 1,
         "local-directory", needs_session=False),
    Word("lpwd", shell_files.lpwd, "", "show the directory here", needs_session=False),
    Word("lls", shell_files.lls, "[DIRECTORY]", "list names here", 0, 1, "local-directory",
         needs_session=False),
    Word("get", shell_transfers.get, "[--overwrite|--resume|--skip] REMOTE [LOCAL]",
         "fetch a file", 1, 3, "remote"),
    Word("put", shell_transfers.put, "[--overwrite|--resume|--skip] LOCAL [REMOTE]",
         "send a file", 1, 3, "local"),
    Word("mget", shell_transfers.mget, "[--overwrite|--resume|--skip] PATTERN...",
         "fetch files", 1, None, "remote"),
    Word("mput", shell_transfers.mput, "[--overwrite|--resume|--skip] PATTERN...",
         "send files", 1, None, "local"),
    Word("mkdir", shell_files.mkdir, "DIRECTORY", "make a directory", 1, 1, "remote-directory"),
    Word("rmdir", shell_files.rmdir, "DIRECTORY", "remove an empty directory", 1, 1,
         "remote-directory"),
    Word("delete", shell_files.delete, "FILE", "delete a file", 1, 1, "remote", aliases=("rm",)),
    Word("rename", shell_files.rename, "OLD NEW", "rename a file", 2, 2, "remote",
         aliases=("mv",)),
    Word("size", shell_files.size, "FILE", "show the size of a file", 1, 1, "remote"),
    Word("ascii", shell_session.ascii_, "", "transfer text: line ends are translated",
         needs_session=False),
    Word("binary", shell_session.binary, "", "transfer files as they are (default)",
         needs_session=False, aliases=("image",)),
    Word("passive", shell_session.passive, "[on|off]", "toggle who opens data connections", 0, 1,
         needs_session=False),
    Word("multiple", shell_session.multiple, "[N|off]",
         "use several data connections for one file; 4 unless N is given", 0, 1),
    Word("prompt", shell_session.prompt, "[on|off]", "toggle the questions of mget and mput", 0, 1,
         needs_session=False),
    Word("verbose", shell_session.verbose, "[on|off]", "toggle the transcript", 0, 1,
         needs_session=False),
    Word("status", shell_session.status, "", "show what is in force", needs_session=False),
    Word("quote", shell_session.quote, "COMMAND...", "send an FTP command as it is", 1, None),
    Word("help", show_help, "[WORD]", "list the words, or explain one", 0, 1, "word",
         needs_session=False, aliases=("?",)),
    Word("bye", leave, "", "end", needs_session=False, aliases=("quit", "exit")),
)  # fmt: skip

_BY_NAME = {name: word for word in WORDS for name in (word.name, *word.aliases)}


def find_word(typed: str) -> Word:
    """Find the word that was typed or abbreviated. Raises ArgumentError."""
    typed = typed.lower()
    exact = _BY_NAME.get(typed)
    if exact is not None:
        return exact
    matching = {name: word for name, word in _BY_NAME.items() if name.startswith(typed)}
    found = {word.name: word for word in matching.values()}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise ArgumentError(f"{typed!r} could be {', '.join(sorted(matching))}")
    raise ArgumentError(f"there is no word {typed!r}; help lists them")


def all_names() -> list[str]:
    """Give every word and alias, for completion."""
    return sorted(_BY_NAME)
