"""The control connection: command lines, replies, and the first bytes of strangers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.fuzz.pieces import cut
from xftp.errors import PeerError
from xftp.protocol.commands import BadLine, Command, CommandParser, format_command
from xftp.protocol.replies import (
    MAX_LINE_BYTES,
    MAX_REPLY_BYTES,
    MAX_REPLY_LINES,
    Reply,
    ReplyParser,
    format_reply,
)
from xftp.protocol.strangers import Opening, other_protocol

_MOST_LINE_BYTES = 48
_TELNET_BYTES = 2
"""A Telnet sequence that is cut: held beside the line."""

_VERB = re.compile(r"[A-Z][A-Z0-9]{0,15}")
_CONTROL = re.compile("[\r\n\0]")


def commands(data: bytes) -> None:
    """However a stream is cut, it holds the same commands, and each is one that can be sent."""
    stream, pieces = cut(data)
    whole = CommandParser(_MOST_LINE_BYTES).feed(stream)
    parser = CommandParser(_MOST_LINE_BYTES)
    found: list[Command | BadLine] = []
    for piece in pieces:
        found += parser.feed(piece)
        assert parser.pending_bytes <= _MOST_LINE_BYTES + 1 + _TELNET_BYTES
    assert found == whole
    assert len(whole) <= stream.count(b"\n") + 1
    for command in whole:
        if isinstance(command, Command):
            _check_command(command)


def _check_command(command: Command) -> None:
    assert _VERB.fullmatch(command.verb)
    assert not _CONTROL.search(command.argument)
    line = format_command(command.verb, command.argument, doubles=True)
    assert line.count(b"\n") == 1
    assert CommandParser(len(line)).feed(line) == [command]


def replies(data: bytes) -> None:
    """However a stream is cut, it holds the same replies, up to the same error."""
    stream, pieces = cut(data)
    by_byte, is_broken = _replies(stream[at : at + 1] for at in range(len(stream)))
    found, is_broken_too = _replies(pieces)
    # What was complete in the piece that holds the error is lost with it.
    assert is_broken == is_broken_too
    assert found == by_byte[: len(found)] and (is_broken or len(found) == len(by_byte))
    for reply in found:
        _check_reply(reply)


def _replies(pieces: Iterable[bytes]) -> tuple[list[Reply], bool]:
    parser, found = ReplyParser(), []
    try:
        for piece in pieces:
            found += parser.feed(piece)
    except PeerError:
        return found, True
    return found, False


def _check_reply(reply: Reply) -> None:
    assert 100 <= reply.code <= 699
    assert 1 <= len(reply.lines) <= MAX_REPLY_LINES
    assert all(
        len(line.encode("utf-8", "surrogateescape")) <= MAX_LINE_BYTES for line in reply.lines
    )
    assert sum(map(len, reply.lines)) <= MAX_REPLY_BYTES
    sent = format_reply(reply.code, *reply.lines)
    if len(sent) < MAX_LINE_BYTES:
        lines = tuple(_CONTROL.sub("?", line) for line in reply.lines)
        assert ReplyParser().feed(sent) == [Reply(reply.code, lines)]


def opening(data: bytes) -> None:
    """Another protocol is known by its first bytes, however they are cut, and FTP is not one."""
    stream, pieces = cut(data)
    whole = Opening().feed(stream)
    watcher = Opening()
    found = [name for piece in pieces if (name := watcher.feed(piece)) is not None]
    assert found[:1] == ([whole] if whole is not None else [])
    if re.match(rb"(?i)(?:USER|AUTH|FEAT|HOST|OPTS|NOOP|QUIT|SYST|MULT)(?:[ \r\n]|\Z)", stream):
        assert whole is None and other_protocol(stream) is None
