"""What the server does and has done: for the transfer log, the metrics and `xftpd status`."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

logger = logging.getLogger(__name__)

Direction = Literal["download", "upload", "listing"]

DIRECTIONS: dict[str, Direction] = {
    "RETR": "download",
    "STOR": "upload",
    "STOU": "upload",
    "APPE": "upload",
    "LIST": "listing",
    "NLST": "listing",
    "MLSD": "listing",
    "MRTR": "download",
    "MSTR": "upload",
}
"""The commands that are watched."""


SERIES = frozenset({"MRTR", "MSTR"})
"""Those of them that move several files, of which each is counted when all are over."""


class Moving(Protocol):
    """A transfer, as far as it is watched."""

    file_bytes: int

    @property
    def connection_count(self) -> int:
        """Data connections that came so far."""


@dataclass(frozen=True, slots=True)
class FinishedTransfer:
    """One transfer, over and done with."""

    direction: Direction
    path: str
    """The path as the user sees it, from the root of the account."""

    peer_host: str
    user: str
    is_anonymous: bool
    """Whether no password was asked of the user."""

    bytes: int
    """Bytes of the file that were moved this time."""

    seconds: float
    """From the command to its last reply."""

    connections: int
    is_ascii: bool
    is_protected: bool
    """Whether its data went by TLS."""

    error: str | None
    """Why it failed; None if it did not."""


class RunningTransfer:
    """One transfer that runs, from its command to its last reply."""

    def __init__(
        self,
        direction: Direction,
        path: str,
        peer_host: str,
        user: str,
        *,
        is_anonymous: bool,
        is_ascii: bool,
        is_protected: bool,
        is_series: bool = False,
    ) -> None:
        """Begin one; is_series: its files are noted one by one when it is over."""
        self.is_series = is_series
        self.direction = direction
        self.path = path
        self.peer_host = peer_host
        self.user = user
        self.is_anonymous = is_anonymous
        self.is_ascii = is_ascii
        self.is_protected = is_protected
        self.transfer: Moving | None = None
        """What moves the data; None until it does."""
        self._begun_s = time.monotonic()

    @property
    def bytes(self) -> int:
        """Bytes of the file moved so far."""
        return self.transfer.file_bytes if self.transfer is not None else 0

    @property
    def connections(self) -> int:
        """Data connections that came."""
        return self.transfer.connection_count if self.transfer is not None else 0

    @property
    def seconds(self) -> float:
        """Since the command came."""
        return time.monotonic() - self._begun_s

    def finished(self, error: str | None) -> FinishedTransfer:
        """Give what is to be remembered."""
        return FinishedTransfer(
            self.direction,
            self.path,
            self.peer_host,
            self.user,
            self.is_anonymous,
            self.bytes,
            self.seconds,
            self.connections,
            self.is_ascii,
            self.is_protected,
            error,
        )


class Watch:
    """Counts, and tells whoever wants to know.

    The numbers may be read from another thread.
    """

    def __init__(self) -> None:
        self.started_at = time.time()
        """Unix time in seconds."""
        self.sessions = 0
        """Control connections that were served."""
        self.logins: Counter[bool] = Counter()
        """Logins that succeeded, and those that did not."""
        self.transfers: Counter[tuple[Direction, bool]] = Counter()
        """Transfers that ended, by direction and success."""
        self.bytes: Counter[Direction] = Counter()
        """What the ended transfers moved."""
        self.running: dict[RunningTransfer, None] = {}
        self.listeners: list[Callable[[FinishedTransfer], None]] = []
        """Called with every transfer that moved data or tried to, when it is over."""

    def begin(self, transfer: RunningTransfer) -> None:
        """Note a transfer that begins."""
        self.running[transfer] = None

    def end(self, transfer: RunningTransfer, error: str | None) -> None:
        """Note that a transfer is over. error: why it failed."""
        del self.running[transfer]
        if transfer.transfer is None or transfer.is_series:
            return  # refused before anything moved, or told of file by file
        finished = transfer.finished(error)
        self.transfers[finished.direction, error is None] += 1
        self.bytes[finished.direction] += finished.bytes
        _log(finished)
        for listener in self.listeners:
            listener(finished)

    def bytes_moved(self) -> dict[Direction, int]:
        """Give the bytes of ended and running transfers, which never become fewer.

        Those of a series count when it is over, as a file that failed counts nothing.
        """
        moved = dict(self.bytes)
        for transfer in list(self.running):
            if transfer.is_series:
                continue
            moved[transfer.direction] = moved.get(transfer.direction, 0) + transfer.bytes
        return moved


def _log(finished: FinishedTransfer) -> None:
    logger.info(
        "%s: %s of %s: %d bytes in %.3f s over %d connection(s)%s",
        finished.peer_host,
        finished.direction,
        finished.path,
        finished.bytes,
        finished.seconds,
        finished.connections,
        f": {finished.error}" if finished.error is not None else "",
        extra={"event": "transfer", **asdict(finished)},
    )
