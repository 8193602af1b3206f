"""Plain streams over one connection: standard input and output, pipes, devices, listings."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
from pathlib import Path

from xftp.errors import FileError, PeerError, RecordError, file_error
from xftp.protocol.ascii import FromNetwork, ToNetwork
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.plain import PlainReceiver, StreamSender
from xftp.transport.ratelimit import RateLimit
from xftp.transport.report import TransferReport

from .data import open_channel
from .dialogue import Dialogue
from .facts import fact_commands, opening_size, read_facts
from .moving import move
from .progress import Progress
from .verify import StreamVerification

Consume = Callable[[memoryview], object]
"""Takes the next piece; called in a worker thread, in order."""

Produce = Callable[[], bytes | None]
"""Gives the next bytes, b"" at the end, None for "nothing yet, ask again"; called in a worker
thread, where it should not wait longer than a fraction of a second, or an abort waits for it."""

MAX_LISTING_BYTES = 64 * 1024 * 1024
"""The longest listing that is read: an own limit, against endless ones."""

POLL_S = 0.2
"""How long `descriptor_producer` waits for input at a time."""

BLOCK_BYTES = 256 * 1024


def rate_limit(dialogue: Dialogue) -> RateLimit | None:
    """Give the limit for one transfer, if the user wants one."""
    options = dialogue.options
    if options.shared_limit is not None or options.limit_rate is None:
        return options.shared_limit
    return RateLimit(options.limit_rate)


async def download_stream(
    dialogue: Dialogue, remote: str, consume: Consume, progress: Progress | None = None
) -> TransferReport:
    """Fetch `remote` in order over one connection; in ASCII type with this side's line ends."""
    commands = fact_commands(dialogue, remote, with_time=False)
    opened = await open_channel(dialogue, single=True, leading=commands)
    try:
        size = read_facts(commands, opened.replies).size
    except BaseException:
        opened.channel.close()
        raise
    take, finish = text_consumer(consume) if dialogue.type_code == "A" else (consume, None)
    verification: StreamVerification | None = None

    def take_verified(piece: memoryview) -> None:
        if verification is not None:
            verification.take(piece)
        take(piece)

    def ask_early() -> None:
        if verification is not None:
            verification.ask_early()

    def build(opening: Reply) -> PlainReceiver:
        nonlocal verification
        total = expected_size(dialogue, size, opening)
        if progress is not None:
            progress.started(total, 0)
        verification = StreamVerification.begin(dialogue, remote)
        return PlainReceiver(
            opened.channel,
            bounded(take_verified, total),
            total,
            limit=rate_limit(dialogue),
            progress=progress.moved if progress else None,
        )

    retrieve = Command("RETR", remote)
    receiver = await move(dialogue, retrieve, opened.channel, build, at_end=ask_early)
    if finish is not None:
        finish()
    if verification is not None:
        await verification.settle(remote, receiver.file_bytes)
    return receiver.report()


async def upload_stream(
    dialogue: Dialogue, produce: Produce, remote: str, progress: Progress | None = None
) -> TransferReport:
    """Store what `produce` gives as `remote`; in ASCII type with the wire's line ends."""
    if dialogue.type_code == "A":
        produce = text_producer(produce)
    await dialogue.ensure_type()
    opened = await open_channel(dialogue, direction="upload", single=True)
    verification: StreamVerification | None = None

    def produce_verified() -> bytes | None:
        data = produce()
        if data and verification is not None:
            verification.take(memoryview(data))
        return data

    def ask_early() -> None:
        if verification is not None:
            verification.ask_early()

    def build(_: Reply) -> StreamSender:
        nonlocal verification
        if progress is not None:
            progress.started(None, 0)
        verification = StreamVerification.begin(dialogue, remote)
        return StreamSender(
            opened.channel,
            produce_verified,
            limit=rate_limit(dialogue),
            progress=progress.moved if progress else None,
        )

    store = Command("STOR", remote)
    sender = await move(dialogue, store, opened.channel, build, at_end=ask_early)
    if verification is not None:
        await verification.settle(remote, sender.file_bytes)
    return sender.report()


async def fetch_listing(dialogue: Dialogue, command: Command) -> bytes:
    """Fetch what LIST, NLST or MLSD send. Raises PeerError if it is endless."""
    text = bytearray()

    def consume(piece: memoryview, at: int) -> None:
        if at + len(piece) > MAX_LISTING_BYTES:
            raise PeerError("the server sends an endless listing")
        text.extend(piece)

    opened = await open_channel(dialogue, single=True)
    await move(dialogue, command, opened.channel, lambda _: PlainReceiver(opened.channel, consume))
    return bytes(text)


# -- pieces -------------------------------------------------------------------------------------


def expected_size(dialogue: Dialogue, size: int | None, opening: Reply) -> int | None:
    """Give the size of the whole file, from SIZE or else from the 150 reply; None in ASCII type."""
    if dialogue.type_code == "A":
        return None
    return size if size is not None else opening_size(opening)


def bounded(consume: Consume, size: int | None) -> Callable[[memoryview, int], None]:
    """Make a consumer for `PlainReceiver` that takes no more than `size` bytes."""

    def take(piece: memoryview, at: int) -> None:
        if size is not None and at + len(piece) > size:
            raise RecordError(f"the server sends more than the {size} bytes it announced")
        consume(piece)

    return take


def text_consumer(consume: Consume) -> tuple[Consume, Callable[[], None]]:
    """Put the conversion of line ends before `consume`; and what to call at the end."""
    converter = FromNetwork()

    def take(piece: memoryview) -> None:
        consume(memoryview(converter.convert(bytes(piece))))

    def finish() -> None:
        consume(memoryview(converter.finish()))

    return take, finish


def text_producer(produce: Produce) -> Produce:
    """Put the conversion of line ends behind `produce`."""
    converter = ToNetwork()

    def give() -> bytes | None:
        data = produce()
        return converter.convert(data) if data else data

    return give


def descriptor_consumer(descriptor: int, name: str) -> Consume:
    """Write pieces to an open descriptor. The consumer raises FileError."""

    def take(piece: memoryview) -> None:
        while piece:
            try:
                piece = piece[os.write(descriptor, piece) :]
            except OSError as error:
                raise file_error(error, name) from error

    return take


def descriptor_producer(descriptor: int, name: str) -> Produce:
    """Read from an open descriptor, a pipe or a terminal too. The producer raises FileError."""

    def give() -> bytes | None:
        try:
            if not select.select([descriptor], [], [], POLL_S)[0]:
                return None
            return os.read(descriptor, BLOCK_BYTES)
        except OSError as error:
            raise file_error(error, name) from error

    return give


def open_special(path: Path, shown: str, *, for_writing: bool) -> int:
    """Open a device or a pipe. Raises FileError; a pipe needs its reader first."""
    flags = os.O_WRONLY if for_writing else os.O_RDONLY
    try:
        # A pipe must not block here: nobody could interrupt it.
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise file_error(error, shown) from error
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError(f"{shown}: is a socket")
    os.set_blocking(descriptor, True)
    return descriptor
