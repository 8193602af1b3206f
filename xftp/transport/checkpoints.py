"""When the journal of a transfer is brought up to date. No clock here: the time is an argument."""

from __future__ import annotations

CHECKPOINT_S = 5.0
CHECKPOINT_BYTES = 64 * 1024 * 1024
"""How often, whichever comes first: what came since is lost when this side is killed."""


class Checkpoints:
    """Tells when the next checkpoint is due; there is one at a time."""

    def __init__(self, now_s: float) -> None:
        self._is_running = False
        self._next_s = now_s + CHECKPOINT_S
        self._next_bytes = CHECKPOINT_BYTES

    def begins(self, now_s: float, moved_bytes: int) -> bool:
        """Tell whether one is due, and take it as begun. moved_bytes: of the file, so far."""
        is_due = now_s >= self._next_s or moved_bytes >= self._next_bytes
        if self._is_running or not is_due:
            return False
        self._is_running = True
        self._next_s = now_s + CHECKPOINT_S
        self._next_bytes = moved_bytes + CHECKPOINT_BYTES
        return True

    def ended(self, _: object = None) -> None:
        """Note that the one that was begun is done."""
        self._is_running = False
