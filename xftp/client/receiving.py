"""The data of one download: from the connections into the file that it is to be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.partial import PartialFile
from xftp.transport.plain import PlainReceiver
from xftp.transport.report import TransferReport

from .dialogue import Dialogue
from .moving import move
from .opened import Opened
from .options import Existing
from .paths import LONG_RTT_S
from .progress import Progress
from .streams import Consume, bounded, expected_size, rate_limit, text_consumer
from .threads import in_thread
from .verify import Verification

if TYPE_CHECKING:
    from xftp.transport.receiver import RecordReceiver

ASKED_AT_ONCE_BYTES = 16 << 20
"""The hash of what is not larger is asked for as the transfer begins: it takes some 20 ms."""

HASHED_BYTES_PER_S = 200e6
"""How fast a server may be expected to hash, beside other work."""

_AHEAD_RTTS = 2.0
_LOOKS_PER_RTT, _LEAST_LOOK_S = 4, 0.05


class Download(NamedTuple):
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
        self._began_s = 0.0

    async def run(self) -> TransferReport:
        """Receive everything. Errors as those of `move`."""
        command = Command("RETR", self._order.remote)
        channel = self._opened.channel
        if self._opened.framed:
            answer = self._opened.take_transfer()
            records = await move(
                self._dialogue,
                command,
                channel,
                self._build_records,
                answer,
                self._ask_early,
                self._vouched,
            )
            self.end += records.size or 0
            return records.report(self._there)
        await in_thread(self._target.begin_growing)
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
        if self._target.held and self.end == self._target.offset:
            return self._target.held
        return [(0, self.end)] if self.end else []

    def _frontier(self) -> int:
        """Tell up to where the target is complete."""
        held = self.held()
        return held[0][1] if held and held[0][0] == 0 else 0

    def _ask_early(self) -> None:
        if self.verification is not None:
            self.verification.ask_early(self._known)

    async def _vouched(self) -> None:
        """Ask for the hash in time, and wait for it: then the final reply need not be waited for.

        On a long path it costs a round trip less, of which the hash is the proof.
        """
        rtt_s, size = self._dialogue.control.rtt_s, self._known
        if self.verification is None or size is None or rtt_s is None or rtt_s < LONG_RTT_S:
            await asyncio.get_running_loop().create_future()
            return
        loop, due = asyncio.get_running_loop(), asyncio.Event()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            if self._is_time_to_ask(size, rtt_s):
                due.set()
            else:
                timer = loop.call_later(max(_LEAST_LOOK_S, rtt_s / _LOOKS_PER_RTT), look)

        try:
            look()
            await due.wait()
        finally:
            if timer is not None:
                timer.cancel()
        self.verification.ask_beside()
        await self.verification.told_beside(size)

    def _is_time_to_ask(self, size: int, rtt_s: float) -> bool:
        """Tell whether the answer would come at about the end: it is not to be computed in vain,
        nor long before the server reads what it is to send."""
        if size <= ASKED_AT_ONCE_BYTES or self._records is None:
            return True
        left = size - self._there - self._records.file_bytes
        elapsed_s = asyncio.get_running_loop().time() - self._began_s
        rate = self._records.file_bytes / elapsed_s if elapsed_s > 0 else 0.0
        return left <= rate * (_AHEAD_RTTS * rtt_s + size / HASHED_BYTES_PER_S)

    def _write(self, piece: memoryview) -> None:
        self.end += self._target.write([piece], self.end)

    def _build_records(self, opening: Reply) -> RecordReceiver:
        from xftp.transport.receiver import RecordReceiver  # loaded while the data is on its way

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
            checkpoint=lambda: self._target.checkpoint(self.held(), self._known),
        )

    @property
    def _there(self) -> int:
        """Bytes of the file that were there before."""
        return sum(end - start for start, end in self._target.held)

    def _begin(self, opening: Reply) -> int | None:
        """Note the 150 reply; give the bytes that are to come, if that is known."""
        offset = self._target.offset
        # After REST some servers tell the size of the file here, others that of the rest.
        known = expected_size(self._dialogue, self._size, opening) if not offset else self._size
        self._known = known
        self._began_s = asyncio.get_running_loop().time()
        if self._order.progress is not None:
            self._order.progress.started(known, self._there)
        self.verification = Verification.begin(
            self._dialogue,
            self._order.remote,
            self._target.fileno(),
            self._target.name,
            self._frontier,
        )
        return None if known is None else known - offset
