"""How data sockets are set, on both ends: ours before they connect, the server's by OPTS MULT.

The sender's settings decide how fast a path is filled, and in a download the sender is the server.
So it is asked, before it listens or dials; what it grants is in its reply (docs/protocol.md).
"""

from __future__ import annotations

from dataclasses import fields, replace

from xftp.errors import PeerError, TuningRefused, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.options import MULT_KEYS, MultOptions, format_mult_options, parse_mult_options
from xftp.protocol.replies import Reply
from xftp.transport.sockets import Tuning, socket_state

from .dialogue import Dialogue
from .options import Direction
from .text import printable


class Tuned:
    """The settings of the data sockets of one transfer."""

    def __init__(self, dialogue: Dialogue, direction: Direction, connections: int) -> None:
        self.own: Tuning | None = None
        """For the sockets of this side."""
        self._dialogue = dialogue
        self._asked = MultOptions()
        maker = dialogue.options.tuning
        if maker is not None:
            state = socket_state(dialogue.control.stream.writer.get_extra_info("socket"))
            rtt_s = state.rtt_s if state is not None else None
            self.own, asked = maker(direction, connections, rtt_s)
            self._asked = self._understood(asked)
        self._connections = connections

    def command(self, *, announces: bool) -> Command | None:
        """Give the OPTS command that has to go before the data connections; None: not needed.

        announces: the server will be told how many connections come.
        """
        dialogue = self._dialogue
        if not dialogue.announces_connections:
            return None
        if not announces and self._is_empty and not dialogue.has_tuned_server:
            return None
        dialogue.has_tuned_server = not self._is_empty  # without keys what was set is taken back
        asked = replace(self._asked, connections=self._connections if announces else None)
        return Command("OPTS", f"MULT {format_mult_options(asked)}".rstrip())

    def check(self, reply: Reply) -> None:
        """Compare what was granted with what was asked. Raises TuningRefused if that is strict."""
        if self._is_empty:
            return
        granted = _granted(reply)
        for key, name in _tuning_keys():
            asked, has = getattr(self._asked, name), getattr(granted, name)
            if asked is not None and asked != has:
                instead = "does not grant it" if has is None else f"grants {has}"
                self._refuse(f"{key} {asked} was asked of the server, which {instead}")

    @property
    def _is_empty(self) -> bool:
        return self._asked == MultOptions()

    def _understood(self, asked: MultOptions) -> MultOptions:
        """Leave out what the server's FEAT line does not list, and say so."""
        line = (self._dialogue.features or {}).get("MULT", "")
        listed = {key.strip().lower() for key in line.split(";")}
        missing = [
            (key, name)
            for key, name in _tuning_keys()
            if getattr(asked, name) is not None and key.lower() not in listed
        ]
        if missing:
            names = ", ".join(key for key, _ in missing)
            self._refuse(f"the server does not let its sockets be set: {names}")
        return replace(asked, connections=None, **{name: None for _, name in missing})

    def _refuse(self, sentence: str) -> None:
        if self._dialogue.options.strict_tuning:
            raise TuningRefused(sentence)
        self._dialogue.notice_once(sentence)


def _tuning_keys() -> list[tuple[str, str]]:
    """Give the wire names and the fields of everything but the number of connections."""
    return [(key, name) for key, name in MULT_KEYS if name != fields(MultOptions)[0].name]


def _granted(reply: Reply) -> MultOptions:
    """Read what a reply to OPTS MULT grants; a refusal grants nothing."""
    if not reply.is_positive:
        return MultOptions()
    words = reply.text.split(" ")
    if words[0] != "MULT":
        raise PeerError(f"OPTS MULT: the reply cannot be read: {printable(reply.text)}")
    try:
        return parse_mult_options(words[1] if len(words) > 1 and "=" in words[1] else "")[0]
    except XftpError as error:
        raise PeerError(f"OPTS MULT: the reply cannot be read: {error}") from error
