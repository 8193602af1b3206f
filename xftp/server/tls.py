"""The server's certificate, and which of its connections have to be protected (RFC 4217).

Every control connection has a context of its own, and so tickets that only its own data connections
can resume: with one for all, a session of another client would be taken for its own.
"""

from __future__ import annotations

import os
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from xftp.errors import FileError, file_error

ALPN = ["ftp"]
"""What is spoken within (IANA's list of ALPN protocol IDs)."""

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM"
"""Of TLS 1.2: forward secrecy and authenticated encryption only (RFC 9325 section 4.2). Those of
TLS 1.3 all have them."""

_DATA_TICKETS = 1
"""Tickets of TLS 1.3 that a data connection gives its client: those of the control connection are
to be used once each by clients that heed RFC 8446 section C.4, and end after two hours."""


@dataclass(frozen=True, slots=True)
class TlsPolicy:
    """What the operator wants protected."""

    requires_control: bool = False
    """Whether nobody may log in without TLS."""

    requires_data: bool = False
    """Whether nothing is transferred without PROT P."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    """The oldest version of TLS that is spoken."""

    requires_resumed: bool = True
    """Whether a data connection has to resume the session of its control connection."""

    requires_close_notify: bool = True
    """Whether the end of an upload has to be told within TLS. Records, and uploads whose size was
    announced, do not depend on it."""


class ServerTls:
    """The certificate and the policy of a server.

    What is read of the files is kept, and contexts are made of that: after root was given up the
    key cannot be read any more.
    """

    def __init__(self, certificate: Path, key: Path | None, policy: TlsPolicy) -> None:
        """Read the files, as PEM; key: None if the certificate's file has it too.

        Raises FileError.
        """
        self.policy = policy
        self._certificate = certificate
        self._key = key
        self._in_use = threading.Lock()
        self._kept = self._read()

    def reload(self) -> None:
        """Read the files again; sessions that there are go on as they are.

        Raises FileError; then everything stays as it is.
        """
        fresh = self._read()
        with self._in_use:
            os.close(self._kept)
            self._kept = fresh

    def close(self) -> None:
        """Forget the key."""
        os.close(self._kept)

    def new_context(self) -> ssl.SSLContext:
        """Make the context of one control connection: 2 ms, 20 KiB; in a thread.

        Raises FileError.
        """
        with self._in_use:
            return self._context(self._kept)

    def _read(self) -> int:
        """Give a file in memory that holds both, and is fit to be used."""
        kept = os.memfd_create("xftpd-certificate", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(kept), "wb") as file:
                for path in filter(None, (self._key, self._certificate)):
                    file.write(_content(path) + b"\n")
            self._context(kept)
        except BaseException:
            os.close(kept)
            raise
        return kept

    def _context(self, kept: int) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self.policy.minimum_version
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.set_ciphers(CIPHERS)
        context.set_alpn_protocols(ALPN)
        try:
            context.load_cert_chain(f"/proc/self/fd/{kept}", password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            key = self._key or self._certificate
            raise FileError(
                f"{self._certificate}, {key}: no certificate with its private key, unencrypted,"
                f" as PEM: {_reason(error)}"
            ) from error
        return context


def limit_tickets(context: ssl.SSLContext) -> None:
    """Let what comes after the control connection, its data connections, give fewer tickets."""
    context.num_tickets = _DATA_TICKETS


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise file_error(error, str(path)) from error


def _no_password() -> str:
    """Refuse to ask on the terminal for what an encrypted key needs."""
    raise ValueError("the key is encrypted")


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
    return (reason or str(error)).replace("_", " ").lower()
