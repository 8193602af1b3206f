"""Data connections that are on their way, whichever commands they were agreed upon with.

An address other than the server's own is never dialled (RFC 2577 section 3 warns of servers that
send a client elsewhere): only the port of a reply is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xftp.protocol.addresses import Endpoint
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.active import ActiveChannel
from xftp.transport.channels import DataChannel
from xftp.transport.passive import PassiveChannel
from xftp.transport.sockets import plain_address
from xftp.transport.tls import DataTls

from .control import Answer
from .dialogue import Dialogue
from .moving import abandon
from .tuned import Tuned

_AnyChannel = TypeVar("_AnyChannel", bound=DataChannel)


@dataclass(slots=True)
class Opened:
    """Data connections for one transfer, on their way. To be released by whoever asked for it."""

    dialogue: Dialogue
    """The control connection that they were agreed upon with."""

    channel: DataChannel
    """Where they come from."""

    framed: bool
    """Whether the file goes in records (several connections), or as a plain stream."""

    replies: Sequence[Reply]
    """The replies to the commands that went ahead."""

    feeds: int | None = None
    """How many of them this side, if it sends, gives records to at first; None: all."""

    transfer: Answer | None = None
    """The answer to the transfer command, if that left in the same flight and nobody saw to it."""

    def take_transfer(self) -> Answer | None:
        """Give `transfer` to who sees it through."""
        transfer, self.transfer = self.transfer, None
        return transfer

    async def release(self) -> None:
        """Close what no transfer took over, and stop the transfer that was asked for early."""
        transfer = self.take_transfer()
        if transfer is None:
            self.channel.close()
            return
        for connection in self.channel.connections:
            connection.reset()
        self.channel.close()
        await abandon(self.dialogue, transfer)


def check_options(tuned: Tuned, options: Command | None, replies: list[Reply]) -> list[Reply]:
    """Look at what the server granted, if it was asked; give the other replies."""
    if options is None:
        return replies
    *others, granted = replies
    tuned.check(granted)
    return others


def dial_data(
    dialogue: Dialogue, tuned: Tuned, endpoints: Sequence[Endpoint], call: bytes = b""
) -> ActiveChannel:
    """Dial the ports of `endpoints` at the server's own address, whatever the reply says.

    call: what each connection begins with.
    """
    host = dialogue.control.peer_host
    for other in {endpoint.host for endpoint in endpoints} - {plain_address(host), host}:
        dialogue.trace(f"the server names the address {other}, {host} is dialled")
    channel = ActiveChannel(
        [Endpoint(host, endpoint.port) for endpoint in endpoints],
        local_host=dialogue.control.local_host,
        tuning=tuned.own,
        tls=_tls(dialogue),
        call=call,
    )
    return _followed(dialogue, channel)


def listen_for_data(
    dialogue: Dialogue, tuned: Tuned, expected: int | None, limit: int
) -> PassiveChannel:
    """Listen where the server's data connections are to come, `limit` at most."""
    channel = PassiveChannel.listen(
        dialogue.control.local_host,
        dialogue.control.peer_host,
        expected=expected,
        limit=limit,
        tuning=tuned.own,
        ports=dialogue.ports.candidates(),
        tls=_tls(dialogue),
    )
    dialogue.ports.used(channel.endpoint.port)
    return _followed(dialogue, channel)


def _tls(dialogue: Dialogue) -> DataTls | None:
    """Give how the connections are protected: as PROT said after the login."""
    tls = dialogue.control.tls
    return tls.for_data() if tls is not None else None


def _followed(dialogue: Dialogue, channel: _AnyChannel) -> _AnyChannel:
    """Let later connections resume what the connections of `channel` bring."""
    if dialogue.control.tls is not None:
        dialogue.control.tls.channel = channel
    return channel
