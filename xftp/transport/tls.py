"""Data connections protected by TLS (RFC 4217, 8446), with the interface of plain ones.

TLS runs between two memory buffers, and the socket stays ours: only so can it be told how much of
what was encrypted the kernel has taken and the peer has acknowledged, and how the stream ended.
Everything that is counted is counted in bytes of the data, not of what protects it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from .connection import DataConnection
from .sockets import Tuning, unacknowledged_bytes

TLS_RECORD_BYTES = 16384
"""What one record of TLS carries at most (RFC 8446 section 5.1, RFC 5246 section 6.2.1)."""

SMALLEST_PIECE_BYTES = 8196
LARGEST_PIECE_BYTES = 256 * 1024
"""What is encrypted before the socket is tried: it belongs to this connection from then on, so on
a slow one it is no more than one record of appendix B."""

_FETCH_BYTES = 256 * 1024
"""What is received before it is decrypted: more would leave the processor's cache."""

_NO_CLOSE_NOTIFY = "the connection was cut: it ended without the close_notify of TLS"


class DataTls(NamedTuple):
    """How the data connections of a transfer are protected."""

    context: ssl.SSLContext
    """The one of the control connection: only then can its session be resumed."""

    server_side: bool
    """Whether this end is the FTP server: it is the TLS server too, whichever end dials (RFC 4217
    section 7)."""

    server_hostname: str | None = None
    """The name that the server's certificate is to have; None: not looked at."""

    session: Callable[[], ssl.SSLSession | None] = lambda: None
    """Gives what a data connection resumes (client's side), when it begins: a ticket may come
    after the listener of an active transfer."""

    requires_resumed: bool = True
    """Whether a server closes a connection that does not resume a session of `context`."""

    requires_close_notify: bool = True
    """Whether the end of the stream without close_notify is an error and not an end."""


@dataclass(slots=True)
class Piece:
    """Bytes that were encrypted together; both counts are from the beginning of the connection."""

    sealed_end: int
    data_end: int
    sealed: int
    data: int

    def data_before(self, sealed_count: int) -> int:
        """Count the data that is wholly within the first `sealed_count` encrypted bytes."""
        records = -(-self.data // TLS_RECORD_BYTES)
        overhead = -(-(self.sealed - self.data) // records)
        part = max(0, sealed_count - (self.sealed_end - self.sealed))
        whole = part // (TLS_RECORD_BYTES + overhead)
        return self.data_end - self.data + min(whole * TLS_RECORD_BYTES, self.data)


class TlsFault(OSError):
    """TLS is what broke the connection, and `strerror` tells how."""


class _Fetched(threading.local):
    """One buffer for all connections of an event loop: it is empty between two calls."""

    def __init__(self) -> None:
        self.room = memoryview(bytearray(_FETCH_BYTES))


_fetched = _Fetched()


class TlsConnection(DataConnection):
    """A data connection within TLS. `handshake` comes before everything else (`agreed`).

    What was encrypted and not yet taken by the socket waits in here: `flush` passes it on, and
    every other method that sends does so first.
    """

    def __init__(
        self, sock: socket.socket, number: int, tls: DataTls, tuning: Tuning | None = None
    ) -> None:
        super().__init__(sock, number, tuning)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = tls.context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=tls.server_side,
            server_hostname=tls.server_hostname,
            session=tls.session(),
        )
        self._tls = tls
        self._unsent = memoryview(b"")
        self._sealed_bytes = 0
        self._pieces: deque[Piece] = deque()
        self._acknowledged = 0
        self._piece_bytes = SMALLEST_PIECE_BYTES
        self._may_hold = True
        self._received_early = b""
        self._broken_by: OSError | None = None
        self._unsaid = 0
        self._said_end = False

    @property
    def holds_received(self) -> bool:
        return self._may_hold

    @property
    def takes_files(self) -> bool:
        return False

    @property
    def session(self) -> ssl.SSLSession | None:
        """The session, with the newest ticket that came, for another connection to resume."""
        return self._ssl.session

    @classmethod
    async def agreed(
        cls, sock: socket.socket, number: int, tls: DataTls, tuning: Tuning | None
    ) -> Self:
        """Make one of a connected, non-blocking socket, which stays the caller's if that fails.

        The caller limits the time. Raises OSError.
        """
        connection = cls(sock, number, tls, tuning)
        await connection.handshake()
        return connection

    async def handshake(self) -> None:
        """Agree on the keys. Raises OSError."""
        loop = asyncio.get_running_loop()
        while not self._shake_hands():
            await self._flush_all(loop)
            data = await loop.sock_recv(self._sock, TLS_RECORD_BYTES)
            if not data:
                raise TlsFault(errno.ECONNRESET, "the connection ended in the TLS handshake")
            self._incoming.write(data)
        await self._flush_all(loop)
        if self._tls.server_side and self._tls.requires_resumed and not self._ssl.session_reused:
            raise TlsFault(
                errno.EACCES, "it did not resume the TLS session of the control connection"
            )
        self._observe()
        self.observed |= {
            "tls": self._ssl.version(),
            "tls_cipher": _cipher_name(self._ssl),
            "tls_resumed": self._ssl.session_reused,
        }

    # -- sending -------------------------------------------------------------------------------

    def send(self, data: memoryview) -> int:
        """Take what is to be sent now, 0 if nothing is. Raises OSError if the connection is broken.

        Of what it took, up to LARGEST_PIECE_BYTES may wait for `flush`.
        """
        taken = 0
        while taken < len(data) and self.flush():
            piece = data[taken : taken + self._piece_bytes]
            self._seal(piece)
            taken += len(piece)
            self.bytes_sent += len(piece)
            self.flush()
            self._adapt_piece(len(self._unsent))
        return taken

    def flush(self) -> bool:
        self._gather()
        if not self._unsent:
            return True
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return False
        self._unsent = self._unsent[sent:]
        return not self._unsent

    def say(self, data: bytes) -> int:
        """Send something beside the data: until it has gone, it is to be said again."""
        if not self.flush():
            return 0
        if not self._unsaid:
            self._unsaid = self._write(data)
            if not self.flush():
                return 0
        said, self._unsaid = self._unsaid, 0
        return said

    def finish_sending(self) -> bool:
        self._end_stream()
        return self.flush() and super().finish_sending()

    def acknowledged(self) -> int:
        """Count the bytes of data of which the peer's kernel has acknowledged whole records."""
        arrived = self._sealed_bytes - self._outstanding()
        while self._pieces and self._pieces[0].sealed_end <= arrived:
            self._acknowledged = self._pieces.popleft().data_end
        if not self._pieces:
            return self._acknowledged
        return max(self._acknowledged, self._pieces[0].data_before(arrived))

    def unacknowledged(self) -> int:
        """Count the bytes of data that the peer's kernel has not acknowledged.

        At least 1 while anything is under way, be it only what ends the stream.
        """
        if not self._outstanding():
            return 0
        return max(1, self.bytes_sent - self.acknowledged())

    def _outstanding(self) -> int:
        """Count the encrypted bytes that wait here or are not acknowledged."""
        return len(self._unsent) + self._outgoing.pending + unacknowledged_bytes(self._sock)

    def _seal(self, data: memoryview) -> None:
        before = self._sealed_bytes
        self._write(data)
        self._gather()
        sealed = self._sealed_bytes - before
        data_end = self.bytes_sent + len(data)
        self._pieces.append(Piece(self._sealed_bytes, data_end, sealed, len(data)))

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return self._ssl.write(data)  # the buffer behind it takes everything
        except ssl.SSLError as error:
            raise tls_error(error) from error

    def _gather(self) -> None:
        """Take over what is encrypted and not sent: alerts and answers to the peer as well."""
        if not self._outgoing.pending:
            return
        sealed = self._outgoing.read()
        self._sealed_bytes += len(sealed)
        self._unsent = memoryview(bytes(self._unsent) + sealed if self._unsent else sealed)

    def _adapt_piece(self, unsent: int) -> None:
        """Encrypt more at once when the socket took all, and less when it left `unsent` bytes."""
        if unsent:
            self._piece_bytes = max(self._piece_bytes - unsent, SMALLEST_PIECE_BYTES)
        else:
            self._piece_bytes = min(2 * self._piece_bytes, LARGEST_PIECE_BYTES)

    # -- receiving -----------------------------------------------------------------------------

    def receive_into(self, room: memoryview) -> int | None:
        received = self._decrypt_into(room)
        if received is not None:
            self.at_end = received == 0
            self.bytes_received += received
        return received

    def receive(self, limit: int = 4096) -> bytes | None:
        said = bytearray(limit)
        received = self._decrypt_into(memoryview(said))
        return None if received is None else bytes(said[:received])

    def _decrypt_into(self, room: memoryview) -> int | None:
        """Fill `room` as far as it goes: 0 at the end of the stream, None if nothing is there."""
        filled = self._take_early(room)
        try:
            while filled < len(room):
                received = self._decrypt(room[filled:])
                if received == 0:
                    break
                if received is not None:
                    filled += received
                elif not self._fetch():
                    self._may_hold = False
                    return filled or None
        except OSError as error:
            if not filled:
                raise
            self._broken_by = error
        self._may_hold = True
        return filled

    def _take_early(self, room: memoryview) -> int:
        """Give what was decrypted ahead of the end of our own stream, and then a late error."""
        early = self._received_early[: len(room)]
        room[: len(early)] = early
        self._received_early = self._received_early[len(early) :]
        if self._broken_by is not None and not early:
            raise self._broken_by
        return len(early)

    def _decrypt(self, room: memoryview) -> int | None:
        """Decrypt one record of what was fetched: None if there is no whole one."""
        try:
            received: Any = self._ssl.read(len(room), room)  # with a buffer it gives the count
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return 0
        except ssl.SSLEOFError as error:
            if not self._tls.requires_close_notify:
                return 0
            raise TlsFault(errno.ECONNRESET, _NO_CLOSE_NOTIFY) from error
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):
                self.flush()  # the alert
            raise tls_error(error) from error
        return int(received)

    def _fetch(self) -> bool:
        """Receive from the socket what is to be decrypted; False if nothing is there."""
        room = _fetched.room
        with contextlib.suppress(OSError):
            self.flush()  # answers to the peer; a broken connection is found out by receiving
        try:
            received = self._sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return False
        if received:
            self._incoming.write(room[:received])
        else:
            self._incoming.write_eof()
        return True

    # -- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """End the stream, if it did not end yet, as far as that goes at once; then close."""
        if self.is_open:
            with contextlib.suppress(OSError):
                self._end_stream()
                self.flush()
                self._fetch()  # what nobody reads any more would turn the end into a reset
        super().close()

    def _end_stream(self) -> None:
        """Say close_notify, once. Receiving goes on."""
        if self._said_end:
            return
        self._said_end = True
        early, room = bytearray(self._received_early), bytearray(TLS_RECORD_BYTES)
        with contextlib.suppress(OSError):  # it comes up again when it is to be received
            while received := self._decrypt(memoryview(room)):
                early += room[:received]
        self._received_early, self._may_hold = bytes(early), True
        # It waits for the peer's as well, and would take data for an offence against TLS: so the
        # data was taken out before.
        with contextlib.suppress(ssl.SSLError):
            self._ssl.unwrap()

    # -- the handshake -------------------------------------------------------------------------

    async def _flush_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._gather()
        unsent, self._unsent = self._unsent, memoryview(b"")
        await loop.sock_sendall(self._sock, unsent)

    def _shake_hands(self) -> bool:
        """Go on with the handshake; False if more of the peer is needed."""
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):
                self.flush()  # the alert tells the peer why
            raise tls_error(error) from error
        return True


def tls_error(error: ssl.SSLError) -> TlsFault:
    """Give what broke TLS as an error of the connection, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFault(errno.EPROTO, f"the certificate cannot be trusted: {error.verify_message}")
    reason = (error.reason or str(error)).replace("_", " ").lower()
    return TlsFault(errno.EPROTO, f"TLS failed: {reason}")


def _cipher_name(tls: ssl.SSLObject) -> str | None:
    cipher = tls.cipher()
    return cipher[0] if cipher else None
