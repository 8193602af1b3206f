"""Data connections for a transfer, agreed upon over the control connection: one, or several.

several   MPSV or MPRT               several.py
one       EPSV, PASV, EPRT or PORT   single.py
"""

from __future__ import annotations

from collections.abc import Sequence

from xftp.protocol.commands import Command

from .dialogue import Dialogue
from .opened import Opened
from .options import Direction
from .paths import supposed_rate_bps
from .several import Flight, open_several
from .single import open_single
from .tuned import Tuned


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
        flight = Flight(leading, trailing, transfer)
        opened = await open_several(dialogue, direction, count, feeds, flight)
        if isinstance(opened, Opened):
            opened.feeds = feeds
            return opened
        if opened is not None:
            return await open_single(dialogue, Tuned(dialogue, direction, 1), (), opened)
    return await open_single(dialogue, Tuned(dialogue, direction, 1), leading, ())


def _choose(dialogue: Dialogue, direction: Direction) -> tuple[int, int | None]:
    """Give how many connections to open at most, and how many to feed at first (None: all)."""
    if dialogue.auto is None:
        return dialogue.wanted, None
    rtt_s, supposed_bps = dialogue.control.rtt_s, None
    if dialogue.options.supposing is not None:
        supposed_bps = supposed_rate_bps(dialogue.paths.get(direction), rtt_s)
    return dialogue.auto(direction, rtt_s, supposed_bps)
