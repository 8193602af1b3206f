"""Data connections, agreed upon over the control connection.

    several   passive  [OPTS MULT Connections=N] MPSV     active  MPRT      Allman 1997 B.2
    one       passive  EPSV, else PASV                    active  EPRT, else PORT

An address other than the server's own is never dialled (RFC 2577 section 3 warns of servers that
send a client elsewhere): only the port of a reply is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xftp.errors import PeerError
from xftp.protocol.addresses import (
    Endpoint,
    format_eprt,
    format_mprt,
    format_port,
    parse_epsv_reply,
    parse_mpsv_reply,
    parse_pasv_reply,
)
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.channels import ActiveChannel, DataChannel, PassiveChannel
from xftp.transport.sockets import is_ipv6, plain_address

from .dialogue import Dialogue, is_unsupported, reply_error
from .options import Direction
from .tuned import Tuned


@dataclass(frozen=True, slots=True)
class Opened:
    """Data connections for one transfer, on their way."""

    channel: DataChannel
    """To be closed by whoever asked for it."""

    framed: bool
    """Whether the file goes in records (several connections), or as a plain stream."""

    replies: Sequence[Reply]
    """The replies to the commands that went ahead."""


async def open_channel(
    dialogue: Dialogue,
    *,
    direction: Direction = "download",
    single: bool = False,
    leading: Sequence[Command] = (),
) -> Opened:
    """Open as many data connections as are in force.

    direction: which way the file will go; single: one plain connection whatever is in force;
    leading: commands that go ahead in the same flight. Raises ReplyError, PeerError,
    DataConnectionError, ConnectError, TuningRefused.
    """
    count = 1 if single else await dialogue.connections_in_force()
    if count > 1:
        opened = await _open_multiple(dialogue, Tuned(dialogue, direction, count), count, leading)
        if isinstance(opened, Opened):
            return opened
        return await _open_single(dialogue, Tuned(dialogue, direction, 1), (), opened)
    return await _open_single(dialogue, Tuned(dialogue, direction, 1), leading, ())


# -- several connections ------------------------------------------------------------------------


async def _open_multiple(
    dialogue: Dialogue, tuned: Tuned, count: int, leading: Sequence[Command]
) -> Opened | Sequence[Reply]:
    """Open several connections; or only give the leading replies, if the server cannot."""
    open_all = _mpsv if dialogue.passive else _mprt
    replies, channel = await open_all(dialogue, tuned, count, leading)
    if channel is None:
        dialogue.give_up_multiple("the server refused several data connections")
        return replies
    return Opened(channel, True, replies)


async def _mpsv(
    dialogue: Dialogue, tuned: Tuned, count: int, leading: Sequence[Command]
) -> tuple[Sequence[Reply], DataChannel | None]:
    *replies, reply = await _flight(dialogue, tuned, leading, Command("MPSV", ""), announces=True)
    if is_unsupported(reply):
        return replies, None
    if not reply.is_positive:
        raise reply_error(reply, "MPSV")
    endpoints = parse_mpsv_reply(reply.text)[:count]  # more MUST be ignored (B.2.3)
    return replies, _dial(dialogue, tuned, endpoints)


async def _mprt(
    dialogue: Dialogue, tuned: Tuned, count: int, leading: Sequence[Command]
) -> tuple[Sequence[Reply], DataChannel | None]:
    # A server that did not tell its limit may open fewer: then their number is not known.
    expected = count if dialogue.server_limit is not None else None
    channel = _listen(dialogue, tuned, expected, count)
    try:
        command = Command("MPRT", format_mprt([channel.endpoint] * count))
        *replies, reply = await _flight(dialogue, tuned, leading, command, announces=False)
        if is_unsupported(reply):
            channel.close()
            return replies, None
        if not reply.is_positive:
            raise reply_error(reply, "MPRT")
    except BaseException:
        channel.close()
        raise
    return replies, channel


async def _flight(
    dialogue: Dialogue,
    tuned: Tuned,
    leading: Sequence[Command],
    last: Command,
    *,
    announces: bool,
) -> list[Reply]:
    """Send `leading`, what sets the server's sockets, and `last`; give the others' replies."""
    options = tuned.command(announces=announces)
    if options is None:
        return await dialogue.flight(*leading, last)
    *replies, granted, reply = await dialogue.flight(*leading, options, last)
    tuned.check(granted)
    return [*replies, reply]


# -- one connection -----------------------------------------------------------------------------


async def _open_single(
    dialogue: Dialogue, tuned: Tuned, leading: Sequence[Command], replies: Sequence[Reply]
) -> Opened:
    replies = replies or await dialogue.flight(*leading)
    options = tuned.command(announces=False)
    if options is not None:
        tuned.check(await dialogue.ask(options.verb, options.argument))
    channel = await (_passive(dialogue, tuned) if dialogue.passive else _active(dialogue, tuned))
    return Opened(channel, False, replies)


async def _passive(dialogue: Dialogue, tuned: Tuned) -> DataChannel:
    port = None if _skips(dialogue, "EPSV") else await _epsv(dialogue)
    if port is None:
        reply = await dialogue.ask("PASV")
        if not reply.is_positive:
            raise reply_error(reply, "PASV")
        port = parse_pasv_reply(reply.text).port
    return _dial(dialogue, tuned, [Endpoint(dialogue.control.peer_host, port)])


async def _epsv(dialogue: Dialogue) -> int | None:
    """Ask EPSV for a port; None if the server lacks it and PASV may do."""
    reply = await dialogue.ask("EPSV")
    may_do_without = not is_ipv6(dialogue.control.peer_host)
    if is_unsupported(reply) and may_do_without:
        return None
    if not reply.is_positive:
        raise reply_error(reply, "EPSV")
    try:
        return parse_epsv_reply(reply.text)
    except PeerError:
        if may_do_without:
            dialogue.trace("the reply to EPSV cannot be read, trying PASV")
            return None
        raise


async def _active(dialogue: Dialogue, tuned: Tuned) -> DataChannel:
    channel = _listen(dialogue, tuned, 1, 1)
    try:
        if not _skips(dialogue, "EPRT"):
            reply = await dialogue.ask("EPRT", format_eprt(channel.endpoint))
            if reply.is_positive:
                return channel
            if channel.endpoint.is_ipv6 or not is_unsupported(reply):
                raise reply_error(reply, "EPRT")
        await dialogue.demand("PORT", format_port(channel.endpoint))
    except BaseException:
        channel.close()
        raise
    return channel


def _skips(dialogue: Dialogue, verb: str) -> bool:
    """Tell whether the extended command was refused before and the old one will do."""
    return dialogue.refused(verb) and not is_ipv6(dialogue.control.peer_host)


# -- channels -----------------------------------------------------------------------------------


def _dial(dialogue: Dialogue, tuned: Tuned, endpoints: Sequence[Endpoint]) -> ActiveChannel:
    """Dial the ports of `endpoints` at the server's own address, whatever the reply says."""
    host = dialogue.control.peer_host
    for other in {endpoint.host for endpoint in endpoints} - {plain_address(host), host}:
        dialogue.trace(f"the server names the address {other}, {host} is dialled")
    return ActiveChannel(
        [Endpoint(host, endpoint.port) for endpoint in endpoints],
        local_host=dialogue.control.local_host,
        tuning=tuned.own,
    )


def _listen(dialogue: Dialogue, tuned: Tuned, expected: int | None, limit: int) -> PassiveChannel:
    return PassiveChannel.listen(
        dialogue.control.local_host,
        dialogue.control.peer_host,
        expected=expected,
        limit=limit,
        tuning=tuned.own,
    )
