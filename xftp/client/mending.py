"""One range of a file moved again, over one plain connection: RANG and RETR, or RANG and STOR.

draft-bryan-ftp-range-08. Storing a range into a file that exists is our own (docs/protocol.md).
"""

from __future__ import annotations

import os

from xftp.errors import VerifyError
from xftp.protocol.commands import Command
from xftp.protocol.hashes import ByteRange, format_rang
from xftp.protocol.replies import Reply
from xftp.transport.files import SourceFile
from xftp.transport.partial import PartialFile
from xftp.transport.plain import PlainReceiver, PlainSender

from .data import open_channel
from .dialogue import Dialogue, reply_error
from .moving import move
from .streams import bounded, rate_limit


async def fetch_range(
    dialogue: Dialogue, path: str, target: PartialFile, wanted: ByteRange
) -> None:
    """Fetch a range of a remote file into its place. Raises VerifyError, and as `move`."""
    end = wanted.start

    def write(piece: memoryview) -> None:
        nonlocal end
        end += target.write([piece], end)

    await dialogue.ensure_type("I")
    opened = await open_channel(dialogue, single=True)
    try:
        await _choose_range(dialogue, wanted)

        def build(_: Reply) -> PlainReceiver:
            return PlainReceiver(
                opened.channel,
                bounded(write, wanted.size),
                wanted.size,
                patience=target.patience,
                limit=rate_limit(dialogue),
            )

        await move(dialogue, Command("RETR", path), opened.channel, build)
    finally:
        await opened.release()


async def store_range(dialogue: Dialogue, path: str, source: SourceFile, wanted: ByteRange) -> None:
    """Store a range of a file into its place in a remote one. Raises as `fetch_range`."""
    part = SourceFile(os.dup(source.fileno()), source.name)
    part.size = wanted.end
    try:
        await dialogue.ensure_type("I")
        opened = await open_channel(dialogue, direction="upload", single=True)
        try:
            await _choose_range(dialogue, wanted)

            def build(_: Reply) -> PlainSender:
                return PlainSender(opened.channel, part, wanted.start, limit=rate_limit(dialogue))

            await move(dialogue, Command("STOR", path), opened.channel, build)
        finally:
            await opened.release()
    finally:
        part.close()


async def _choose_range(dialogue: Dialogue, wanted: ByteRange) -> None:
    reply = await dialogue.ask("RANG", format_rang(wanted))
    if not reply.is_intermediate:
        raise VerifyError(str(reply_error(reply, "RANG")))
