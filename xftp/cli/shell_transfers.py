"""Words of the shell that move files: get, put, mget, mput."""

from __future__ import annotations

import asyncio
import glob
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from xftp.client.options import EXISTING, Existing
from xftp.errors import ArgumentError, FileError, XftpError
from xftp.protocol.listings import safe_name
from xftp.transport.report import TransferReport

from .existing import Chooser, SeveralChoices, choose
from .get import STDOUT, base_name, fetch, kept_here, local_target
from .matching import NoMatchError, has_wildcards, matching
from .put import STDIN, send
from .settings import Settings
from .shell_files import local_path
from .shell_state import ShellState
from .terminal import ask_choice, complain

_ANSWERS = {"y": "yes", "n": "no", "a": "all", "q": "quit"}


async def get(state: ShellState, arguments: list[str]) -> None:
    """Fetch one file."""
    settings, names = _choice(state, arguments, "get REMOTE [LOCAL]", most=2)
    await _fetch(state, names[0], local_target(names[0], *names[1:]), settings)


async def put(state: ShellState, arguments: list[str]) -> None:
    """Send one file."""
    settings, names = _choice(state, arguments, "put LOCAL [REMOTE]", most=2)
    if names[0] == STDIN:
        raise ArgumentError("standard input holds the commands of the shell; use: xftp put - URL")
    await _send(state, names[0], names[1] if len(names) > 1 else "", settings)


async def mget(state: ShellState, arguments: list[str]) -> None:
    """Fetch the files that match patterns; names that could leave this directory are refused."""
    settings, patterns = _choice(state, arguments, "mget PATTERN...")
    remotes = [name for pattern in patterns for name in await _matching(state, pattern)]
    chooser = SeveralChoices()

    async def one(remote: str) -> None:
        await _fetch(state, remote, base_name(remote), settings, chooser)

    await _each(state, "mget", remotes, one)


async def mput(state: ShellState, arguments: list[str]) -> None:
    """Send the files that match patterns."""
    settings, patterns = _choice(state, arguments, "mput PATTERN...")
    files = [file for pattern in patterns for file in _matching_here(pattern)]
    chooser = SeveralChoices()
    await _each(state, "mput", files, lambda file: _send(state, file, "", settings, chooser))


async def _each(
    state: ShellState,
    word: str,
    names: Iterable[str],
    work: Callable[[str], Awaitable[None]],
) -> None:
    """Do the work for every name that the person wants, going on after failures."""
    asks = state.confirms and state.interactive
    last: XftpError | None = None
    for name in dict.fromkeys(names):
        answer = ask_choice(f"{word} {name}?", _ANSWERS) if asks else "y"
        if answer == "q":
            break
        asks = asks and answer != "a"
        if answer == "n":
            continue
        if last is not None:
            complain(last)
            last = None
        try:
            await work(name)
        except XftpError as error:
            last = error
            if state.session is None or state.session.is_closed:
                break
    if last is not None:
        raise last


async def _matching(state: ShellState, pattern: str) -> list[str]:
    """Give the paths of the server's files that match; a pattern without wildcards names itself."""
    if not has_wildcards(pattern):
        return [pattern]
    found: list[str] = []
    for match in await matching(state.need_session(), pattern):
        if match.is_directory:
            continue
        if safe_name(match.entry.name):
            found.append(match.path)
        else:
            state.screen.notice(
                f"{match.entry.name}: left out, the name could leave this directory"
            )
    if not found:
        raise NoMatchError(f"{pattern}: no such file on the server")
    return found


def _matching_here(pattern: str) -> list[str]:
    """Give the paths of the files here that match. Raises FileError if there are none."""
    found = sorted(glob.glob(str(local_path(pattern))))
    files = [path for path in found if os.path.isfile(path)]
    if not files:
        raise FileError(f"{pattern}: no such file here")
    return files


async def _fetch(
    state: ShellState, remote: str, target: str, settings: Settings, chooser: Chooser = choose
) -> None:
    hint = kept_here(target)
    try:
        report = await fetch(state.need_session(), remote, target, settings, state.screen, chooser)
    except (XftpError, asyncio.CancelledError) as error:
        _tell_hint(state, hint(error))
        raise
    _tell(state, "standard output" if target == STDOUT else target, report)


async def _send(
    state: ShellState, file: str, remote: str, settings: Settings, chooser: Chooser = choose
) -> None:
    report = await send(state.need_session(), file, remote, settings, state.screen, chooser)
    _tell(state, file, report)


def _tell(state: ShellState, name: str, report: TransferReport | None) -> None:
    if report is None:
        state.screen.notice(f"{name}: left as it is")
    else:
        state.screen.done(name, report)


def _tell_hint(state: ShellState, sentence: str | None) -> None:
    if sentence is not None:
        state.screen.notice(sentence.replace("run again", "say it again"))


def _choice(
    state: ShellState, arguments: list[str], usage: str, most: int | None = None
) -> tuple[Settings, list[str]]:
    """Take --overwrite, --resume and --skip out of the arguments."""
    settings = state.settings
    names: list[str] = []
    flags: dict[str, Existing] = {f"--{each}": each for each in EXISTING if each != "fail"}
    for argument in arguments:
        if argument in flags:
            settings = replace(settings, existing=flags[argument])
        else:
            names.append(argument)
    if not names or (most is not None and len(names) > most):
        raise ArgumentError(f"usage: {usage}")
    return settings, names
