"""`xftp put`: files from here to a server."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from xftp.client.existing import ExistsError
from xftp.client.options import Existing
from xftp.client.series import Pair
from xftp.client.session import Session
from xftp.client.streams import descriptor_producer
from xftp.client.url import FtpUrl
from xftp.errors import ArgumentError, FileError, ReplyError, TransferAborted, XftpError, file_error
from xftp.transport.report import TransferReport

from .existing import Chooser, choose, refusal
from .going_on import GoingOn
from .matching import is_directory
from .outcome import RESUME_HINT, Outcome
from .screen import Screen
from .sessions import Sessions
from .settings import Settings
from .text import printable
from .together import move_together

STDIN = "-"

_REFUSES_NAME = (450, 550, 553)
"""Replies that a server may give to STOR when the name is that of a directory."""


def check_uploads(files: Sequence[str], url: FtpUrl, settings: Settings) -> None:
    """Refuse what can never work before anything is connected. Raises click.UsageError."""
    if url.type == "d":
        raise click.UsageError(f"{url}: a listing cannot be put")
    if "" in files:
        raise click.UsageError("the name of a file is missing")
    if STDIN in files:
        if len(files) > 1:
            raise click.UsageError("standard input (-) is put alone")
        if names_directory(url.path):
            raise click.UsageError(f"standard input needs a name on the server, {url} has none")
        if settings.existing == "resume":
            raise click.UsageError("standard input cannot be resumed")


def names_directory(path: str) -> bool:
    """Tell whether a path on a server is a directory by the way it is written."""
    return path == "" or path.endswith("/")


async def put_files(files: Sequence[str], url: FtpUrl, settings: Settings) -> int:
    """Send all files, going on after failures; give the exit status."""
    screen = Screen(verbose=settings.verbose, quiet=settings.quiet)
    outcome = Outcome(screen, as_json=settings.json)
    async with Sessions(settings, screen, may_ask=STDIN not in files) as sessions:
        if len(files) > 1 and not names_directory(url.path):
            url = await _as_directory(url, sessions)
        left = await _send_together(files, url, sessions, settings, screen, outcome)
        for index, file in enumerate(left):
            if outcome.is_full:
                outcome.stopped(len(left) - index, "on the server")
                break

            async def transfer(file: str = file) -> TransferReport | None:
                if file == STDIN:
                    session = await sessions.get(url)
                    return await send_stream(session, url.path, settings, screen)
                check_source(file)
                session = await sessions.get(url)
                return await send(session, file, url.path, settings, screen)

            name = "standard input" if file == STDIN else file
            target = url.path
            if names_directory(target) and file != STDIN:
                target += Path(file).name
            await outcome.of(name, str(replace(url, path=target)), transfer, _hint(file, settings))
    return outcome.status


async def _send_together(
    files: Sequence[str],
    url: FtpUrl,
    sessions: Sessions,
    settings: Settings,
    screen: Screen,
    outcome: Outcome,
) -> list[str]:
    """Send what the server can take as a series; give what is left."""
    left = list(files)
    jobs = _by_name(files)
    fits = url.type is None and names_directory(url.path) and settings.existing != "resume"
    if not fits or len(jobs) < 2:
        return left
    try:
        session = await sessions.get(url)
        there = await session.sizes([url.path + name for name in jobs])
    except XftpError:
        return left  # the first file will tell
    pairs = [
        (file, Pair(Path(file), url.path + name))
        for (name, file), size in zip(jobs.items(), there, strict=True)
        if settings.existing == "overwrite" or size is None
    ]

    def named(file: str) -> tuple[str, str]:
        return file, str(replace(url, path=url.path + Path(file).name))

    moved = await move_together(session, "upload", pairs, outcome, named, settings, screen)
    return [file for file in left if file not in moved]


def _by_name(files: Sequence[str]) -> dict[str, str]:
    """Give plain files by their names on the server; none if there is something else among them."""
    named = {Path(file).name: file for file in files if os.path.isfile(file)}
    return named if len(named) == len(files) else {}


def check_source(file: str) -> None:
    """Raise FileError, before anything is connected, if a file cannot be sent."""
    try:
        mode = Path(file).stat().st_mode
    except OSError as error:
        raise file_error(error, file) from error
    for number, is_wrong in (
        (errno.EISDIR, stat.S_ISDIR(mode)),
        (errno.EACCES, not os.access(file, os.R_OK)),
    ):
        if is_wrong:
            raise FileError(f"{file}: {os.strerror(number)}")


async def send(
    session: Session,
    file: str,
    remote: str,
    settings: Settings,
    screen: Screen,
    chooser: Chooser = choose,
) -> TransferReport | None:
    """Send one file; a `remote` that turns out to be a directory keeps the base name.

    The name is tried first, so that the common case costs no question to the server.
    """
    path = remote + Path(file).name if names_directory(remote) else remote

    async def attempt(existing: Existing) -> TransferReport | None:
        with screen.watch(file) as bars:
            progress = GoingOn(file, bars, screen) if existing == "fail" else bars
            return await session.put(
                file,
                path,
                existing=existing,
                progress=progress,
                preserve_times=settings.preserve_times,
            )

    try:
        return await attempt(settings.existing or "fail")
    except (ExistsError, ReplyError) as error:
        refused = isinstance(error, ExistsError) or error.code in _REFUSES_NAME
        if refused and path == remote and await is_directory(session, remote):
            return await send(session, file, f"{remote}/", settings, screen, chooser)
        if not isinstance(error, ExistsError):
            raise
        return await attempt(chooser(printable(path), error))


async def send_stream(
    session: Session, remote: str, settings: Settings, screen: Screen
) -> TransferReport | None:
    """Send standard input. Raises ExistsError if the name is taken and nothing was chosen."""
    screen.detail("a stream goes over one data connection")
    with screen.watch("standard input") as progress:
        try:
            return await session.put_stream(
                descriptor_producer(0, "standard input"),
                remote,
                existing=settings.existing or "fail",
                progress=progress,
            )
        except ExistsError as error:
            raise refusal(printable(remote)) from error


async def _as_directory(url: FtpUrl, sessions: Sessions) -> FtpUrl:
    """Give the URL of the directory that several files go to.

    Raises ArgumentError if there is none of that name, and what connecting raises.
    """
    if not await is_directory(await sessions.get(url), url.path):
        raise ArgumentError(f"{url}: several files need a directory that exists on the server")
    return replace(url, path=f"{url.path}/")


def _hint(file: str, settings: Settings) -> Callable[[BaseException], str | None]:
    """Give a function that says how to go on after a transfer of `file` was cut."""

    def hint(error: BaseException) -> str | None:
        was_cut = isinstance(error, TransferAborted | asyncio.CancelledError)
        if not was_cut or file == STDIN:
            return None
        # What is there under the name may be the old file: only a fresh start is right then.
        anew = settings.existing == "overwrite"
        return f"{file}: {'run again' if anew else RESUME_HINT}"

    return hint
