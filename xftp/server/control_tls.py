"""TLS on a control connection, between its socket's streams and the lines of FTP.

It reads what the stream received, and nothing else: what was received in the clear and is not a
handshake ends the connection, and is never taken for a command (CVE-2011-0411 and its like).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

from xftp.transport.tls import DataTls, tls_error

from .tls import TlsPolicy, limit_tickets

InThread = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs work in a thread, and waits for it."""

_READ_BYTES = 4096


class ControlTls:
    """TLS of one control connection, after `handshake`."""

    def __init__(
        self, context: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._context = context
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def agreed(self) -> str:
        """The version and the cipher that were agreed on."""
        cipher = self._ssl.cipher()
        return f"{self._ssl.version()} {cipher[0]}" if cipher else "no cipher"

    async def handshake(self, in_thread: InThread) -> None:
        """Agree on the keys; the caller limits the time. Raises OSError.

        in_thread: for what takes milliseconds of computing, a signature among it.
        """
        while True:
            try:
                await in_thread(self._ssl.do_handshake)
                break
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self._answer()  # the alert
                raise tls_error(error) from error
            self._answer()
            await self._writer.drain()
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the connection ended in the TLS handshake")
            self._incoming.write(data)
        self._answer()
        limit_tickets(self._context)

    async def read(self, limit: int) -> bytes:
        """Give what came, b"" at the end. Raises OSError."""
        while True:
            try:
                return self._ssl.read(limit)
            except ssl.SSLWantReadError:
                pass
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""  # what was cut off is no whole line, and not executed
            except ssl.SSLError as error:
                self._answer()
                raise tls_error(error) from error
            self._answer()
            data = await self._reader.read(_READ_BYTES)
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def write(self, data: bytes) -> None:
        """Send. Raises OSError."""
        try:
            self._ssl.write(data)
        except ssl.SSLError as error:
            raise tls_error(error) from error
        self._answer()

    def end(self) -> None:
        """Say close_notify; the peer's is not waited for."""
        with contextlib.suppress(ssl.SSLError):
            self._ssl.unwrap()
        self._answer()

    def for_data(self, policy: TlsPolicy) -> DataTls:
        """Give how the data connections of this session are protected."""
        return DataTls(
            self._context,
            server_side=True,
            requires_resumed=policy.requires_resumed,
            requires_close_notify=policy.requires_close_notify,
        )

    def _answer(self) -> None:
        """Send what is encrypted, and what TLS itself has to say."""
        if self._outgoing.pending and not self._writer.is_closing():
            self._writer.write(self._outgoing.read())
