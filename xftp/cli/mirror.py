"""`xftp mirror`: one tree like the other."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xftp.client.mirror import Mirror
from xftp.client.mirror_moves import Order, Summary
from xftp.client.mirroring import Plan, Tree
from xftp.client.options import Options
from xftp.client.patterns import Selection
from xftp.client.pool import SessionPool
from xftp.client.session import Session, open_session
from xftp.client.url import FtpUrl, parse_url
from xftp.errors import ArgumentError, ConnectError, TransferAborted, XftpError
from xftp.transport.ratelimit import RateLimit

from .credentials import find_login
from .screen import Screen
from .sessions import options_of
from .settings import Settings
from .terminal import can_ask, complain
from .text import printable, rate_text, seconds_text, size_text
from .tls_options import check_tls
from .urls import shown

if TYPE_CHECKING:
    from xftp.client.progress import Progress

SESSIONS = 4
"""Sessions that look at directories, and move files where each needs one of its own."""

_DONE = {"fetch": "fetched", "send": "sent", "mkdir": "made", "delete": "deleted"}


def mirror_order(source: str, target: str, values: dict[str, Any]) -> tuple[FtpUrl, Order]:
    """Read the command line, and take from `values` what only this command has.

    Raises click.UsageError, ArgumentError.
    """
    is_remote = ["://" in place for place in (source, target)]
    if sum(is_remote) != 1:
        raise click.UsageError("one of SOURCE and TARGET is a URL, the other a directory here")
    typed, argument = (source, "SOURCE") if is_remote[0] else (target, "TARGET")
    try:
        url = parse_url(typed)
    except ArgumentError as error:
        hint = f"'{argument}'"
        raise click.BadParameter(f"{shown(typed)}: {error}", param_hint=hint) from error
    if url.type is not None:
        raise click.UsageError(f"{url}: a mirror takes no ;type=")
    try:
        selection = Selection(values.pop("includes"), values.pop("excludes"))
    except re.error as error:
        raise click.UsageError(f"a pattern is malformed: {error}") from error
    checksum = values.pop("checksum")
    if checksum and values.get("verify") == "never":
        raise click.UsageError("--checksum and --no-verify contradict each other")
    order = Order(
        local=Path(target if is_remote[0] else source),
        remote=url.path if url.path == "/" else url.path.rstrip("/"),
        direction="download" if is_remote[0] else "upload",
        delete=values.pop("delete"),
        checksum=checksum,
        preserve_times=values["preserve_times"],
        selection=selection,
        dry_run=values.pop("dry_run"),
        transfers=values["connections"] or SESSIONS,
    )
    return url, order


async def mirror_files(order: tuple[FtpUrl, Order], settings: Settings) -> int:
    """Do it, going on after failures; give the exit status."""
    url, what = order
    screen = Screen(verbose=settings.verbose, quiet=settings.quiet)
    telling = _Telling(screen, as_json=settings.json, is_dry=what.dry_run)
    pool = _pool(url, settings, screen)
    politely = False
    try:
        with telling.watching(str(replace(url, password=None))):
            mirror = Mirror(what, pool, telling)
            summary = await mirror.run()
        politely = True
    except (ConnectError, TransferAborted):
        if telling.has_plan:  # else nothing was begun, and there is nothing to go on with
            screen.notice("the mirror was cut; run again to go on")
        raise
    finally:
        await pool.close(politely=politely)
    telling.sum_up(summary)
    if telling.output_error is not None:
        raise telling.output_error
    return telling.status


def _pool(url: FtpUrl, settings: Settings, screen: Screen) -> SessionPool:
    check_tls(url, settings)
    login = find_login(
        url.host,
        user=url.user or settings.user,
        password=url.password,
        netrc_file=settings.netrc_file,
        may_ask=can_ask(),
    )
    # Several files move at the same time, where a server has no MULT: not their parts as well.
    options: Options = replace(options_of(settings, screen), splits=False)
    if options.limit_rate is not None:
        options = replace(options, shared_limit=RateLimit(options.limit_rate))

    async def open_one() -> Session:
        return await open_session(
            url, user=login.user, password=login.password, options=options, defer=True
        )

    return SessionPool(open_one, max(SESSIONS, settings.connections or 0), screen.detail)


class _Telling:
    """Says what a mirror does; implements `xftp.client.mirror.Observer`."""

    def __init__(self, screen: Screen, *, as_json: bool, is_dry: bool) -> None:
        self.status = 0
        """That of the first failure, 0 if there is none."""
        self.output_error: OSError | None = None
        """Why standard output took no more, if it did not."""
        self.has_plan = False
        """Whether it is known what there is to do."""
        self._screen = screen
        self._as_json = as_json
        self._is_dry = is_dry
        self._bar: Progress | None = None

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        """Show how far all of it is, on a terminal."""
        with self._screen.watch(name) as self._bar:
            try:
                yield
            finally:
                self._bar = None

    def planned(self, work: Plan, source: Tree) -> None:
        """Begin to draw; say what is left out."""
        self.has_plan = True
        if source.others:
            count = len(source.others)
            self._screen.detail(f"{count} link(s) or special file(s) are left out")
        if self._bar is not None and not self._is_dry:
            self._bar.started(work.total_bytes, 0)

    def moved(self, size: int) -> None:
        """Let the bar grow."""
        if self._bar is not None:
            self._bar.moved(0, size)

    def done(self, action: str, path: str, size: int | None = None) -> None:
        """Say what was done, or would be."""
        if self._is_dry and not self._as_json:
            self._write(f"{action} {printable(path)}\n")
        else:
            self._screen.detail(f"{_DONE[action]} {path}")
        status = "planned" if self._is_dry else "done"
        self._print({"action": action, "path": path, "bytes": size, "status": status})

    def failed(self, action: str, path: str, error: Exception) -> None:
        """Say what could not be done."""
        code = error.exit_code if isinstance(error, XftpError) else 1
        self.status = self.status or code
        complain(f"{path}: {error}" if path and not str(error).startswith(path) else error)
        self._print({"action": action, "path": path, "status": "failed", "error": str(error)})

    def sum_up(self, summary: Summary) -> None:
        """Say what it came to."""
        self._print({"summary": asdict(summary)})
        if not self._screen.quiet and not self._as_json:
            self._screen.summary(_sentence(summary))

    def _print(self, values: dict[str, object]) -> None:
        if self._as_json:
            self._write(json.dumps(values) + "\n")

    def _write(self, text: str) -> None:
        """Write to standard output; files that move now go on moving if it takes no more."""
        if self.output_error is not None:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            self.output_error = error


def _sentence(summary: Summary) -> str:
    would = "would be " if summary.dry_run else ""
    files = "file" if summary.moved == 1 else "files"
    directories = "directory" if summary.directories == 1 else "directories"
    parts = [f"{summary.moved} {files} ({size_text(summary.bytes)}) {would}moved"]
    parts += [
        f"{count} {what}"
        for count, what in (
            (summary.unchanged, "unchanged"),
            (summary.directories, f"{directories} {would}made"),
            (summary.removed, f"{would}deleted"),
            (summary.left_out, "left out (links, special files)"),
            (summary.failed, "failed"),
            (summary.not_tried, "not tried"),
        )
        if count
    ]
    rate = ""
    if summary.bytes and not summary.dry_run and summary.seconds > 0:
        rate = f", {rate_text(summary.bytes / summary.seconds)}"
    return f"{', '.join(parts)}, in {seconds_text(summary.seconds)}{rate}"
