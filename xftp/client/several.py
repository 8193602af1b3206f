"""Several data connections of one transfer (Allman 1997 B.2, docs/protocol.md).

    passive   [OPTS MULT Connections=N] MPSV    active   [OPTS MULT Connections=N] MPRT
    dialled with the commands   MPSV token      on long paths, at a server with a standing port

At a server whose distance is remembered they are dialled together with the control connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xftp.protocol.addresses import Endpoint, format_mprt, parse_mpsv_reply
from xftp.protocol.commands import Command
from xftp.protocol.options import MULT_LIMIT
from xftp.protocol.replies import Reply
from xftp.protocol.standing import format_call, new_token

from .control import Answer
from .dialogue import Dialogue, is_unsupported, reply_error
from .flights import Pace
from .opened import Opened, check_options, dial_data, listen_for_data
from .options import Direction
from .paths import LONG_RTT_S
from .tuned import Tuned

MOST_LONGER = 2.0
"""A round trip may take so many times as long as was remembered until the buffers, which are four
times what is in flight, are too small."""


class Flight(NamedTuple):
    """What leaves together with the commands for the data connections."""

    leading: Sequence[Command]
    trailing: Sequence[Command]
    transfer: Command | None


async def open_several(
    dialogue: Dialogue, direction: Direction, count: int, feeds: int | None, flight: Flight
) -> Opened | Sequence[Reply] | None:
    """Open `count` connections.

    If the server cannot: only the replies to the other commands, or None if a transfer has used
    them up, so that they have to be given again. feeds: how many connections to feed at first.
    Raises as `data.open_channel`.
    """
    try:
        return await _open(dialogue, Tuned(dialogue, direction, count, feeds), count, flight)
    except _CalledInVain as vain:
        tuned = Tuned(dialogue, direction, vain.count, feeds)
        return await _open_after(vain, dialogue, tuned, flight)


async def _open_after(
    vain: _CalledInVain, dialogue: Dialogue, tuned: Tuned, flight: Flight
) -> Opened | Sequence[Reply] | None:
    """Open several connections one step after the other, when to be early was in vain."""
    before = vain.agreed
    if before.transfer is not None:  # for it the server forgot what was said ahead of it
        again = flight._replace(transfer=None)
        return await _open(dialogue, tuned, vain.count, again, may_call=False)
    opened = await _open(dialogue, tuned, vain.count, Flight((), (), None), may_call=False)
    if isinstance(opened, Opened):
        opened.replies = before.replies
        return opened
    return before.replies


async def _open(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: Flight, *, may_call: bool = True
) -> Opened | Sequence[Reply] | None:
    """Open them once. may_call: dial the standing port ahead; then raises _CalledInVain."""
    port = _port_to_call(dialogue, tuned, count) if may_call and dialogue.passive else None
    opened: Opened | Sequence[Reply] | None
    if port is not None:
        opened = await _call(dialogue, tuned, count, flight, port)
    else:
        opened = await (_mpsv if dialogue.passive else _mprt)(dialogue, tuned, count, flight)
    if not isinstance(opened, Opened):
        dialogue.give_up_multiple("the server refused several data connections")
        return opened
    opened.channel.replaces = tuned.replaces
    return opened


class _Agreed(NamedTuple):
    """What came back from a flight."""

    reply: Reply
    """To the command for the data connections."""

    leading: list[Reply]
    """To what left ahead of it."""

    trailing: list[Reply]
    """To what left behind it."""

    transfer: Answer | None
    """To the transfer, if that left too."""

    @property
    def replies(self) -> list[Reply]:
        """Those to the commands that are not for the data connections."""
        return [*self.leading, *self.trailing]

    def without_options(self, tuned: Tuned, options: Command | None) -> _Agreed:
        """Look at what the server granted, if it was asked in this flight."""
        return self._replace(leading=check_options(tuned, options, self.leading))


async def _agree(
    dialogue: Dialogue, options: Command | None, opening: Command, flight: Flight
) -> _Agreed:
    """Send the commands for the data connections with all others, as far as that is safe."""
    asked = [options] if options else []
    commands = [*flight.leading, *asked, opening, *flight.trailing]
    transfer = None
    if flight.transfer is None:
        answered = await dialogue.flight(*commands)
    else:
        answered, transfer = await dialogue.flight_with(commands, flight.transfer)
    at = len(flight.leading) + len(asked)
    return _Agreed(answered[at], answered[:at], answered[at + 1 :], transfer)


class _CalledInVain(Exception):
    """The server has no such standing port, takes fewer connections than were dialled, or is
    farther away than was thought."""

    def __init__(self, count: int, agreed: _Agreed) -> None:
        super().__init__()
        self.count = count
        """How many it takes."""
        self.agreed = agreed


async def _mpsv(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: Flight
) -> Opened | Sequence[Reply] | None:
    """Dial what the server names."""
    if not flight.trailing:
        flight = flight._replace(transfer=None)  # it may wait until there are connections
    options = tuned.command(announces=True)
    agreed = await _agree(dialogue, options, Command("MPSV", ""), flight)
    agreed = agreed.without_options(tuned, options)
    if is_unsupported(agreed.reply):
        return None if agreed.transfer is not None else agreed.replies
    if not agreed.reply.is_positive:
        raise reply_error(agreed.reply, "MPSV")
    endpoints = parse_mpsv_reply(agreed.reply.text)[:count]  # more MUST be ignored (B.2.3)
    channel = dial_data(dialogue, tuned, endpoints)
    return Opened(dialogue, channel, True, agreed.replies, transfer=agreed.transfer)


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


async def _call(dialogue: Dialogue, tuned: Tuned, count: int, flight: Flight, port: int) -> Opened:
    """Dial the standing port, and tell the token of these connections by both ways at once.

    Raises _CalledInVain.
    """
    token = new_token()
    supposed_s = None if dialogue.control.is_made else dialogue.control.rtt_s
    options = tuned.command(announces=True)
    endpoint = Endpoint(dialogue.control.peer_host, port)
    # Its tasks begin when this one waits: the commands leave first, if they can leave already.
    channel = dial_data(dialogue, tuned, [endpoint] * count, format_call(token))
    opened = Opened(dialogue, channel, True, ())
    try:
        agreed = await _agree(dialogue, options, Command("MPSV", token), flight)
        opened.transfer = agreed.transfer
        agreed = agreed.without_options(tuned, options)
        opened.replies, reply = agreed.replies, agreed.reply
        if not reply.is_positive and not is_unsupported(reply):
            raise reply_error(reply, "MPSV")
        named = parse_mpsv_reply(reply.text)[:count] if reply.is_positive else ()
        if [each.port for each in named] != [port] * count:
            dialogue.trace(f"the server does not take {count} connections on its port {port}")
            dialogue.standing_port = None
            raise _CalledInVain(len(named) or count, agreed)
        if supposed_s is not None and (dialogue.control.rtt_s or 0) > MOST_LONGER * supposed_s:
            dialogue.trace("the path has become longer: data connections with other buffers")
            raise _CalledInVain(count, agreed)
        channel.confirm()
    except BaseException:
        await opened.release()
        raise
    return opened


async def _mprt(
    dialogue: Dialogue, tuned: Tuned, count: int, flight: Flight
) -> Opened | Sequence[Reply] | None:
    # A server that did not tell its limit may open fewer: then their number is not known.
    expected = count if dialogue.server_limit is not None else None
    channel = listen_for_data(dialogue, tuned, expected, count)
    opened = Opened(dialogue, channel, True, ())
    try:
        options = tuned.command(announces=False)
        listening = Command("MPRT", format_mprt([channel.endpoint] * count))
        agreed = await _agree(dialogue, options, listening, flight)
        opened.transfer = agreed.transfer
        agreed = agreed.without_options(tuned, options)
        opened.replies, reply = agreed.replies, agreed.reply
        if is_unsupported(reply):
            await opened.release()
            return None if agreed.transfer is not None else agreed.replies
        if not reply.is_positive:
            raise reply_error(reply, "MPRT")
    except BaseException:
        await opened.release()
        raise
    return opened
