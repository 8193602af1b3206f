"""`xftp get`: files from servers to here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from xftp.client.existing import ExistsError
from xftp.client.options import Existing
from xftp.client.series import Pair
from xftp.client.session import Session
from xftp.client.url import FtpUrl
from xftp.errors import FileNameError, XftpError
from xftp.protocol.listings import safe_name
from xftp.transport.files import working_names
from xftp.transport.report import TransferReport

from .existing import Chooser, choose
from .outcome import RESUME_HINT, Outcome
from .screen import Screen
from .sessions import Sessions
from .settings import Settings
from .streams import OutputStream
from .together import may_be_written, move_together

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Download:
    """One file to fetch."""

    url: FtpUrl
    """Where it is."""

    target: str
    """Where it goes: a path, or "-"."""


def plan_downloads(urls: Sequence[FtpUrl], output: str | None) -> list[Download]:
    """Decide where each file goes. Raises click.UsageError, FileNameError."""
    for url in urls:
        if url.type == "d" or url.path == "" or url.path.endswith("/"):
            raise click.UsageError(f"{url} names a directory; get fetches files, ls lists")
    if output == STDOUT:
        return [Download(url, STDOUT) for url in urls]
    if len(urls) > 1 and output is not None and not Path(output).is_dir():
        raise click.UsageError(f"-o {output}: several files need a directory that exists")
    return [Download(url, local_target(url.path, output)) for url in urls]


def local_target(remote: str, wanted: str | None = None) -> str:
    """Decide where a file goes: to `wanted`, into it if it is a directory, or here.

    Raises FileNameError if the name on the server is none for here.
    """
    if wanted is None:
        return base_name(remote)
    if wanted != STDOUT and (wanted.endswith("/") or Path(wanted).is_dir()):
        return str(Path(wanted) / base_name(remote))
    return wanted


def base_name(path: str) -> str:
    """Give the last part of a path on a server as a name for here. Raises FileNameError."""
    name = path.rpartition("/")[2]
    if not safe_name(name):
        raise FileNameError(f"{name}: not a name for a file here; give one")
    return name


async def get_files(downloads: Sequence[Download], settings: Settings) -> int:
    """Fetch all files, going on after failures; give the exit status."""
    screen = Screen(verbose=settings.verbose, quiet=settings.quiet)
    outcome = Outcome(screen, as_json=settings.json)
    async with Sessions(settings, screen) as sessions:
        for download in await _fetch_together(downloads, sessions, settings, screen, outcome):

            async def transfer(download: Download = download) -> TransferReport | None:
                session = await sessions.get(download.url)
                return await fetch(session, download.url.path, download.target, settings, screen)

            name = "standard output" if download.target == STDOUT else download.target
            await outcome.of(name, str(download.url), transfer, kept_here(download.target))
    return outcome.status


async def _fetch_together(
    downloads: Sequence[Download],
    sessions: Sessions,
    settings: Settings,
    screen: Screen,
    outcome: Outcome,
) -> list[Download]:
    """Fetch what one server can send as a series; give what is left."""
    left = list(downloads)
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

    def tell(download: Download, report: TransferReport) -> None:
        outcome.note(download.target, str(download.url), report)

    for download in await move_together(session, "download", jobs, tell, settings, screen):
        left.remove(download)
    return left


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
        with screen.watch(target) as progress:
            return await session.get(
                remote,
                target,
                existing=existing,
                progress=progress,
                preserve_times=settings.preserve_times,
            )

    try:
        return await attempt(settings.existing or "fail")
    except ExistsError as error:
        return await attempt(chooser(target, error))


def kept_here(target: str) -> Callable[[BaseException], str | None]:
    """Give a function that says which partial file of `target` is there, if one is."""

    def hint(_: BaseException) -> str | None:
        if target == STDOUT:
            return None
        path = Path(target).resolve()  # a link stays a link, so the partial file is at its end
        part = path.with_name(working_names(path.name)[0])
        shown = part if path.parent != Path.cwd() else part.name
        return f"partial file kept: {shown}; {RESUME_HINT}" if part.exists() else None

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
