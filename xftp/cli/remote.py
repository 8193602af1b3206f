"""One-shot commands on the files of a server: ls, rm, rmdir, mkdir, mv."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Sequence

from xftp.client.removing import remove_tree
from xftp.client.session import Session
from xftp.client.url import FtpUrl
from xftp.errors import ReplyError, XftpError

from .matching import DirectoryError, is_directory, matching
from .screen import Screen
from .sessions import Sessions
from .settings import Settings
from .terminal import complain
from .text import listing_lines
from .urls import Wanted

_IS_THERE = (450, 521, 550, 553)
"""Replies that a server may give where a directory of that name is there already."""


async def list_directory(wanted: Wanted, settings: Settings, *, long: bool) -> int:
    """Print the entries of a directory, or those that fit a pattern; give the exit status."""
    async with Sessions(settings, _screen(settings)) as sessions:
        session = await sessions.get(wanted.url)
        if wanted.pattern is None:
            entries = await session.list(wanted.url.path)
        else:
            found = await matching(session, wanted.pattern)
            entries = [match.entry._replace(name=match.path) for match in found]
    for line in listing_lines(entries, long=long):
        print(line)
    return 0


async def remove(wanted: Sequence[Wanted], settings: Settings, *, recursive: bool) -> int:
    """Delete files, with `recursive` directories too; give the exit status."""
    screen = _screen(settings)

    async def one(session: Session, path: str) -> None:
        if recursive:
            await remove_tree(session, path, lambda gone: screen.detail(f"deleted {gone}"))
            return
        try:
            await session.remove(path)
        except ReplyError as error:
            if error.code != 550 or not await is_directory(session, path):
                raise
            raise DirectoryError(
                f"{path} is a directory: rm -r removes it with all in it"
            ) from error

    status = 0
    async with Sessions(settings, screen) as sessions:
        for each in wanted:
            try:
                session = await sessions.get(each.url)
                paths = [each.url.path]
                if each.pattern is not None:
                    paths = [match.path for match in await matching(session, each.pattern)]
            except XftpError as error:
                status = _complain(error, status)
                continue
            for path in paths:
                try:
                    await one(session, path.rstrip("/"))
                except XftpError as error:
                    status = _complain(error, status)
    return status


async def remove_directories(urls: Sequence[FtpUrl], settings: Settings) -> int:
    """Remove empty directories; give the exit status."""
    return await _each(urls, settings, lambda session, path: session.remove_directory(path))


async def make_directories(urls: Sequence[FtpUrl], settings: Settings, *, parents: bool) -> int:
    """Make directories, with `parents` those that lead to them too; give the exit status."""

    async def with_parents(session: Session, path: str) -> None:
        error: XftpError | None = None
        for end in [at for at, sign in enumerate(path) if sign == "/" and at] + [len(path)]:
            try:
                error = None
                await session.make_directory(path[:end])
            except ReplyError as refusal:
                error = refusal
        if error is not None and not await is_directory(session, path):
            raise error

    if parents:
        return await _each(urls, settings, with_parents)
    return await _each(urls, settings, lambda session, path: session.make_directory(path))


async def rename(urls: Sequence[FtpUrl], new: str, settings: Settings) -> int:
    """Rename one file, or move files into a directory; give the exit status."""
    names_directory = len(urls) > 1 or not new or new.endswith("/")

    async def one(session: Session, path: str) -> None:
        inside = posixpath.join(new, posixpath.basename(path))
        try:
            await session.rename(path, inside if names_directory else new)
        except ReplyError as error:
            if names_directory or error.code not in _IS_THERE:
                raise
            if not await is_directory(session, new):
                raise
            await session.rename(path, inside)

    return await _each(urls, settings, one)


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
                status = _complain(error, status)
    return status


def _complain(error: XftpError, status: int) -> int:
    """Say what failed; give the exit status, that of the first failure."""
    complain(error)
    return status or error.exit_code


def _screen(settings: Settings) -> Screen:
    return Screen(verbose=settings.verbose, quiet=settings.quiet)
