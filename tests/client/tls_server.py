"""A scripted server with TLS, and the certificates of tests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import trustme

from xftp.client.options import Options
from xftp.client.session import Session, open_session
from xftp.client.tls import TlsOptions
from xftp.client.url import Scheme

from .scripted import HOST, Conversation, Handler, ScriptedServer, scripted

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
IN_2002 = datetime(2002, 1, 1, tzinfo=UTC)


@cache
def authority() -> trustme.CA:
    """Give the authority that the tests trust."""
    return trustme.CA()


def server_context(
    *names: str, issuer: trustme.CA | None = None, is_old: bool = False
) -> ssl.SSLContext:
    """Make a context for a server with a certificate for `names`.

    issuer: None: the one that is trusted; is_old: the certificate has expired.
    """
    certificate = (issuer or authority()).issue_cert(
        *(names or (HOST,)),
        not_before=LONG_AGO if is_old else None,
        not_after=IN_2002 if is_old else None,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


def self_signed_context() -> ssl.SSLContext:
    """Make a context for a server whose certificate nobody else has signed."""
    itself = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with itself.cert_pem.tempfile() as certificate, itself.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    return context


def trusted(folder: Path) -> Path:
    """Write the certificate of the trusted authority to a file; give its path."""
    path = folder / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    return path


@dataclass
class TlsServer(ScriptedServer):
    """A scripted server that knows AUTH TLS, PBSZ and PROT."""

    context: ssl.SSLContext = field(default_factory=server_context)
    is_implicit: bool = False
    before_tls: list[str] = field(default_factory=list)
    """Every line that came in the clear."""
    resumed: list[bool] = field(default_factory=list)
    """Whether each data connection within TLS resumed a session, in the order they came."""

    def __post_init__(self) -> None:
        self.script = {
            "AUTH": auth,
            "PBSZ": "200 fine",
            "PROT": prot,
            "EPSV": epsv,
            "EPRT": eprt,
            **self.script,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client, which may break the handshake off."""
        if self.is_implicit:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await writer.start_tls(self.context)
            except (OSError, asyncio.CancelledError):
                writer.transport.abort()
                return
        await super().serve(reader, writer)

    async def close(self) -> None:
        """Close everything at once: TLS would wait half a minute for the other's goodbye."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()  # those whose handshake failed never tell that they are closed
        await super().close()


def protects(talk: Conversation) -> TlsServer:
    """Give the server of a conversation."""
    assert isinstance(talk.server, TlsServer)
    return talk.server


async def auth(talk: Conversation, argument: str) -> None:
    """Upgrade to TLS."""
    await upgrade(talk, "234 go on")


async def upgrade(talk: Conversation, reply: str) -> None:
    """Say `reply` and upgrade to TLS; the client may break the handshake off."""
    server = protects(talk)
    server.before_tls += server.heard
    server.heard.clear()
    talk.say(reply)
    try:
        await talk.writer.start_tls(server.context)
    except OSError as error:
        raise ConnectionResetError("no handshake") from error


async def prot(talk: Conversation, argument: str) -> None:
    """Note whether data connections are protected."""
    talk.values["protected"] = argument == "P"
    talk.say("200 fine")


async def epsv(talk: Conversation, _: str) -> None:
    """Listen, within TLS if that was agreed on."""
    server = protects(talk)
    queue = talk.data = asyncio.Queue()

    async def accepted(*streams: Any) -> None:
        server.writers.append(streams[1])
        note_resumption(server, streams[1])
        await queue.put(streams)

    context = server.context if talk.values.get("protected", server.is_implicit) else None
    listener = await asyncio.start_server(accepted, HOST, 0, ssl=context)
    server.listeners.append(listener)
    talk.say(f"229 here (|||{listener.sockets[0].getsockname()[1]}|)")


async def eprt(talk: Conversation, argument: str) -> None:
    """Dial the client at once, and be the TLS server all the same (RFC 4217 section 7)."""
    server = protects(talk)
    port = int(argument.split("|")[3])
    talk.say("200 fine")
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    await loop.sock_connect(sock, (HOST, port))
    protocol = asyncio.StreamReaderProtocol(reader := asyncio.StreamReader())
    context = server.context if talk.values["protected"] else None
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=context)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    server.writers.append(writer)
    note_resumption(server, writer)
    await talk.data.put((reader, writer))


def note_resumption(server: TlsServer, writer: asyncio.StreamWriter) -> None:
    """Note whether a data connection resumes a session."""
    ssl_object = writer.get_extra_info("ssl_object")
    if ssl_object is not None:
        server.resumed.append(ssl_object.session_reused)


def tls_server(
    script: dict[str, Handler] | None = None, **settings: Any
) -> contextlib.AbstractAsyncContextManager[TlsServer]:
    """Run a scripted server with TLS."""
    return scripted(script, TlsServer, **settings)


@contextlib.asynccontextmanager
async def secure_session(
    server: ScriptedServer,
    trusted_in: Path | None,
    *,
    scheme: Scheme = "ftpes",
    tls: dict[str, Any] | None = None,
    login: dict[str, str] | None = None,
    defer: bool = False,
    **options: Any,
) -> AsyncIterator[Session]:
    """Log in at a scripted server; trusted_in: where the certificate that is trusted is put."""
    options.setdefault("connections", 1)
    ca_file = trusted(trusted_in) if trusted_in is not None else None
    chosen = Options(tls=TlsOptions(**{"ca_file": ca_file, **(tls or {})}), **options)
    url = f"{scheme}://{HOST}:{server.port}/"
    session = await open_session(url, options=chosen, defer=defer, **(login or {}))
    try:
        yield session
    finally:
        await session.wait_closed()
