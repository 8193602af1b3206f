"""TLS on the control connection of the client, and what its data connections resume (RFC 4217).

The handshake is made on a socket that carried only AUTH TLS before, or nothing at all, so nothing
that was said in the clear can be taken for something said within TLS.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from socket import socket
from typing import Literal

from xftp.errors import ConnectError, FileError, file_error
from xftp.transport.channels import DataChannel
from xftp.transport.sockets import plain_address
from xftp.transport.tls import DataTls, TlsConnection

from .url import Scheme

Security = Literal["none", "explicit", "implicit"]
"""How a control connection is protected: not, from AUTH TLS on, or from the first byte on."""

ALPN = ["ftp"]
"""What is spoken within (IANA's list of ALPN protocol IDs): a server of another protocol that has a
certificate for the same name refuses it, so that nobody can lead us there (ALPACA)."""

CLOSE_S = 0.1
"""How long the server's close_notify is waited for at the end. Ours has left by then, and what the
server still says matters to nobody."""

_WORN = 0.9
"""Part of a session's lifetime, mostly two hours, after which a new one is made."""

_EXPIRED, _NOT_YET_VALID = 10, 9
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER_HERE, _NO_ISSUER = 18, 19, 20, 21
_WRONG_HOST, _WRONG_ADDRESS = 62, 64
_CERTIFICATE_FAULTS = {
    _EXPIRED: "has expired",
    _NOT_YET_VALID: "is not valid yet",
    _SELF_SIGNED: "is signed by itself, and not known here",
    _SELF_SIGNED_IN_CHAIN: "is signed by an authority that is not known here",
    _NO_ISSUER_HERE: "is signed by an authority that is not known here",
    _NO_ISSUER: "is signed by an authority that is not known here",
    _WRONG_HOST: "is for another host",
    _WRONG_ADDRESS: "is for another host",
}
"""What OpenSSL's X509_V_ERR_ codes mean for a person (openssl-verification-options(1))."""

_NO_TLS = "WRONG_VERSION_NUMBER"
"""How OpenSSL calls bytes that are no record of TLS."""


class TlsError(ConnectError):
    """The session cannot be protected as asked: the certificate is wrong, or there is no TLS.

    Trying again does not help.
    """


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What a user chooses of TLS, where a session is protected by it."""

    required: bool = False
    """Whether ftp:// URLs are protected as well, by explicit TLS."""

    ca_file: Path | None = None
    """Certificates, as PEM, of the authorities that are trusted; None: those of the system."""

    checks_certificate: bool = True
    """Whether the server has to prove who it is. False lets anybody in between read and change
    everything."""

    protects_data: bool = True
    """Whether data connections are protected too (PROT P); False: the control connection only."""


def security_of(scheme: Scheme, options: TlsOptions) -> Security:
    """Tell how a session with a URL of this scheme is protected."""
    if scheme == "ftps":
        return "implicit"
    return "explicit" if scheme == "ftpes" or options.required else "none"


class ControlTls:
    """TLS of one control connection with `host`."""

    def __init__(self, host: str, options: TlsOptions) -> None:
        self._host = host
        self._options = options
        self._context: ssl.SSLContext | None = None
        self._object: ssl.SSLObject | None = None
        self.channel: DataChannel | None = None
        """The data connections of the present transfer, which bring newer tickets."""

    async def load(self) -> None:
        """Load what is needed, ahead of the connection. Raises FileError."""
        self._context = await asyncio.to_thread(client_context, self._options)

    async def wrap(
        self, sock: socket, timeout_s: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Agree on the keys over a connected socket, which is closed if that fails; `load` first.

        Raises TlsError if TLS or the certificate is at fault, ConnectError.
        """
        if self._context is None:  # without one nothing would be protected
            raise ValueError("no context was loaded")
        try:
            reader, writer = await asyncio.open_connection(
                sock=sock,  # which is the event loop's from here on, whatever happens
                ssl=self._context,
                server_hostname=_certified_name(self._host),
                ssl_handshake_timeout=timeout_s,
                ssl_shutdown_timeout=CLOSE_S,
            )
        except OSError as error:
            raise handshake_error(error, self._host) from error
        self._object = writer.get_extra_info("ssl_object")
        return reader, writer

    @property
    def agreed(self) -> str:
        """The version and the cipher that were agreed on."""
        if self._object is None:
            return "no TLS"
        cipher = self._object.cipher()
        return f"{self._object.version()}, {cipher[0] if cipher else 'no cipher'}"

    def for_data(self) -> DataTls | None:
        """Give how data connections are protected; None: not."""
        if self._context is None or not self._options.protects_data:
            return None
        return DataTls(
            self._context,
            server_side=False,
            server_hostname=_certified_name(self._host),
            session=self._session,
            requires_resumed=False,  # whom to let in is for the server to decide
        )

    @property
    def is_worn(self) -> bool:
        """Whether the session is about to become too old for data connections to resume it."""
        session = self._own_session() if self._options.protects_data else None
        return session is not None and _is_worn(session)

    def _session(self) -> ssl.SSLSession | None:
        """Give the session for a data connection to resume: with a ticket, if one has come.

        That of the control connection, as some servers take no other; while it is too old, as a
        transfer may take longer than a ticket lasts, the newest that came with data.
        """
        own = self._own_session()
        if own is None or not _is_worn(own) or self.channel is None:
            return own
        connections = self.channel.connections
        found = [each.session for each in connections if isinstance(each, TlsConnection)]
        fit = [session for session in found if session is not None and session.has_ticket]
        return max([*fit, own], key=lambda session: session.time)  # to the second

    def _own_session(self) -> ssl.SSLSession | None:
        return self._object.session if self._object is not None else None


def _is_worn(session: ssl.SSLSession) -> bool:
    lifetime_s = session.ticket_lifetime_hint or session.timeout
    return time.time() > session.time + lifetime_s * _WORN


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Make a context, or give the one that was made for the same. Blocks. Raises FileError."""
    modified_ns = 0
    if options.ca_file is not None:
        try:
            modified_ns = options.ca_file.stat().st_mtime_ns
        except OSError as error:
            raise file_error(error, str(options.ca_file)) from error
    return _context(options.ca_file, modified_ns, options.checks_certificate)


@lru_cache(maxsize=8)
def _context(ca_file: Path | None, _: int, checks_certificate: bool) -> ssl.SSLContext:
    """Load the authorities, which takes tens of milliseconds, once for all sessions."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise FileError(f"{ca_file}: holds no certificates that can be read") from error
    except OSError as error:
        raise file_error(error, str(ca_file)) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(ALPN)
    if not checks_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def handshake_error(error: OSError, host: str) -> ConnectError:
    """Translate what a handshake raised into one sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        fault = _CERTIFICATE_FAULTS.get(error.verify_code)
        said = fault or f"cannot be trusted: {error.verify_message}"
        return TlsError(f"{host}: the server's certificate {said}")
    if isinstance(error, ssl.SSLError) and error.reason == _NO_TLS:
        return TlsError(f"{host}: what the server sent is no TLS")
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return TlsError(f"{host}: TLS could not be agreed on: {reason}")
    if isinstance(error, ConnectionAbortedError | TimeoutError):
        return ConnectError(f"{host}: the TLS handshake took too long")
    return ConnectError(f"{host}: the connection was lost in the TLS handshake")


def _certified_name(host: str) -> str:
    """Give the name that the certificate is to have: without a zone, or the dot of the root."""
    return plain_address(host).rstrip(".")
