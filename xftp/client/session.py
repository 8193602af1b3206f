"""A session with one server: what a user of the library holds in hand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from xftp.errors import ArgumentError, LoginError, XftpError
from xftp.protocol.commands import Command
from xftp.transport.report import TransferReport

from .commands import ServerCommands, check_path
from .control import Control
from .dialogue import Dialogue
from .download import Download, Downloading
from .flights import WELCOME, Pace, PipeliningError
from .login import log_in
from .memory import WAYS, KnownServer
from .options import Existing, Options
from .progress import Progress
from .retry import persist
from .sender_report import with_sender
from .streams import Consume, Produce, download_stream
from .upload import Upload, Uploading, remote_path
from .url import FtpUrl, parse_url

GOODBYE_S = 5.0
"""How long the reply to QUIT is waited for."""

_Result = TypeVar("_Result")


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


class Session(ServerCommands):
    """One server, one user, one working directory. Made by `connect` or `open_session`.

    One thing at a time: calls wait for each other, but for `status` and `abort`. Every call raises
    ArgumentError before anything is sent if a path holds CR, LF or NUL; ReplyError if the server
    refuses; ConnectError if the connection is lost.
    """

    def __init__(self, url: FtpUrl, options: Options) -> None:
        self.url = url
        self.options = options
        self.is_logged_in = False
        self.login_error: LoginError | None = None
        """Why a deferred login was refused."""
        super().__init__(Dialogue(Control(options), options))
        self._login: tuple[str | None, str | None] | None = None

    # -- connection --------------------------------------------------------------------------------

    async def open(self, *, early: bool = False) -> None:
        """Connect, without logging in. Raises ConnectError.

        early: do not wait for the greeting of a server that takes commands before it.
        """
        dialogue, options = self._dialogue, self.options
        control = dialogue.control
        known = await self._recall()
        try:
            await control.connect(self.url.host, self.url.port)
            if dialogue.may_pipeline and options.assume_xftpd:
                dialogue.assume_our_kind()
            elif dialogue.may_pipeline and known is not None and known.is_our_kind:
                dialogue.assume_our_kind(known.features, known.connection_limit)
            if not early or dialogue.pace is not Pace.ALL:
                await control.greet()
                if dialogue.may_pipeline and control.greeting.startswith(WELCOME):
                    dialogue.assume_our_kind()
        except BaseException:
            await control.wait_closed()
            raise

    async def _recall(self) -> KnownServer | None:
        """Look up what earlier sessions learnt of the server, and of the paths to it."""
        memory, place = self.options.memory, (self.url.host, self.url.port)
        self._dialogue.place = place
        if memory is None:
            return None
        for way in WAYS:
            path = await asyncio.to_thread(memory.path, *place, way)
            if path is not None:
                self._dialogue.paths[way] = path
        known = await asyncio.to_thread(memory.server, *place)
        if known is not None and not known.pipelines:
            self._dialogue.may_pipeline = False
        return known

    async def login(
        self, user: str | None = None, password: str | None = None, *, defer: bool = False
    ) -> None:
        """Log in, anonymously without a user. Raises LoginError.

        defer: as for `open_session`.
        """
        self._login = (user, password)
        try:
            async with self._dialogue.lock:
                await log_in(self._dialogue, user, password, defer=defer)
        except PipeliningError as error:
            await self._fall_back(error)
        except BaseException as error:
            self._login = None
            if not isinstance(error, LoginError):
                await self.wait_closed()
            raise
        self.is_logged_in = True
        if self._dialogue.is_settled:
            await self._remember_server()

    async def quit(self) -> None:
        """Say goodbye and close; a server that is gone already is no error."""
        dialogue = self._dialogue
        with suppress(XftpError, TimeoutError):
            if not self.is_closed and dialogue.is_settled:
                async with dialogue.lock, asyncio.timeout(GOODBYE_S):
                    if dialogue.pace is Pace.ALL:  # it needs no reply before we close
                        dialogue.control.send(Command("QUIT", ""))
                    else:
                        await dialogue.ask("QUIT")
        await self.wait_closed()

    def close(self) -> None:
        """Close at once."""
        self._dialogue.control.close()

    async def wait_closed(self) -> None:
        """Close at once, and wait until the socket is released."""
        await self._dialogue.control.wait_closed()

    async def _reconnect(self, *, may_pipeline: bool = True) -> None:
        """Make the session again as it was: user, directory, connections."""
        await self.wait_closed()
        before, walk = self._dialogue, self._walk
        may_pipeline = may_pipeline and before.may_pipeline
        self._dialogue = Dialogue(Control(self.options), self.options, may_pipeline=may_pipeline)
        self._dialogue.asked, self._dialogue.passive = before.asked, before.passive
        self._dialogue.auto = before.auto
        self._dialogue.type_code = before.type_code
        await self.open()
        if self._login is not None:
            await self.login(*self._login)
        for verb, argument in walk:
            await self._dialogue.demand(verb, argument)

    async def _fall_back(self, error: PipeliningError) -> None:
        """Connect anew, and send one command at a time from now on."""
        self._dialogue.trace(f"{error}: a new connection, one command at a time")
        await self._reconnect(may_pipeline=False)

    async def _remember_server(self) -> None:
        """Note what was learnt of the server for later sessions."""
        memory, dialogue = self.options.memory, self._dialogue
        if memory is None:
            return
        ours = dialogue.announces_connections
        known = KnownServer(
            is_our_kind=ours and dialogue.may_pipeline,
            pipelines=dialogue.may_pipeline,
            features=dialogue.features if ours else None,
            connection_limit=dialogue.server_limit if ours else None,
        )
        await asyncio.to_thread(memory.note_server, self.url.host, self.url.port, known)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Dialogue]:
        """Have the dialogue for oneself, with the login done."""
        if not self._dialogue.is_settled:
            await self._work_through(Dialogue.settle)
        async with self._dialogue.lock:
            yield self._dialogue

    async def _work_through(self, work: Callable[[Dialogue], Awaitable[_Result]]) -> _Result:
        """Do `work`, once more if the server turns out not to take commands together."""
        was_settled = self._dialogue.is_settled
        try:
            async with self._dialogue.lock:
                result = await work(self._dialogue)
        except PipeliningError as error:
            await self._fall_back(error)
            async with self._dialogue.lock:
                return await work(self._dialogue)
        except LoginError as error:
            self.is_logged_in, self.login_error = False, error
            await self.wait_closed()
            raise
        if not was_settled and self._dialogue.is_settled:
            await self._remember_server()
        return result

    # -- what is known -----------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the control connection is gone."""
        return self._dialogue.control.is_closed

    @property
    def greeting(self) -> str:
        """What the server said first."""
        return self._dialogue.control.greeting

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
        check_path(remote)
        order = Download(remote, local, existing, progress, preserve_times)
        downloading = Downloading(order)

        async def work(dialogue: Dialogue) -> TransferReport | None:
            report = await downloading.attempt(dialogue)
            return report and await with_sender(dialogue, report)

        return await self._persist(work)

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
        order = Upload(local, remote_path(local, remote), existing, progress, preserve_times)
        check_path(order.remote)
        return await self._persist(Uploading(order).attempt)

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

    async def _persist(self, work: Callable[[Dialogue], Awaitable[_Result]]) -> _Result:
        """Do `work`, and again on a new connection, as far as the options allow."""

        async def attempt(is_retry: bool) -> _Result:
            if is_retry and self.is_closed:
                await self._reconnect()
            return await self._work_through(work)

        return await persist(attempt, self.options)
