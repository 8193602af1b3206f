"""How data sockets are set, on both ends: ours before they connect, the server's by OPTS MULT.

The sender's settings decide how fast a path is filled, and in a download the sender is the server.
So it is asked, before it listens or dials; what it grants is in its reply (docs/protocol.md).
"""

from __future__ import annotations

from dataclasses import replace

from xftp.errors import PeerError, TuningRefused, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.options import (
    FEED_KEY,
    REPLACE_KEY,
    SOCKET_KEYS,
    MultOptions,
    format_mult_options,
    parse_mult_options,
)
from xftp.protocol.replies import Reply
from xftp.transport.sockets import Tuning, plain_address

from .dialogue import Dialogue
from .options import Direction, TuningMaker
from .paths import supposed_rate_bps
from .text import printable


class Tuned:
    """The settings of the data sockets of one transfer."""

    def __init__(
        self,
        dialogue: Dialogue,
        direction: Direction,
        connections: int,
        feeds: int | None = None,
    ) -> None:
        """Make the settings; feeds: how many the sender gives records to at first; None: all."""
        self.feeds = feeds
        self.own: Tuning | None = None
        """For the sockets of this side."""
        self.replaces = False
        """Whether the server agreed that lost data connections are replaced."""
        self._dialogue = dialogue
        self._direction = direction
        self._asked = MultOptions()
        self._connections = connections
        self._is_supposed = False
        rtt_s = dialogue.control.rtt_s
        maker = self._maker(direction, rtt_s)
        dialogue.asked_rate_bps = None
        if maker is not None:
            peer_host = plain_address(dialogue.control.peer_host)
            self.own, asked = maker(direction, connections, rtt_s, peer_host)
            self._asked = self._understood(asked)
            dialogue.asked_rate_bps = self._asked.rate_bps
        known = dialogue.paths.get(direction)
        dialogue.sender_takes_windows = known is None or known.takes_windows

    def _maker(self, direction: Direction, rtt_s: float | None) -> TuningMaker | None:
        """Choose who makes the settings: the rate may be supposed from earlier transfers."""
        options = self._dialogue.options
        if options.supposing is not None:
            rate_bps = supposed_rate_bps(self._dialogue.paths.get(direction), rtt_s)
            if rate_bps is not None:
                self._is_supposed = True
                return options.supposing(rate_bps)
        return options.tuning

    def command(self, *, announces: bool) -> Command | None:
        """Give the OPTS command that has to go before the data connections; None: not needed.

        announces: the server will be told how many connections come.
        """
        dialogue = self._dialogue
        if not dialogue.announces_connections:
            return None
        if not (announces or self._asks_to_replace or dialogue.has_tuned_server) and self._is_empty:
            return None
        dialogue.has_tuned_server = not self._is_empty  # without keys what was set is taken back
        asked = replace(
            self._asked,
            connections=self._connections if announces else None,
            replaces=1 if self._asks_to_replace else None,
            feeds=self.feeds if self._direction == "download" and self._lists(FEED_KEY) else None,
        )
        return Command("OPTS", f"MULT {format_mult_options(asked)}".rstrip())

    def check(self, reply: Reply) -> None:
        """Compare what was granted with what was asked. Raises TuningRefused if that is strict."""
        if self._is_empty and not self._asks_to_replace:
            return
        granted = _granted(reply)
        self.replaces = bool(self._asks_to_replace and granted.replaces)
        if self._asked.rate_bps is not None:
            self._dialogue.asked_rate_bps = granted.rate_bps
            # A rate is of use to an algorithm that starts with it: others are only held back.
            self._dialogue.sender_takes_windows = granted.congestion is not None
        for key, name in SOCKET_KEYS:
            asked, has = getattr(self._asked, name), getattr(granted, name)
            if self._is_supposed and name == "rate_bps":
                continue  # the user did not ask for it
            if asked is not None and asked != has:
                instead = "does not grant it" if has is None else f"grants {has}"
                self._refuse(f"{key} {asked} was asked of the server, which {instead}")

    @property
    def asks_for_window(self) -> bool:
        """Whether the server's connections are to begin with a certain window.

        It may have to be granted before their first SYN.
        """
        return self._asked.initial_window_segments is not None

    @property
    def _is_empty(self) -> bool:
        return self._asked == MultOptions()

    @property
    def _asks_to_replace(self) -> bool:
        """Whether there are several connections, of which a lost one could be replaced."""
        return self._connections > 1 and self._lists(REPLACE_KEY)

    def _lists(self, key: str) -> bool:
        return key.lower() in self._listed

    @property
    def _listed(self) -> set[str]:
        """The keys that the server's FEAT line lists, in lower case."""
        line = (self._dialogue.features or {}).get("MULT", "")
        return {key.strip().lower() for key in line.split(";")}

    def _understood(self, asked: MultOptions) -> MultOptions:
        """Leave out what the server's FEAT line does not list, and say so."""
        listed = self._listed
        missing = [
            (key, name)
            for key, name in SOCKET_KEYS
            if getattr(asked, name) is not None and key.lower() not in listed
        ]
        if self._is_supposed:
            missing = [(key, name) for key, name in missing if name != "rate_bps"]
            if "rate" not in listed:
                asked = replace(asked, rate_bps=None)
        if missing:
            names = ", ".join(key for key, _ in missing)
            self._refuse(f"the server does not let its sockets be set: {names}")
        return replace(asked, connections=None, **{name: None for _, name in missing})

    def _refuse(self, sentence: str) -> None:
        if self._dialogue.options.strict_tuning:
            raise TuningRefused(sentence)
        self._dialogue.notice_once(sentence)


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
