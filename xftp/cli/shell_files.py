"""Words of the shell about directories and files, there and here."""

from __future__ import annotations

import os
from pathlib import Path

from xftp.errors import ArgumentError, FileError, file_error

from .matching import has_wildcards, matching
from .shell_state import ShellState
from .text import listing_lines, printable, size_text


async def ls(state: ShellState, arguments: list[str]) -> None:
    """List the server's names; with -l as `dir` does."""
    paths = [argument for argument in arguments if argument not in ("-l", "-la", "-al")]
    if len(paths) > 1:
        raise ArgumentError("usage: ls [-l] [DIRECTORY or PATTERN]")
    await _list(state, paths, long=len(paths) < len(arguments))


async def dir_(state: ShellState, arguments: list[str]) -> None:
    """List the server's names with sizes and times."""
    await _list(state, arguments, long=True)


async def _list(state: ShellState, paths: list[str], *, long: bool) -> None:
    path = paths[0] if paths else ""
    session = state.need_session()
    if has_wildcards(path):
        entries = [match.entry for match in await matching(session, path)]
    else:
        entries = await session.list(path)
    for line in listing_lines(entries, long=long):
        print(line)


async def cd(state: ShellState, arguments: list[str]) -> None:
    """Change the directory of the server."""
    session = state.need_session()
    await (session.cdup() if arguments[0] == ".." else session.cwd(arguments[0]))


async def pwd(state: ShellState, _: list[str]) -> None:
    """Show the directory of the server."""
    print(printable(await state.need_session().pwd()))


async def lcd(_: ShellState, arguments: list[str]) -> None:
    """Change the directory here, without argument to the home directory."""
    path = local_path(arguments[0] if arguments else "~")
    try:
        os.chdir(path)
    except OSError as error:
        raise file_error(error, str(path)) from error
    print(printable(str(Path.cwd())))


async def lpwd(_: ShellState, __: list[str]) -> None:
    """Show the directory here."""
    print(printable(str(Path.cwd())))


async def lls(_: ShellState, arguments: list[str]) -> None:
    """List the names here."""
    for name in local_names(local_path(arguments[0] if arguments else ".")):
        print(printable(name))


def local_path(text: str) -> Path:
    """Give the path that a person means; "~" is the home directory. Raises FileError."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise FileError(f"{text}: there is no such home directory") from error


def local_names(directory: Path) -> list[str]:
    """Give the sorted names of a directory here, directories with "/". Raises FileError."""
    try:
        return sorted(each.name + ("/" if each.is_dir() else "") for each in directory.iterdir())
    except OSError as error:
        raise file_error(error, str(directory)) from error


async def mkdir(state: ShellState, arguments: list[str]) -> None:
    """Make a directory on the server."""
    await state.need_session().make_directory(arguments[0])


async def rmdir(state: ShellState, arguments: list[str]) -> None:
    """Remove a directory of the server."""
    await state.need_session().remove_directory(arguments[0])


async def delete(state: ShellState, arguments: list[str]) -> None:
    """Delete a file of the server."""
    await state.need_session().remove(arguments[0])


async def rename(state: ShellState, arguments: list[str]) -> None:
    """Rename a file of the server."""
    await state.need_session().rename(arguments[0], arguments[1])


async def size(state: ShellState, arguments: list[str]) -> None:
    """Show the size of a file of the server."""
    count = await state.need_session().size(arguments[0])
    print(f"{count} bytes ({size_text(count)})" if count > 999 else size_text(count))
