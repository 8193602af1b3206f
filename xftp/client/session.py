"""A session with one server: what a user of the library holds in hand."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from xftp.errors import ArgumentError
from xftp.protocol.commands import Command
from xftp.protocol.listings import Entry
from xftp.protocol.replies import Reply
from xftp.transport.report import TransferReport

from .commands import check_path
from .connected import Connected
from .dialogue import Dialogue
from .facts import parse_size
from .listing import list_entries, list_together, lists_together
from .options import Direction, Existing, Options
from .progress import Progress
from .retry import persist
from .sender_report import with_sender
from .streams import Consume, Produce, download_stream
from .url import FtpUrl, parse_url

if TYPE_CHECKING:
    from .receiving import Download
    from .series import Completed, Pair, SeriesResult

# What moves files is loaded by the call that needs it: the first bytes need not wait for the rest.


def connect(
    url: str | FtpUrl,
    *,
    user: str | None = None,
    password: str | None = None,
    options: Options | None = None,
    connections: int | None = None,
) -> AbstractAsyncContextManager[Session]:
    """Give a logged-in session: `async with connect("ftp://host/", connections=8) as session:`.

    user, password: before those of the URL; with neither the login is anonymous. connections:
    before those of `options`. Raises ArgumentError, ConnectError, LoginError.
    """
    return _connected(url, user, password, options, connections)


@asynccontextmanager
async def _connected(
    url: str | FtpUrl,
    user: str | None,
    password: str | None,
    options: Options | None,
    connections: int | None,
) -> AsyncIterator[Session]:
    options = options or Options()
    if connections is not None:
        options = replace(options, connections=connections)
    session = await open_session(url, user=user, password=password, options=options)
    try:
        yield session
    except BaseException:
        await session.wait_closed()
        raise
    await session.quit()


async def open_session(
    url: str | FtpUrl,
    *,
    user: str | None = None,
    password: str | None = None,
    options: Options | None = None,
    login: bool = True,
    defer: bool = False,
) -> Session:
    """Connect, as `connect` does, for those who call `quit` themselves.

    login: False leaves the login to `Session.login`; defer: let the login leave together with the
    first commands of the next call, where the server is known to take that. That call then raises
    LoginError, and the session is closed.
    """
    url = parse_url(url) if isinstance(url, str) else url
    options = options or Options()
    user = user if user is not None else url.user
    password = password if password is not None else url.password

    async def attempt(_: bool) -> Session:
        session = Session(url, options)
        await session.open(early=login)
        try:
            if login:
                await session.login(user, password, defer=defer)
        except BaseException:
            await session.wait_closed()
            raise
        return session

    return await persist(attempt, options)


class Session(Connected):
    """One server, one user, one working directory. Made by `connect` or `open_session`.

    One thing at a time: calls wait for each other, but for `status` and `abort`. Every call raises
    ArgumentError before anything is sent if a path holds CR, LF or NUL; ReplyError if the server
    refuses; ConnectError if the connection is lost.
    """

    # -- what is known -----------------------------------------------------------------------------

    @property
    def greeting(self) -> str:
        """What the server said first."""
        return self._dialogue.control.greeting

    @property
    def protection(self) -> str | None:
        """Version and cipher of TLS, and whether data is protected too; None: there is no TLS."""
        tls = self._dialogue.control.tls
        if tls is None:
            return None
        return tls.agreed + ("" if tls.for_data() else "; data goes in clear")

    @property
    def connections(self) -> int:
        """Data connections for the next transfer, as far as it is known."""
        return self._dialogue.connections

    @property
    def server_limit(self) -> int | None:
        """The server's limit of data connections; None: not asked yet, or not told."""
        return self._dialogue.server_limit

    @property
    def supports_multiple(self) -> bool | None:
        """Whether the server takes several data connections; None: not asked yet."""
        return self._dialogue.supports_multiple

    @property
    def passive(self) -> bool:
        """Whether this side opens the data connections; may be set."""
        return self._dialogue.passive

    @passive.setter
    def passive(self, value: bool) -> None:
        self._dialogue.passive = value

    @property
    def type(self) -> str:
        """ "I" (image: every byte as it is) or "A" (ASCII: line ends are converted)."""
        return self._dialogue.type_code

    async def multiple(self, wanted: int | None = None) -> int:
        """Ask for `wanted` data connections, 4 by default; give the number in force.

        It is 1 if the server lacks MULT. Raises ArgumentError for less than 1.
        """
        async with self._turn() as dialogue:
            return await dialogue.multiple(wanted)

    async def features(self) -> dict[str, str]:
        """Give what FEAT lists, feature to parameters; empty if the server lacks FEAT."""
        if not self._dialogue.is_settled:
            await self._work_through(Dialogue.settle)
        return dict(self._dialogue.features or {})

    async def list(self, path: str = "") -> list[Entry]:
        """List a directory, as `ServerCommands` does; a deferred login leaves with it."""
        return await self._work_through(lambda dialogue: list_entries(dialogue, path))

    async def list_together(self, paths: Sequence[str]) -> Sequence[Sequence[Entry] | None]:
        """List directories for the round trips of one; None for each that `list` has to list."""

        async def work(dialogue: Dialogue) -> Sequence[Sequence[Entry] | None]:
            if not lists_together(dialogue):
                return [None] * len(paths)
            return await list_together(dialogue, paths)

        for path in paths:
            check_path(path)
        return await self._work_through(work)

    async def sizes(self, paths: Sequence[str]) -> Sequence[int | None]:
        """Give the sizes of files on the server; None for one that it does not tell."""

        async def work(dialogue: Dialogue) -> Sequence[Reply]:
            questions = [Command("SIZE", path) for path in paths]
            return await dialogue.flight(*dialogue.type_commands("I"), *questions)

        replies = await self._work_through(work)
        return [parse_size(reply) for reply in replies[-len(paths) :]] if paths else []

    # -- transfers ---------------------------------------------------------------------------------

    async def get(
        self,
        remote: str,
        local: str | os.PathLike[str] | None = None,
        *,
        existing: Existing = "fail",
        progress: Progress | None = None,
        preserve_times: bool = True,
    ) -> TransferReport | None:
        """Fetch a file; None if it was skipped, or if "resume" found nothing left to do.

        local: a file, or a directory to put it in; the working directory by default. The name
        never holds half a file: what was cut is kept beside it under a partial name.
        Raises ExistsError, FileError, TransferAborted, and more of XftpError.
        """
        from .download import Downloading
        from .receiving import Download

        check_path(remote)
        order = Download(remote, local, existing, progress, preserve_times)
        downloading = Downloading(order)

        async def work(dialogue: Dialogue) -> TransferReport | None:
            report = await self._get_in_ranges(dialogue, order)
            if report is None:
                report = await downloading.attempt(dialogue)
            return report and await with_sender(dialogue, report)

        return await self._persist(work)

    async def _get_in_ranges(self, dialogue: Dialogue, order: Download) -> TransferReport | None:
        """Fetch a file over several sessions, if the server has no better; None: not so."""
        if not self.options.splits or dialogue.type_code == "A":
            return None
        await dialogue.connections_in_force()
        if dialogue.supports_multiple is not False or dialogue.wanted < 2:
            return None
        from .ranges import fetch_in_ranges

        return await fetch_in_ranges(dialogue, order, dialogue.wanted, self._open_like)

    async def _open_like(self) -> Dialogue:
        """Open a session like this one: server, user, directory."""
        user, password = self._login or (None, None)
        options = replace(self.options, retries=0)
        other = await open_session(self.url, user=user, password=password, options=options)
        try:
            other.passive = self.passive
            for verb, argument in self._walk:
                await other._dialogue.demand(verb, argument)
        except BaseException:
            await other.wait_closed()
            raise
        return other._dialogue

    async def put(
        self,
        local: str | os.PathLike[str],
        remote: str | None = None,
        *,
        existing: Existing = "fail",
        progress: Progress | None = None,
        preserve_times: bool = True,
    ) -> TransferReport | None:
        """Store a file; None if it was skipped, or if "resume" found nothing left to do.

        remote: a path; without one, or if it ends in "/", the local base name is put behind it.
        Raises as `get` does.
        """
        from .upload import Upload, Uploading, remote_path

        order = Upload(local, remote_path(local, remote), existing, progress, preserve_times)
        check_path(order.remote)
        return await self._persist(Uploading(order).attempt)

    async def move_series(
        self,
        direction: Direction,
        pairs: Sequence[Pair],
        *,
        preserve_times: bool = True,
        progress: Progress | None = None,
        completed: Completed = lambda _: None,
    ) -> SeriesResult | None:
        """Move many files at the cost of one; None if the server cannot.

        completed: told the index of each file that is there. What exists is replaced.
        """
        from .series import move_series, takes_series

        for pair in pairs:
            check_path(pair.there)

        async def work(dialogue: Dialogue) -> SeriesResult | None:
            if not takes_series(dialogue):
                return None
            return await move_series(
                dialogue,
                direction,
                pairs,
                preserve_times=preserve_times,
                progress=progress,
                completed=completed,
            )

        return await self._work_through(work)

    async def get_stream(
        self, remote: str, consume: Consume, *, progress: Progress | None = None
    ) -> TransferReport:
        """Fetch a file in order over one connection, and hand it to `consume` piece by piece."""
        check_path(remote)

        async def work(dialogue: Dialogue) -> TransferReport:
            report = await download_stream(dialogue, remote, consume, progress)
            return await with_sender(dialogue, report)

        return await self._work_through(work)

    async def put_stream(
        self,
        produce: Produce,
        remote: str,
        *,
        existing: Existing = "overwrite",
        progress: Progress | None = None,
    ) -> TransferReport | None:
        """Store what `produce` gives, over one connection; None if it was skipped."""
        from .upload import Upload, Uploading

        check_path(remote)

        async def work(dialogue: Dialogue) -> TransferReport | None:
            order = Upload("", remote, existing, progress)
            return await Uploading(order).attempt_from(dialogue, produce)

        return await self._work_through(work)

    async def abort(self) -> None:
        """Stop the transfer that runs, which raises TransferAborted; without one, say ABOR."""
        stop = self._dialogue.stop_transfer
        if stop is None:
            await self._command("ABOR")
        elif not stop.done():
            stop.set_result(None)

    async def set_type(self, code: str) -> None:
        """Choose the representation: "I" (image) or "A" (ASCII, one connection)."""
        code = code.upper()
        if code not in ("A", "I"):
            raise ArgumentError("the type is A or I")
        async with self._turn() as dialogue:
            await dialogue.ensure_type(code)
            dialogue.type_code = code
