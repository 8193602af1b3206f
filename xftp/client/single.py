"""One data connection, as any server has it: EPSV or PASV, EPRT or PORT (RFC 2428, RFC 959)."""

from __future__ import annotations

from collections.abc import Sequence

from xftp.errors import PeerError
from xftp.protocol.addresses import (
    Endpoint,
    format_eprt,
    format_port,
    parse_epsv_reply,
    parse_pasv_reply,
)
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.channels import DataChannel
from xftp.transport.sockets import is_ipv6

from .dialogue import Dialogue, is_unsupported, reply_error
from .opened import Opened, check_options, dial_data, listen_for_data
from .tuned import Tuned


async def open_single(
    dialogue: Dialogue, tuned: Tuned, leading: Sequence[Command], replies: Sequence[Reply]
) -> Opened:
    """Open it; leading: commands that go ahead; replies: to those that went ahead already.

    Raises as `data.open_channel`.
    """
    options = tuned.command(announces=False)
    commands = [*leading, *([options] if options else [])]
    if not dialogue.passive:
        leading_replies = check_options(tuned, options, await dialogue.flight(*commands))
        channel = await _active(dialogue, tuned)
        return Opened(dialogue, channel, False, replies or leading_replies)
    verb = "PASV" if _skips(dialogue, "EPSV") else "EPSV"
    *answered, reply = await dialogue.flight(*commands, Command(verb, ""))
    leading_replies = check_options(tuned, options, answered)
    port = _epsv_port(dialogue, reply) if verb == "EPSV" else _pasv_port(reply)
    if port is None:
        port = _pasv_port(await dialogue.ask("PASV"))
    endpoint = Endpoint(dialogue.control.peer_host, port)
    return Opened(
        dialogue, dial_data(dialogue, tuned, [endpoint]), False, replies or leading_replies
    )


def _pasv_port(reply: Reply) -> int:
    if not reply.is_positive:
        raise reply_error(reply, "PASV")
    return parse_pasv_reply(reply.text).port


def _epsv_port(dialogue: Dialogue, reply: Reply) -> int | None:
    """Read the port from the reply to EPSV; None if the server lacks it and PASV may do."""
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
    channel = listen_for_data(dialogue, tuned, 1, 1)
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
