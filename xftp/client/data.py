"""Data connections, agreed upon over the control connection.

    several   passive  [OPTS MULT Connections=N] MPSV     active  MPRT      Allman 1997 B.2
              dialled with the commands   MPSV token      on long paths     docs/protocol.md
    one       passive  EPSV, else PASV                    active  EPRT, else PORT

At a server whose distance is remembered they are dialled together with the control connection.

An address other than the server's own is never dialled (RFC 2577 section 3 warns of servers that
send a client elsewhere): only the port of a reply is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

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
from xftp.protocol.options import MULT_LIMIT
from xftp.protocol.replies import Reply
from xftp.protocol.standing import format_call, new_token
from xftp.transport.active import ActiveChannel
from xftp.transport.channels import DataChannel
from xftp.transport.passive import PassiveChannel
from xftp.transport.sockets import is_ipv6, plain_address
from xftp.transport.tls import DataTls

from .control import Answer
from .dialogue import Dialogue, is_unsupported, reply_error
from .flights import Pace
from .moving import abandon
from .options import Direction
from .paths import LONG_RTT_S, supposed_rate_bps
from .tuned import Tuned

MOST_LONGER = 2.0
"""A round trip may take so many times as long as was remembered until the buffers, which are four
times what is in flight, are too small."""

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


async def open_channel(
    dialogue: Dialogue,
    *,
    direction: Direction = "download",
    single: bool = False,
    leading: Sequence[Command] = (),
    transfer: Command | None = None,
    framed: bool = False,
    trailing: Sequence[Command] = (),
) -> Opened:
    """Open as many data connections as are in force.

    direction: which way the file will go; single: one plain connection whatever is in force;
    framed: records are needed, over one connection too, if the server has them; trailing: commands
    that go behind those for the connections, with `framed` only, and let `transfer` leave with them
    in any case: their replies come last;
    leading: commands that go ahead in the same flight; transfer: the command that will move the
    file: where the server opens the connections it may leave in that flight too. Raises
    ReplyError, PeerError, DataConnectionError, ConnectError, TuningRefused.
    """
    if dialogue.options.strict_tuning:
        transfer = None  # it may not begin before it is known what was granted
    count = 1 if single else await dialogue.connections_in_force()
    if count > 1 or (framed and dialogue.supports_multiple is not False):
        opens, feeds = _choose(dialogue, direction)
        count = min(count, opens)
        tuned = Tuned(dialogue, direction, count, feeds)
        flight = _Flight(leading, trailing, transfer)
        try:
            opened = await _open_multiple(dialogue, tuned, count, flight)
        except _CalledInVain as vain:
            opened = await _open_after(vain, dialogue, direction, feeds, trailing)
        if isinstance(opened, Opened):
            opened.feeds = feeds
            return opened
        return await _open_single(dialogue, Tuned(dialogue, direction, 1), (), opened)
    return await _open_single(dialogue, Tuned(dialogue, direction, 1), leading, ())


async def _open_after(
    vain: _CalledInVain,
    dialogue: Dialogue,
    direction: Direction,
    feeds: int | None,
    trailing: Sequence[Command],
) -> Opened | Sequence[Reply]:
    """Open several connections one step after the other, when to be early was in vain."""
    tuned = Tuned(dialogue, direction, vain.count, feeds)
    opened = await _open_multiple(dialogue, tuned, vain.count, _Flight((), trailing, None))
    if isinstance(opened, Opened):
        opened.replies = [*vain.replies, *opened.replies]
        return opened
    return [*vain.replies, *opened]


def _choose(dialogue: Dialogue, direction: Direction) -> tuple[int, int | None]:
    """Give how many connections to open at most, and how many to feed at first (None: all)."""
    if dialogue.auto is None:
        return dialogue.wanted, None
    rtt_s, supposed_bps = dialogue.control.rtt_s, None
    if dialogue.options.supposing is not None:
        supposed_bps = supposed_rate_bps(dialogue.paths.get(direction), rtt_s)
    return dialogue.auto(direction, rtt_s, supposed_bps)


# -- several connections ------------------------------------------------------------------------


class _Flight(NamedTuple):
    """What leaves together with the commands for the data connections."""

    leading: Sequence[Command]
    trailing: Sequence[Command]
    transfer: Command | None


async def _open_multiple(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: _Flight
) -> Opened | Sequence[Reply]:
    """Open several connections; or only give the other replies, if the server cannot."""
    opened = await (_mpsv if dialogue.passive else _mprt)(dialogue, tuned, count, flight)
    if not isinstance(opened, Opened):
        dialogue.give_up_multiple("the server refused several data connections")
        return opened
    opened.channel.replaces = tuned.replaces
    return opened


async def _fly(
    dialogue: Dialogue, commands: Sequence[Command], transfer: Command | None
) -> tuple[list[Reply], Answer | None]:
    """Send commands, and the transfer with them if there is one and that is safe."""
    if transfer is None:
        return await dialogue.flight(*commands), None
    return await dialogue.flight_with(commands, transfer)


class _CalledInVain(Exception):
    """The server has no such standing port, takes fewer connections than were dialled, or is
    farther away than was thought."""

    def __init__(self, count: int, replies: Sequence[Reply]) -> None:
        super().__init__()
        self.count = count
        """How many it takes."""
        self.replies = replies
        """Those to the leading commands."""


async def _mpsv(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: _Flight
) -> Opened | Sequence[Reply]:
    """Dial what the server names; its standing port while the commands are on their way."""
    port = _port_to_call(dialogue, tuned, count)
    if port is not None:
        return await _call(dialogue, tuned, count, flight, port)
    options = tuned.command(announces=True)
    commands = [*flight.leading, *([options] if options else []), Command("MPSV", "")]
    transfer = None
    if flight.trailing and flight.transfer is not None:
        commands += flight.trailing
        answered, transfer = await dialogue.flight_with(commands, flight.transfer)
    else:
        answered = await dialogue.flight(*commands, *flight.trailing)
    at = len(answered) - len(flight.trailing) - 1
    reply = answered[at]
    replies = [*_check_options(tuned, options, answered[:at]), *answered[at + 1 :]]
    if is_unsupported(reply):
        return replies
    if not reply.is_positive:
        raise reply_error(reply, "MPSV")
    endpoints = parse_mpsv_reply(reply.text)[:count]  # more MUST be ignored (B.2.3)
    return Opened(dialogue, _dial(dialogue, tuned, endpoints), True, replies, transfer=transfer)


def _port_to_call(dialogue: Dialogue, tuned: Tuned, count: int) -> int | None:
    """Give the standing port where to dial before the server has answered is worth something."""
    rtt_s = dialogue.control.rtt_s
    is_long = rtt_s is not None and rtt_s >= LONG_RTT_S
    if not is_long or dialogue.pace is not Pace.ALL or dialogue.control.tls is not None:
        return None
    if tuned.asks_for_window:
        return None
    # A server that has not told its limit has the usual one (Allman 1997 B.5).
    return dialogue.standing_port if count <= (dialogue.server_limit or MULT_LIMIT) else None


async def _call(dialogue: Dialogue, tuned: Tuned, count: int, flight: _Flight, port: int) -> Opened:
    """Dial the standing port, and tell the token of these connections by both ways at once.

    Raises _CalledInVain.
    """
    token = new_token()
    supposed_s = None if dialogue.control.is_made else dialogue.control.rtt_s
    options = tuned.command(announces=True)
    commands = [*flight.leading, *([options] if options else []), Command("MPSV", token)]
    endpoint = Endpoint(dialogue.control.peer_host, port)
    # Its tasks begin when this one waits: the commands leave first, if they can leave already.
    channel = _dial(dialogue, tuned, [endpoint] * count, format_call(token))
    opened = Opened(dialogue, channel, True, ())
    try:
        commands += flight.trailing
        answered, opened.transfer = await _fly(dialogue, commands, flight.transfer)
        at = len(answered) - len(flight.trailing) - 1
        reply = answered[at]
        leading = _check_options(tuned, options, answered[:at])
        opened.replies = [*leading, *answered[at + 1 :]]
        if not reply.is_positive and not is_unsupported(reply):
            raise reply_error(reply, "MPSV")
        named = parse_mpsv_reply(reply.text)[:count] if reply.is_positive else ()
        if [each.port for each in named] != [port] * count:
            dialogue.trace(f"the server does not take {count} connections on its port {port}")
            dialogue.standing_port = None
            raise _CalledInVain(len(named) or count, leading)
        if supposed_s is not None and (dialogue.control.rtt_s or 0) > MOST_LONGER * supposed_s:
            dialogue.trace("the path has become longer: data connections with other buffers")
            raise _CalledInVain(count, leading)
        channel.confirm()
    except BaseException:
        await opened.release()
        raise
    return opened


async def _mprt(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: _Flight
) -> Opened | Sequence[Reply]:
    # A server that did not tell its limit may open fewer: then their number is not known.
    expected = count if dialogue.server_limit is not None else None
    channel = _listen(dialogue, tuned, expected, count)
    opened = Opened(dialogue, channel, True, ())
    try:
        options = tuned.command(announces=False)
        listening = Command("MPRT", format_mprt([channel.endpoint] * count))
        commands = [*flight.leading, *([options] if options else []), listening, *flight.trailing]
        answered, opened.transfer = await _fly(dialogue, commands, flight.transfer)
        at = len(answered) - len(flight.trailing) - 1
        reply = answered[at]
        replies = [*_check_options(tuned, options, answered[:at]), *answered[at + 1 :]]
        opened.replies = replies
        if is_unsupported(reply):
            await opened.release()
            return replies
        if not reply.is_positive:
            raise reply_error(reply, "MPRT")
    except BaseException:
        await opened.release()
        raise
    return opened


def _check_options(tuned: Tuned, options: Command | None, replies: list[Reply]) -> list[Reply]:
    """Look at what the server granted, if it was asked; give the other replies."""
    if options is None:
        return replies
    *others, granted = replies
    tuned.check(granted)
    return others


# -- one connection -----------------------------------------------------------------------------


async def _open_single(
    dialogue: Dialogue, tuned: Tuned, leading: Sequence[Command], replies: Sequence[Reply]
) -> Opened:
    options = tuned.command(announces=False)
    commands = [*leading, *([options] if options else [])]
    if not dialogue.passive:
        answered = await dialogue.flight(*commands)
        replies = replies or _check_options(tuned, options, answered)
        return Opened(dialogue, await _active(dialogue, tuned), False, replies)
    verb = "PASV" if _skips(dialogue, "EPSV") else "EPSV"
    *answered, reply = await dialogue.flight(*commands, Command(verb, ""))
    leading_replies = _check_options(tuned, options, answered)
    port = _epsv_port(dialogue, reply) if verb == "EPSV" else _pasv_port(reply)
    if port is None:
        port = _pasv_port(await dialogue.ask("PASV"))
    endpoint = Endpoint(dialogue.control.peer_host, port)
    return Opened(dialogue, _dial(dialogue, tuned, [endpoint]), False, replies or leading_replies)


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


def _dial(
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


def _listen(dialogue: Dialogue, tuned: Tuned, expected: int | None, limit: int) -> PassiveChannel:
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
