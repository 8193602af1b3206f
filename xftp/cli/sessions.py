"""Sessions for commands: who logs in, and one control connection for URLs of one server."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import platformdirs

from xftp.client.memory import MemoryFile
from xftp.client.options import Options, TuningMaker
from xftp.client.session import Session, open_session
from xftp.client.url import FtpUrl
from xftp.errors import XftpError
from xftp.protocol.options import MULT_LIMIT

from .automatic import AutoConnections
from .credentials import find_login
from .screen import Screen
from .settings import Settings
from .supposed import SupposedTuning, may_suppose
from .terminal import can_ask
from .tls_options import check_tls, tls_of
from .tuning import ClientTuning, Wish


def options_of(settings: Settings, screen: Screen) -> Options:
    """Translate what a person chose into what a session is told.

    Raises TuningRefused for sockets that cannot be set as asked, if that is strict.
    """
    wish = _wish(settings)
    made = _tuning(wish, settings, screen)
    return Options(
        tuning=made,
        supposing=None if settings.no_memory else _supposing(wish, made),
        strict_tuning=settings.strict_tuning,
        connections=settings.connections or MULT_LIMIT,
        # Who asks for more in so many words may have them, within the server's limit.
        connection_limit=max(MULT_LIMIT, settings.connections or 0),
        auto=AutoConnections(wish) if settings.connections is None else None,
        splits=settings.connections is not None,
        tls=tls_of(settings),
        passive=settings.passive,
        listen_ports=settings.listen_ports,
        assume_xftpd=settings.assume_xftpd,
        memory=None if settings.no_memory else _memory(screen),
        family=settings.family,
        limit_rate=settings.limit_rate,
        retries=settings.retries,
        verify=settings.verify,
        sync_downloads=settings.fsync,
        report_sender=settings.json or settings.verbose,
        trace=screen.trace,
        notice=screen.notice,
    )


def _memory(screen: Screen) -> MemoryFile:
    return MemoryFile(platformdirs.user_cache_path("xftp") / "paths.json", screen.trace)


def _wish(settings: Settings) -> Wish:
    return Wish(
        profile=settings.profile,
        rate_bps=settings.link_rate_bps,
        send_buffer_bytes=settings.send_buffer_bytes,
        receive_buffer_bytes=settings.receive_buffer_bytes,
        congestion=settings.congestion,
        initial_window_segments=settings.initial_window_segments,
    )


def _tuning(wish: Wish, settings: Settings, screen: Screen) -> ClientTuning:
    """Make the settings of the data sockets, and say what this machine does not grant."""
    remembers = not settings.no_memory and may_suppose(wish)
    made = ClientTuning(wish, screen.notice, strict=settings.strict_tuning, remembers=remembers)
    made.check()
    return made


def _supposing(wish: Wish, made: ClientTuning) -> Callable[[float], TuningMaker] | None:
    """Give what makes the settings for a rate that is supposed, if one may be."""
    if not may_suppose(wish):
        return None
    return lambda rate_bps: SupposedTuning(wish, made.make, rate_bps)


class Sessions:
    """Opens a session for a URL, and keeps it for the next URL of the same server and user."""

    def __init__(self, settings: Settings, screen: Screen, *, may_ask: bool = True) -> None:
        self._settings = settings
        self._options = options_of(settings, screen)
        self._may_ask = may_ask and can_ask()
        self._place: tuple[str, str, int, str | None, str | None] | None = None
        self._session: Session | None = None
        self._failure: XftpError | None = None

    async def __aenter__(self) -> Sessions:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        if kind is None:
            await session.quit()
        else:
            await session.wait_closed()

    async def get(self, url: FtpUrl) -> Session:
        """Give a session with the server of `url`, whose login may leave with the next command.

        Raises ConnectError and LoginError; for the same server again without a new try, as a
        password that is wrong does not become right.
        """
        place = (url.scheme, url.host, url.port, url.user, url.password)
        if place == self._place:
            if self._failure is not None:
                raise self._failure
            if self._session is not None and self._session.login_error is not None:
                raise self._session.login_error
            if self._session is not None and self._session.connect_error is not None:
                raise self._session.connect_error
            if self._session is not None and not self._session.is_closed:
                return self._session
        if self._session is not None:
            await self.__aexit__(None, None, None)
        self._place, self._failure = place, None
        try:
            self._session = await self._open(url)
        except XftpError as error:
            self._failure = error
            raise
        return self._session

    async def _open(self, url: FtpUrl) -> Session:
        check_tls(url, self._settings)
        login = find_login(
            url.host,
            user=url.user or self._settings.user,
            password=url.password,
            netrc_file=self._settings.netrc_file,
            may_ask=self._may_ask,
        )
        return await open_session(
            url, user=login.user, password=login.password, options=self._options, defer=True
        )
