"""Many files at the cost of one: a series moves as one file over the same data connections.

No round trip, no set-up and no slow start for each of them (docs/protocol.md, Series). A file that
cannot be moved so is left to its caller, who moves it by itself and hears why it fails then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from xftp.errors import FileError, PeerError, XftpError, file_error
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.protocol.series import (
    FEATURE,
    LARGEST_BYTES,
    SeriesFile,
    Way,
    format_argument,
    parse_facts,
    parse_failures,
)
from xftp.transport.files import SourceFile
from xftp.transport.hashing import digest_of
from xftp.transport.partial import PartialFile
from xftp.transport.receiver import RecordReceiver
from xftp.transport.report import TransferReport
from xftp.transport.sender import RecordSender
from xftp.transport.series import KEPT_FROM_BYTES, SeriesSource, SeriesTarget

from .control import Answer
from .data import open_channel
from .dialogue import Dialogue, reply_error
from .facts import Facts, opening_size
from .flights import Pace
from .hashes import choose_method
from .moving import move
from .opened import Opened
from .options import Direction
from .progress import Progress
from .streams import rate_limit
from .threads import in_thread

MOST_FILES = 500
"""Files of one series: their names are asked for in one flight, and answered before data moves."""

MOST_BYTES = 256 << 20
"""Bytes of one series, so that an interruption costs little and progress is seen."""

LARGEST_FILE_BYTES = 16 << 20
"""Larger files move by themselves, where more of them is kept when they are cut."""

Completed = Callable[[int], None]
"""Told the index of each file that is done."""


class Pair(NamedTuple):
    """One file here and on the server."""

    here: Path
    there: str
    """Its path on the server."""


@dataclass(slots=True)
class SeriesResult:
    """What a series came to."""

    report: TransferReport | None
    """None if nothing was left to move."""
    failures: dict[int, XftpError] = field(default_factory=dict)
    """Why files were not moved, by their index in what was asked."""


def takes_series(dialogue: Dialogue) -> bool:
    """Tell whether files can be moved as a series: the server has it, and it is not text."""
    has_it = FEATURE in (dialogue.features or {}) and dialogue.pace is Pace.ALL
    return has_it and dialogue.type_code == "I" and dialogue.supports_multiple is not False


async def move_series(
    dialogue: Dialogue,
    direction: Direction,
    pairs: Sequence[Pair],
    *,
    preserve_times: bool = True,
    progress: Progress | None = None,
    completed: Completed = lambda _: None,
) -> SeriesResult:
    """Move files as a series; those of the target that exist are replaced.

    completed: told each file that is there, wholly and verified, when that is known. Raises what
    `move` raises; then those that were not completed were not moved.
    """
    series = _Series(dialogue, direction, pairs, progress, completed)
    series.preserves_times = preserve_times
    return await (series.fetch() if direction == "download" else series.store())


class _Series:
    def __init__(
        self,
        dialogue: Dialogue,
        direction: Direction,
        pairs: Sequence[Pair],
        progress: Progress | None,
        completed: Completed,
    ) -> None:
        self.preserves_times = True
        self._dialogue = dialogue
        self._direction = direction
        self._pairs = pairs
        self._progress = progress
        self._completed = completed
        self._result = SeriesResult(None)
        self._indices: list[int] = []
        """Which of the pairs each file of the series is."""
        self._loop = asyncio.get_running_loop()
        method = choose_method(dialogue)
        is_hash = method is not None and method.verb == "HASH"
        self._algorithm = method.algorithm if method is not None and is_hash else None

    # -- to here -----------------------------------------------------------------------------------

    async def fetch(self) -> SeriesResult:
        wanted = [SeriesFile(pair.there, algorithm=self._algorithm) for pair in self._pairs]
        opened = await self._open(list(enumerate(wanted)))
        try:
            files = self._named(list(enumerate(wanted)), opened.replies)
            if files:
                await self._receive(opened, files)
        finally:
            await opened.release()
        return self._result

    async def _receive(self, opened: Opened, files: list[SeriesFile]) -> None:
        here = self._places()
        target = SeriesTarget(
            files,
            lambda file: _open_target(here[file.path], file),
            self._done,
            sync=self._dialogue.options.sync_downloads,
        )

        async def vouched() -> None:
            """Let the hashes that SERI told stand for the final reply, if all were told."""
            if not all(file.digest is not None for file in files):
                await self._loop.create_future()

        def build(opening: Reply) -> RecordReceiver:
            self._begin(opening, target.layout.total)
            return RecordReceiver(
                opened.channel,
                target,
                target.layout.total,
                limit=rate_limit(self._dialogue),
                progress=self._progress.moved if self._progress else None,
            )

        try:
            command = Command("MRTR", "")
            answer = self._asked(opened, command)
            receiver = await move(
                self._dialogue, command, opened.channel, build, answer, vouched=vouched
            )
            self._result.report = receiver.report()
        finally:
            await in_thread(target.finish)
        for index, error in target.failures.items():
            self._result.failures[self._indices[index]] = error

    def _done(self, index: int) -> None:
        """Tell of a file that got its name; called in a thread."""
        self._loop.call_soon_threadsafe(self._completed, self._indices[index])

    # -- to the server -----------------------------------------------------------------------------

    async def store(self) -> SeriesResult:
        told = await in_thread(self._look_at_all)
        if not told:
            return self._result
        opened = await self._open(told)
        try:
            files = self._named(told, opened.replies)
            if files:
                await self._send(opened, files)
        finally:
            await opened.release()
        return self._result

    def _look_at_all(self) -> list[tuple[int, SeriesFile]]:
        """Find out what the server is told of each file that can be read. Blocks."""
        told = []
        for index, pair in enumerate(self._pairs):
            try:
                told.append((index, self._look_at(pair)))
            except FileError as error:
                self._result.failures[index] = error
        return told

    def _look_at(self, pair: Pair) -> SeriesFile:
        """Find out what the server is told of a file here. Raises FileError. Blocks."""
        source = SourceFile.open(str(pair.here))
        try:
            digest = None
            if self._algorithm is not None and source.size <= LARGEST_BYTES:
                descriptor = source.fileno()
                digest = digest_of(descriptor, str(pair.here), self._algorithm, 0, source.size)
            modified = source.modified if self.preserves_times else None
            algorithm = self._algorithm if digest is not None else None
            return SeriesFile(pair.there, source.size, modified, algorithm, digest)
        finally:
            source.close()

    async def _send(self, opened: Opened, files: list[SeriesFile]) -> None:
        here = self._places()
        source = SeriesSource(files, lambda file: SourceFile.open(str(here[file.path])))

        def build(opening: Reply) -> RecordSender:
            self._begin(opening, source.size)
            return RecordSender(
                opened.channel,
                source,
                limit=rate_limit(self._dialogue),
                progress=self._progress.moved if self._progress else None,
                feeds=opened.feeds,
            )

        command = Command("MSTR", "")
        answer = self._asked(opened, command)
        sender = await move(self._dialogue, command, opened.channel, build, answer)
        self._result.report = sender.report()
        failures = parse_failures(answer.final.result().lines, len(files))
        for number, index in enumerate(self._indices):
            if number in failures:
                code, text = failures[number]
                self._result.failures[index] = reply_error(Reply(code, (text,)), "MSTR")
            else:
                self._completed(index)

    def _places(self) -> dict[str, Path]:
        """Give where each file is here, by its path on the server."""
        return {pair.there: pair.here for pair in self._pairs}

    # -- both --------------------------------------------------------------------------------------

    async def _open(self, files: Sequence[tuple[int, SeriesFile]]) -> Opened:
        """Name the files, and open the data connections, in one flight."""
        way: Way = "RETR" if self._direction == "download" else "STOR"
        names = [Command("SERI", format_argument(way, file)) for _, file in files]
        opened = await open_channel(
            self._dialogue,
            direction=self._direction,
            leading=self._dialogue.type_commands(),
            transfer=Command("MRTR" if way == "RETR" else "MSTR", ""),
            framed=True,
            trailing=names,
        )
        if not opened.framed:
            await opened.release()
            raise PeerError("the server lists SERI, but takes no MPSV or MPRT")
        opened.replies = opened.replies[-len(names) :]
        return opened

    def _asked(self, opened: Opened, command: Command) -> Answer:
        """Give the answer to the command that moves the files, which is sent unless it was."""
        return opened.take_transfer() or self._dialogue.control.send(command)[0]

    def _named(
        self, files: Sequence[tuple[int, SeriesFile]], replies: Sequence[Reply]
    ) -> list[SeriesFile]:
        """Give the files that the server takes, with what it tells of them. Raises PeerError."""
        taken = []
        for (index, file), reply in zip(files, replies, strict=True):
            if not reply.is_positive:
                self._result.failures[index] = reply_error(reply, "SERI")
                continue
            taken.append(self._told(file, reply) if self._direction == "download" else file)
            self._indices.append(index)
        return taken

    def _told(self, file: SeriesFile, reply: Reply) -> SeriesFile:
        """Give a file with the facts of the reply. Raises PeerError."""
        try:
            told = parse_facts(reply.text.partition(" ")[0], file.path)
        except XftpError as error:
            raise PeerError(f"the reply to SERI cannot be read: {error}") from error
        if told.size is None or (told.digest is not None and told.algorithm != file.algorithm):
            raise PeerError("the reply to SERI does not tell what was asked")
        modified = told.modified if self.preserves_times else None
        return told._replace(modified=modified)

    def _begin(self, opening: Reply, total: int) -> None:
        """Check that both sides mean the same files. Raises PeerError."""
        announced = opening_size(opening)
        if announced is not None and announced != total:
            raise PeerError(f"the series has {total} bytes, but the server says {announced}")
        if self._progress is not None:
            self._progress.started(total, 0)


def _open_target(path: Path, file: SeriesFile) -> PartialFile:
    """Open the partial file of `path`. Raises FileError. Blocks."""
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise file_error(error, str(path)) from error
    try:
        target = PartialFile.open(directory, path.name)
    finally:
        os.close(directory)
    identity = Facts(file.size, file.modified).identity
    if (file.size or 0) >= KEPT_FROM_BYTES and identity is not None:
        target.note_source(identity, file.size)
    return target
