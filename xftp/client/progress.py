"""How a transfer tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Watches one transfer; called in the event loop, so it must be quick."""

    def started(self, total_bytes: int | None, offset: int) -> None:
        """Note that data begins to move; after a retry it comes again.

        total_bytes: size of the complete file, None if unknown; offset: bytes of it that are
        there already.
        """

    def moved(self, connection: int, size: int) -> None:
        """Note that data connection number `connection` (from 0) moved `size` bytes of file."""
