"""The end of a session that its client did not ask for."""

from __future__ import annotations

import asyncio

LAST_WORDS_S = 2.0
"""How long after a transfer a session that is to end waits for what belongs to it, such as HASH."""


class Ending:
    """Whether it is time to end, what the client is told, and how long it is still listened to."""

    def __init__(self) -> None:
        self.is_due = False
        """Whether the session ends as soon as what runs is done."""
        self.farewell = "The server is shutting down."
        """The text of the 421 at the end."""
        self._last_words_by_s: float | None = None
        self._gives_last_words = True

    def announce(self, farewell: str | None = None) -> None:
        """Let the session end; with a farewell of its own, nobody is listened to any more."""
        self.is_due = True
        if farewell is not None:
            self.farewell = farewell
            self._gives_last_words = False

    def note_transfer(self) -> None:
        """Note that a command that moves files has just ended."""
        self._last_words_by_s = asyncio.get_running_loop().time() + LAST_WORDS_S

    @property
    def last_words_s(self) -> float:
        """How long a session that is to end is still listened to; no transfer begins then."""
        if self._last_words_by_s is None or not self._gives_last_words:
            return 0.0
        return max(0.0, self._last_words_by_s - asyncio.get_running_loop().time())
