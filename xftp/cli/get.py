"""`xftp get`: files from servers to here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from xftp.client.existing import ExistsError
from xftp.client.options import Existing
from xftp.client.session import Session
from xftp.client.url import FtpUrl
from xftp.errors import FileNameError, ReplyError, XftpError
from xftp.protocol.listings import safe_name
from xftp.transport.kept import working_names
from xftp.transport.report import TransferReport

from .existing import Chooser, choose
from .going_on import GoingOn
from .matching import DirectoryError, is_directory, matching
from .outcome import RESUME_HINT, Outcome
from .screen import Screen
from .sessions import Sessions
from .settings import Settings
from .streams import OutputStream
from .together import may_be_written, move_together
from .urls import Wanted

STDOUT = "-"
_PATHS_OF_STDOUT = frozenset({"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
"""They lead to what is open: to go by the name behind them would replace it."""

_REFUSED = 550
"""What servers answer to RETR of a directory, among others."""


class Download(NamedTuple):
    """One file to fetch."""

    url: FtpUrl
    """Where it is."""

    target: str
    """Where it goes: a path, or "-"."""


def check_downloads(wanted: Sequence[Wanted], output: str | None) -> None:
    """Refuse what can never work before anything is connected. Raises click.UsageError."""
    for each in wanted:
        url = each.url
        if url.type == "d" or url.path == "" or url.path.endswith("/"):
            raise click.UsageError(directory_refusal(url))
    is_one = len(wanted) == 1 and wanted[0].pattern is None
    _check_output([each.url for each in wanted if each.pattern is None], output, is_one=is_one)


def _check_output(urls: Sequence[FtpUrl], output: str | None, *, is_one: bool) -> None:
    """Raise click.UsageError if the files cannot all go to `output`, FileNameError for a name."""
    if output == STDOUT:
        return
    if not is_one and output is not None and not os.path.isdir(output):
        raise click.UsageError(f"-o {output}: several files need a directory that exists")
    for url in urls:
        local_target(url.path, output)


def output_of(wanted: str | None) -> str | None:
    """Give what -o means."""
    return STDOUT if wanted in _PATHS_OF_STDOUT else wanted


def directory_refusal(place: object) -> str:
    """Say that get does not fetch directories, and what does."""
    return f"{place} is a directory: xftp mirror fetches it, xftp ls lists it"


def plan_downloads(urls: Sequence[FtpUrl], output: str | None) -> list[Download]:
    """Decide where each file goes. Raises FileNameError."""
    if output == STDOUT:
        return [Download(url, STDOUT) for url in urls]
    return [Download(url, local_target(url.path, output)) for url in urls]


def local_target(remote: str, wanted: str | None = None) -> str:
    """Decide where a file goes: to `wanted`, into it if it is a directory, or here.

    Raises FileNameError if the name on the server is none for here.
    """
    if wanted is None:
        return base_name(remote)
    if wanted != STDOUT and (wanted.endswith("/") or os.path.isdir(wanted)):
        return str(Path(wanted) / base_name(remote))
    return wanted


def base_name(path: str) -> str:
    """Give the last part of a path on a server as a name for here. Raises FileNameError."""
    name = path.rpartition("/")[2]
    if not safe_name(name):
        raise FileNameError(f"{name}: not a name for a file here; give one")
    return name


async def get_files(wanted: Sequence[Wanted], output: str | None, settings: Settings) -> int:
    """Fetch all files, going on after failures; give the exit status."""
    screen = Screen(verbose=settings.verbose, quiet=settings.quiet)
    outcome = Outcome(screen, as_json=settings.json)
    async with Sessions(settings, screen) as sessions:
        urls = await _named(wanted, sessions, screen, outcome)
        downloads = plan_downloads(urls, output)
        left = await _fetch_together(downloads, sessions, settings, screen, outcome)
        for index, download in enumerate(left):
            if outcome.is_full:
                outcome.stopped(len(left) - index, "here")
                break

            async def transfer(download: Download = download) -> TransferReport | None:
                session = await sessions.get(download.url)
                return await fetch(session, download.url.path, download.target, settings, screen)

            name = "standard output" if download.target == STDOUT else download.target
            await outcome.of(name, str(download.url), transfer, kept_here(download.target))
    return outcome.status


async def _named(
    wanted: Sequence[Wanted], sessions: Sessions, screen: Screen, outcome: Outcome
) -> list[FtpUrl]:
    """Give the files that are wanted, with those that fit where there is a pattern."""
    urls: list[FtpUrl] = []
    for each in wanted:
        if each.pattern is None:
            urls.append(each.url)
            continue
        try:
            found = await matching(await sessions.get(each.url), each.pattern)
        except XftpError as error:
            outcome.failed(str(each.url), str(each.url), error)
            continue
        for match in found:
            if match.is_directory:
                screen.notice(f"{match.path}: left out, it is a directory")
            elif not safe_name(match.entry.name):
                screen.notice(f"{match.path}: left out, not a name for a file here")
            else:
                urls.append(replace(each.url, path=match.path))
    return urls


async def _fetch_together(
    downloads: Sequence[Download],
    sessions: Sessions,
    settings: Settings,
    screen: Screen,
    outcome: Outcome,
) -> list[Download]:
    """Fetch what one server can send as a series; give what is left."""
    left = list(downloads)
    if len(left) < 2:
        return left
    from xftp.client.series import Pair

    first = downloads[0].url
    fitting = {
        each.target: each
        for each in downloads
        if each.target != STDOUT
        and each.url.type is None
        and replace(each.url, path=first.path, type=first.type) == first
        and may_be_written(Path(each.target), settings)
    }
    jobs = [(each, Pair(Path(each.target), each.url.path)) for each in fitting.values()]
    if len({pair.there for _, pair in jobs}) < max(len(jobs), 2):
        return left  # there is nothing to be gained, or a file is asked for twice
    try:
        session = await sessions.get(first)
    except XftpError:
        return left  # the first file will tell

    def named(download: Download) -> tuple[str, str]:
        return download.target, str(download.url)

    moved = await move_together(session, "download", jobs, outcome, named, settings, screen)
    return [download for download in left if download not in moved]


async def fetch(
    session: Session,
    remote: str,
    target: str,
    settings: Settings,
    screen: Screen,
    chooser: Chooser = choose,
) -> TransferReport | None:
    """Fetch one file to a path or to "-". Raises XftpError, BrokenPipeError."""
    if target == STDOUT:
        return await _fetch_to_stdout(session, remote, screen)

    async def attempt(existing: Existing) -> TransferReport | None:
        with screen.watch(target) as bars:
            progress = GoingOn(target, bars, screen) if existing == "fail" else bars
            report = await session.get(
                remote,
                target,
                existing=existing,
                progress=progress,
                preserve_times=settings.preserve_times,
            )
        if report is not None and isinstance(progress, GoingOn):
            progress.tell(report.offset)
        return report

    try:
        return await attempt(settings.existing or "fail")
    except ExistsError as error:
        return await attempt(chooser(target, error))
    except ReplyError as error:
        if error.code != _REFUSED or not await is_directory(session, remote):
            raise
        raise DirectoryError(directory_refusal(remote)) from error


def kept_here(target: str) -> Callable[[BaseException], str | None]:
    """Give a function that says which partial file of `target` is there, if one is."""

    def hint(_: BaseException) -> str | None:
        if target == STDOUT:
            return None
        path = Path(os.path.realpath(target))  # a link stays a link: the part is at its end
        part = path.with_name(working_names(path.name)[0])
        try:
            is_worth_it = part.is_file() and part.stat().st_size
        except OSError:  # there is no such name, or nobody may see it
            return None
        shown = part if path.parent != Path.cwd() else part.name
        return f"partial file kept: {shown}; {RESUME_HINT}" if is_worth_it else None

    return hint


async def _fetch_to_stdout(session: Session, remote: str, screen: Screen) -> TransferReport:
    screen.detail("a stream goes over one data connection")
    output = OutputStream(1)
    with screen.watch("standard output") as progress:
        work = asyncio.ensure_future(session.get_stream(remote, output, progress=progress))
        try:
            return await asyncio.shield(work)
        except XftpError as error:
            if output.error is not None:
                raise output.error from error
            raise
        except asyncio.CancelledError:
            output.close()  # before the transfer waits for its threads
            work.cancel()
            await asyncio.wait([work])
            raise
