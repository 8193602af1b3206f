"""The data of one download: from the connections into the file that it is to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.files import PartialFile
from xftp.transport.plain import PlainReceiver
from xftp.transport.receiver import RecordReceiver
from xftp.transport.report import TransferReport

from .data import Opened
from .dialogue import Dialogue
from .moving import move
from .options import Existing
from .progress import Progress
from .streams import Consume, bounded, expected_size, rate_limit, text_consumer
from .threads import in_thread
from .verify import Verification


@dataclass(frozen=True, slots=True)
class Download:
    """What is to be fetched, and how."""

    remote: str
    """The path on the server."""

    local: str | os.PathLike[str] | None
    """The file or the directory; None: the working directory."""

    existing: Existing = "fail"
    """What to do with a target that exists."""

    progress: Progress | None = None
    """Told of what moves."""

    preserve_times: bool = True
    """Whether the file gets the remote modification time."""


class Receiving:
    """The data of one download."""

    def __init__(
        self,
        dialogue: Dialogue,
        order: Download,
        opened: Opened,
        target: PartialFile,
        size: int | None,
    ) -> None:
        self.end = target.offset
        """Where the content that arrived in order ends."""
        self._known = size
        self.verification: Verification | None = None
        """The comparison with the file on the server, once the transfer has begun."""
        self._dialogue = dialogue
        self._order = order
        self._opened = opened
        self._target = target
        self._size = size
        self._records: RecordReceiver | None = None

    async def run(self) -> TransferReport:
        """Receive everything. Errors as those of `move`."""
        command = Command("RETR", self._order.remote)
        channel = self._opened.channel
        if self._opened.framed:
            answer = self._opened.take_transfer()
            records = await move(
                self._dialogue, command, channel, self._build_records, answer, self._ask_early
            )
            self.end += records.size or 0
            return records.report(self._target.offset)
        consume: Consume = self._write
        finish: Callable[[], None] | None = None
        if self._dialogue.type_code == "A":
            consume, finish = text_consumer(self._write)
        plain = await move(
            self._dialogue,
            command,
            channel,
            lambda opening: self._build(opening, consume),
            at_end=self._ask_early,
        )
        if finish is not None:
            await in_thread(finish)
        return plain.report(self._target.offset)

    def held(self) -> Sequence[tuple[int, int]]:
        """Give the byte ranges of the target that are held."""
        if self._records is not None:
            return self._records.held_bytes()
        return from_start(self.end)

    def _frontier(self) -> int:
        """Tell up to where the target is complete."""
        held = self.held()
        return held[0][1] if held and held[0][0] == 0 else 0

    def _ask_early(self) -> None:
        if self.verification is not None:
            self.verification.ask_early(self._known)

    def _write(self, piece: memoryview) -> None:
        self.end += self._target.write([piece], self.end)

    def _build_records(self, opening: Reply) -> RecordReceiver:
        self._records = RecordReceiver(
            self._opened.channel,
            self._target,
            self._begin(opening),
            limit=rate_limit(self._dialogue),
            progress=self._order.progress.moved if self._order.progress else None,
        )
        return self._records

    def _build(self, opening: Reply, consume: Consume) -> PlainReceiver:
        size = self._begin(opening)
        return PlainReceiver(
            self._opened.channel,
            bounded(consume, size),
            size,
            patience=self._target.patience,
            limit=rate_limit(self._dialogue),
            progress=self._order.progress.moved if self._order.progress else None,
        )

    def _begin(self, opening: Reply) -> int | None:
        """Note the 150 reply; give the bytes that are to come, if that is known."""
        offset = self._target.offset
        # After REST some servers tell the size of the file here, others that of the rest.
        known = expected_size(self._dialogue, self._size, opening) if not offset else self._size
        self._known = known
        if self._order.progress is not None:
            self._order.progress.started(known, offset)
        self.verification = Verification.begin(
            self._dialogue,
            self._order.remote,
            self._target.fileno(),
            self._target.name,
            self._frontier,
        )
        return None if known is None else known - offset


def from_start(end: int) -> list[tuple[int, int]]:
    """Give the range of the first `end` bytes, if there are any."""
    return [(0, end)] if end else []
