"""Commands that leave together: which may, and whether the replies fit them.

TCP keeps commands in order, and a server that reads line by line answers them in order. Not all
do: some look at the first line of a packet only, some throw away what came before they were ready,
some answer out of order, some hang up. So until a server has answered one flight well, its replies
are checked, and what does not fit is a `PipeliningError`: on a new connection the same commands go
one by one. Of what is sent before that, nothing changes a file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence

from xftp.errors import ConnectError
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

PATIENCE_S = 10.0
"""How long each reply to the first flight may take; longer on paths of more than a tenth of it."""

PATIENCE_ROUND_TRIPS = 10

WELCOME = "XFTP "
"""How the greeting of a server of our own kind begins (docs/protocol.md)."""


class PipeliningError(ConnectError):
    """The server did not answer commands that left together; the connection is closed."""


class Pace(enum.Enum):
    """How many commands may be on their way."""

    ONE_BY_ONE = "one by one"
    """The server cannot take more, or that is not known yet."""

    SELF_CHECKING = "in small flights"
    """An ordinary server: only commands whose replies cannot be mistaken for each other's."""

    ALL = "in flights"
    """A server of our own kind: whatever does not depend on a reply."""


_POSITIVE = {
    "USER": {230, 331, 332},
    "PASS": {202, 230, 332},
    "PBSZ": {200},
    "PROT": {200},
    "FEAT": {211},
    "OPTS": {200, 202},
    "TYPE": {200},
    "MULT": {200},
    "ALLO": {200, 202},
    "REST": {350},
    "SIZE": {213},
    "MDTM": {213},
    "EPSV": {229},
    "MPSV": {229},
    "PASV": {227},
    "EPRT": {200},
    "MPRT": {200},
    "PORT": {200},
}
"""What a command can be answered that is no refusal (RFC 959 section 5.4, 2389, 2428, 3659 and
4217)."""

_EVERY_SERVER_HAS = frozenset({"USER", "PASS", "TYPE"})
_NOT_UNDERSTOOD = frozenset({500, 501, 502, 503})


def groups(pace: Pace, commands: Sequence[Command]) -> Iterator[list[Command]]:
    """Cut commands into the flights in which they may leave."""
    if pace is Pace.ALL and commands:
        yield list(commands)
        return
    group: list[Command] = []
    taken: set[int] = set()
    for command in commands:
        codes = _POSITIVE.get(command.verb)
        joins = pace is Pace.SELF_CHECKING and codes is not None and not codes & taken
        if group and not joins:
            yield group
            group, taken = [], set()
        group.append(command)
        # Nothing may follow a command whose replies are not known.
        taken |= codes if codes is not None else set().union(*_POSITIVE.values())
    if group:
        yield group


def check_replies(commands: Iterable[Command], replies: Iterable[Reply]) -> None:
    """Raise PipeliningError for replies that cannot be those to the commands, in this order."""
    needs_password = True
    for command, reply in zip(commands, replies, strict=True):
        if command.verb == "PASS" and not needs_password:
            continue
        codes = _POSITIVE.get(command.verb)
        strange = not reply.is_negative and codes is not None and reply.code not in codes
        if command.verb in _EVERY_SERVER_HAS and reply.code in _NOT_UNDERSTOOD:
            strange = True
        if strange:
            raise PipeliningError(
                f"the server answered {reply.code} to {command.verb}, which was not sent alone"
            )
        if command.verb == "USER":
            needs_password = reply.is_intermediate


def patience_s(least_s: float, rtt_s: float | None) -> float:
    """Give the seconds that one reply to a first flight is waited for."""
    return max(least_s, PATIENCE_ROUND_TRIPS * (rtt_s or 0.0))
