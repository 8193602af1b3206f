"""What the shell remembers between two commands."""

from __future__ import annotations

import contextlib

from xftp.client.session import Session, open_session
from xftp.client.url import FtpUrl
from xftp.errors import ConnectError, XftpError
from xftp.protocol.listings import Entry

from .screen import Screen
from .sessions import options_of
from .settings import Settings
from .terminal import say
from .tls_options import check_tls


class ShellState:
    """One person's shell: a session or none, and what the person toggled."""

    def __init__(self, settings: Settings, *, interactive: bool) -> None:
        self.settings = settings
        """Replaced when a word of the shell changes one."""
        self.interactive = interactive
        self.screen = Screen(verbose=settings.verbose, quiet=settings.quiet, in_dialogue=True)
        self.session: Session | None = None
        self.is_over = False
        self.confirms = interactive
        """Whether mget and mput ask before every file."""
        self.type = "I"
        """The type of transfers, I or A, that new sessions are told too."""
        self._listings: dict[str, list[Entry]] = {}

    def need_session(self) -> Session:
        """Give the session. Raises ConnectError if there is none, or it was lost."""
        self.notice_lost_session()
        if self.session is None:
            raise ConnectError("not connected; say: open HOST")
        return self.session

    async def connect(self, url: FtpUrl) -> Session:
        """Connect, without login, in place of the present session. Raises ConnectError."""
        check_tls(url, self.settings)
        await self.disconnect()
        options = options_of(self.settings, self.screen)
        self.session = await open_session(url, options=options, login=False)
        return self.session

    async def disconnect(self) -> None:
        """Say goodbye to the server, if there is one."""
        session, self.session = self.session, None
        if session is None or session.is_closed:
            return
        with contextlib.suppress(XftpError):
            await session.quit()

    async def leave(self) -> None:
        """End the shell; the server gets its QUIT if it is still there."""
        await self.disconnect()

    def notice_lost_session(self) -> None:
        """Forget a session that was closed, and say so once."""
        if self.session is not None and self.session.is_closed:
            self.session = None
            say("xftp: the connection is closed")

    # -- listings, for completion ----------------------------------------------------------------

    def forget_listings(self) -> None:
        """Forget what the server's directories held: a command may have changed it."""
        self._listings.clear()

    async def listing(self, directory: str) -> list[Entry]:
        """Give the entries of a directory of the server, remembered until the next command."""
        if self.session is None or self.session.is_closed or not self.session.is_logged_in:
            return []
        if directory not in self._listings:
            self._listings[directory] = await self.session.list(directory)
        return self._listings[directory]
