"""The connection of a session: made, logged in, and made again where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from xftp.errors import ConnectError, LoginError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.standing import port_of_greeting

from .commands import ServerCommands
from .control import Control
from .dialogue import OUR_FEATURES, Dialogue
from .flights import WELCOME, Pace, PipeliningError
from .login import log_in
from .memory import WAYS, KnownServer
from .options import Options
from .paths import LONG_RTT_S
from .retry import persist
from .tls import security_of
from .url import FtpUrl

GOODBYE_S = 5.0
"""How long the reply to QUIT is waited for."""

_Result = TypeVar("_Result")


class Connected(ServerCommands):
    """What a session is besides its transfers. Errors as those of `Session`."""

    def __init__(self, url: FtpUrl, options: Options) -> None:
        self.url = url
        self.options = options
        self.is_logged_in = False
        self.login_error: LoginError | None = None
        """Why a deferred login was refused."""
        self.connect_error: ConnectError | None = None
        """Why a connection that was not waited for could not be made."""
        super().__init__(Dialogue(Control(options), options))
        self._login: tuple[str | None, str | None] | None = None
        self._security = security_of(url.scheme, options.tls)

    @property
    def is_closed(self) -> bool:
        """Whether the control connection is gone."""
        return self._dialogue.control.is_closed

    @property
    def _known_as(self) -> str:
        """Under which name it is remembered what the server can do.

        What was heard in the clear is not believed where TLS is wanted. The path is the same.
        """
        return self.url.host if self._security == "none" else f"tls:{self.url.host}"

    async def open(self, *, early: bool = False) -> None:
        """Connect, without logging in. Raises ConnectError.

        early: do not wait for the greeting of a server that takes commands before it.
        """
        dialogue, options = self._dialogue, self.options
        known = await self._recall()
        if dialogue.may_pipeline and options.assume_xftpd:
            dialogue.assume_our_kind(dict(OUR_FEATURES, MPSV=f"Port={self.url.port - 1};"))
        elif dialogue.may_pipeline and known is not None and known.is_our_kind:
            dialogue.assume_our_kind(known.features, known.connection_limit)
        early = early and dialogue.pace is Pace.ALL
        expected_rtt_s = self._expected_rtt_s(dialogue, known) if early else None
        try:
            await self._connect(dialogue, early=early, expected_rtt_s=expected_rtt_s)
        except PipeliningError as error:
            await self._fall_back(error)

    async def _connect(
        self, dialogue: Dialogue, *, early: bool, expected_rtt_s: float | None
    ) -> None:
        """Connect, and take the greeting unless `early`. Raises ConnectError, PipeliningError."""
        control = dialogue.control
        try:
            await control.connect(
                self.url.host,
                self.url.port,
                security=self._security,
                early=early,
                expected_rtt_s=expected_rtt_s,
            )
            if not early:
                await control.greet()
            # One from before TLS may be forged: all that it can bring about is a needless flight.
            is_ours = dialogue.may_pipeline and control.greeting.startswith(WELCOME)
            if is_ours and dialogue.pace is not Pace.ALL:
                dialogue.assume_our_kind()
            if is_ours:
                dialogue.standing_port = port_of_greeting(control.greeting)
        except BaseException:
            await control.wait_closed()
            raise

    def _expected_rtt_s(self, dialogue: Dialogue, known: KnownServer | None) -> float | None:
        """Give the RTT of a path so long, and so well known, that data connections may be dialled
        while the control connection is (see `several`)."""
        if dialogue.standing_port is None or not dialogue.passive:
            return None
        paths = [path.rtt_s for path in dialogue.paths.values()]
        rtt_s = min(paths) if paths else (known.rtt_s if known is not None else None)
        return rtt_s if rtt_s is not None and rtt_s >= LONG_RTT_S else None

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
        known = await asyncio.to_thread(memory.server, self._known_as, self.url.port)
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

    async def _renew(self) -> None:
        """Make the session again if data connections could soon not resume its TLS any more.

        Servers demand that they do, and take tickets for an hour or two only.
        """
        dialogue = self._dialogue
        tls = dialogue.control.tls
        if tls is None or not tls.is_worn or self.is_closed or self._login is None:
            return
        async with dialogue.lock:
            if self._dialogue is dialogue:
                dialogue.trace("the TLS session is old: a new one")
                await self._reconnect()

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
        rtt_s = dialogue.control.rtt_s
        known = KnownServer(
            is_our_kind=ours and dialogue.may_pipeline,
            pipelines=dialogue.may_pipeline,
            features=dialogue.features if ours else None,
            connection_limit=dialogue.server_limit if ours else None,
            rtt_s=rtt_s if ours and rtt_s is not None and rtt_s >= LONG_RTT_S else None,
        )
        await asyncio.to_thread(memory.note_server, self._known_as, self.url.port, known)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Dialogue]:
        """Have the dialogue for oneself, with the login done."""
        await self._renew()
        if not self._dialogue.is_settled:
            await self._work_through(Dialogue.settle)
        async with self._dialogue.lock:
            yield self._dialogue

    async def _work_through(
        self, work: Callable[[Dialogue], Awaitable[_Result]], *, connects_again: bool = True
    ) -> _Result:
        """Do `work`, once more if the server turns out not to take commands together.

        connects_again: where the connection could not be made, try that as often as the options
        say; nothing has been sent then.
        """
        await self._renew()
        was_settled = self._dialogue.is_settled
        try:
            async with self._dialogue.lock:
                result = await work(self._dialogue)
        except PipeliningError as error:
            await self._fall_back(error)
            async with self._dialogue.lock:
                return await work(self._dialogue)
        except ConnectError as error:
            if self._dialogue.control.is_made:
                raise
            self.connect_error = error
            if not connects_again:
                raise
            await self._connect_again(error)
            async with self._dialogue.lock:
                return await work(self._dialogue)
        except LoginError as error:
            self.is_logged_in, self.login_error = False, error
            await self.wait_closed()
            raise
        if not was_settled and self._dialogue.is_settled:
            await self._remember_server()
        return result

    async def _connect_again(self, error: ConnectError) -> None:
        """Connect after a first try, which failed with `error`, as far as the options allow."""

        async def attempt(is_retry: bool) -> None:
            if not is_retry:
                raise error
            await self._reconnect()

        await persist(attempt, self.options)
        self.connect_error = None

    async def _persist(self, work: Callable[[Dialogue], Awaitable[_Result]]) -> _Result:
        """Do `work`, and again on a new connection, as far as the options allow."""

        async def attempt(is_retry: bool) -> _Result:
            if is_retry and self.is_closed:
                await self._reconnect()
                self.connect_error = None
            return await self._work_through(work, connects_again=False)

        return await persist(attempt, self.options)
