"""One-shot commands on the files of a server: ls, rm, mkdir, mv."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from xftp.client.session import Session
from xftp.client.url import FtpUrl
from xftp.errors import XftpError

from .screen import Screen
from .sessions import Sessions
from .settings import Settings
from .terminal import complain
from .text import listing_lines


async def list_directory(url: FtpUrl, settings: Settings, *, long: bool) -> int:
    """Print the entries of a directory; give the exit status."""
    async with Sessions(settings, _screen(settings)) as sessions:
        session = await sessions.get(url)
        entries = await session.list(url.path)
    for line in listing_lines(entries, long=long):
        print(line)
    return 0


async def remove(urls: Sequence[FtpUrl], settings: Settings) -> int:
    """Delete files; give the exit status."""
    return await _each(urls, settings, lambda session, path: session.remove(path))


async def make_directory(urls: Sequence[FtpUrl], settings: Settings) -> int:
    """Make directories; give the exit status."""
    return await _each(urls, settings, lambda session, path: session.make_directory(path))


async def rename(old: FtpUrl, new: str, settings: Settings) -> int:
    """Rename a file; give the exit status."""
    return await _each([old], settings, lambda session, path: session.rename(path, new))


async def _each(
    urls: Sequence[FtpUrl], settings: Settings, work: Callable[[Session, str], Awaitable[object]]
) -> int:
    """Do the same for every URL, going on after failures."""
    status = 0
    async with Sessions(settings, _screen(settings)) as sessions:
        for url in urls:
            try:
                await work(await sessions.get(url), url.path.rstrip("/"))
            except XftpError as error:
                complain(error)
                status = status or error.exit_code
    return status


def _screen(settings: Settings) -> Screen:
    return Screen(verbose=settings.verbose, quiet=settings.quiet)
