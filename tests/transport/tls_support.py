"""Both ends of TLS, for the tests of the data path."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.tls import certificate, client_context
from xftp.transport.active import ActiveChannel
from xftp.transport.files import SourceFile
from xftp.transport.passive import PassiveChannel
from xftp.transport.tls import DataTls
from xftp.transport.transfer import Transfer

from .support import HOST, content

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
EITHER_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=["tls1.2", "tls1.3"])
DATA = content(3_000_003)


async def both(sender: Transfer, receiver: Transfer) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(sender.run())
        group.create_task(receiver.run())


def source_of(path: Path, data: bytes) -> SourceFile:
    path.write_bytes(data)
    return SourceFile.open(str(path))


def server_context(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """Make what the control session of a server has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    certificate().configure_cert(context)
    return context


def session_between(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLSession:
    """Make a control connection in memory; give the session that its client may resume."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    served = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server, server_hostname=HOST)
    waiting = [asking, served]
    while waiting:
        end = waiting.pop(0)
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(end)
    served.write(b"220 ")
    asking.read()  # the tickets of TLS 1.3 come with it
    assert asking.session is not None
    return asking.session


def both_sides(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> tuple[DataTls, DataTls]:
    """Give the server's and the client's side of TLS of one control session."""
    ours, theirs = server_context(version), client_context()
    session = session_between(ours, theirs)
    return (
        DataTls(ours, server_side=True),
        DataTls(theirs, server_side=False, server_hostname=HOST, session=lambda: session),
    )


def without_session(tls: DataTls) -> DataTls:
    """Give the client's side of somebody who has no session to resume."""
    return tls._replace(session=lambda: None)


def linked_by_tls(
    count: int, server: DataTls, client: DataTls, *, server_dials: bool = False
) -> tuple[PassiveChannel, ActiveChannel]:
    """Make both ends of `count` protected data connections."""
    listens, dials = (client, server) if server_dials else (server, client)
    passive = PassiveChannel.listen(HOST, HOST, expected=count, limit=count, tls=listens)
    return passive, ActiveChannel([passive.endpoint] * count, tls=dials)
