"""Says that a transfer goes on with what an earlier one left, when nobody asked for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .screen import Screen
from .text import size_text

if TYPE_CHECKING:
    from xftp.client.progress import Progress


class GoingOn:
    """Watches one transfer, as `xftp.client.progress.Progress` says, and hands on to `bars`."""

    def __init__(self, name: str, bars: Progress | None, screen: Screen) -> None:
        self._name, self._bars, self._screen = name, bars, screen
        self._has_begun = False

    def started(self, total_bytes: int | None, offset: int) -> None:
        """Tell where it begins, the first time: a later one is a retry, of which is told anyway."""
        self.tell(offset)
        if self._bars is not None:
            self._bars.started(total_bytes, offset)

    def tell(self, offset: int) -> None:
        """Say it, once; offset: bytes of the file that were there."""
        if offset and not self._has_begun:
            self._screen.notice(
                f"{self._name}: going on with the {size_text(offset)} that an earlier transfer"
                " left; --overwrite begins anew"
            )
        self._has_begun = True

    def moved(self, connection: int, size: int) -> None:
        """Hand on."""
        if self._bars is not None:
            self._bars.moved(connection, size)
