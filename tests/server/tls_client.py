"""A client without manners that speaks TLS, beside the one that does not."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support import RawClient
from tests.tls import HOST, client_context, write_certificate
from xftp.protocol.addresses import Endpoint
from xftp.server.tls import ServerTls, TlsPolicy
from xftp.transport.active import ActiveChannel
from xftp.transport.channels import DataChannel
from xftp.transport.plain import PlainReceiver, StreamSender
from xftp.transport.tls import DataTls

from .support import extended_port


def server_tls(directory: Path, **policy: Any) -> ServerTls:
    """Give a server a certificate; it is closed with the process."""
    return ServerTls(*write_certificate(directory), TlsPolicy(**policy))


class SecureClient(RawClient):
    """A control connection within TLS."""

    context: ssl.SSLContext

    @classmethod
    async def explicit(cls, port: int, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Any:
        """Connect and use AUTH TLS."""
        client = await cls.connect(HOST, port)
        assert (await client.command("AUTH TLS")).code == 234
        await client.begin_tls(newest)
        return client

    async def begin_tls(self, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        self.context = client_context(newest)
        await self.writer.start_tls(self.context, server_hostname=HOST)

    @classmethod
    async def implicit(cls, port: int) -> Any:
        """Begin with TLS."""
        context = client_context()
        streams = await asyncio.open_connection(HOST, port, ssl=context, server_hostname=HOST)
        client = cls(*streams)
        client.context = context
        assert (await client.reply()).code == 220
        return client

    async def protect_data(self) -> None:
        for command in ("PBSZ 0", "PROT P"):
            assert (await self.command(command)).code == 200

    @property
    def data_tls(self) -> DataTls:
        """What its data connections are protected by: they resume the session."""
        seen = self.writer.get_extra_info("ssl_object")
        return DataTls(
            self.context,
            server_side=False,
            server_hostname=HOST,
            session=lambda: seen.session,
        )

    async def dial(self, tls: DataTls | None = None) -> ActiveChannel:
        """Make the data connection that EPSV offers."""
        port = extended_port((await self.command("EPSV")).text)
        return ActiveChannel([Endpoint(HOST, port)], tls=tls or self.data_tls)

    async def receive(self, command: str, channel: DataChannel | None = None) -> bytes:
        """Give what a command sends over a data connection, and see it end with 226."""
        received = bytearray()
        channel = channel or await self.dial()
        self.send(command)
        await PlainReceiver(channel, lambda piece, _: received.extend(piece)).run()
        assert (await self.reply()).code == 150
        assert (await self.reply()).code == 226
        return bytes(received)

    async def store(self, command: str, data: bytes) -> None:
        pieces = [data, b""]
        channel = await self.dial()
        self.send(command)
        await StreamSender(channel, lambda: pieces.pop(0)).run()
        assert (await self.reply()).code == 150
        assert (await self.reply()).code == 226


@contextlib.asynccontextmanager
async def secure_session(
    port: int, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> AsyncIterator[SecureClient]:
    """Log in within TLS, with protected data connections and TYPE I."""
    client = await SecureClient.explicit(port, newest)
    try:
        await client.log_in()
        await client.protect_data()
        assert (await client.command("TYPE I")).code == 200
        yield client
    finally:
        await client.close()
