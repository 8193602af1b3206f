"""Command lines, Telnet among them, and what a hostile client may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError
from xftp.protocol.commands import BadLine, Command, CommandParser, format_command

BAD = "bad"

STREAMS: list[tuple[bytes, list[Command | str]]] = [
    (b"MULT\r\n", [Command("MULT", "")]),
    (b"mult\n", [Command("MULT", "")]),
    (
        b"MPRT IP4|TCP|132.235.34.34|2345,6789,1212\r\nMPSV\r\n",  # Allman B.2.2, B.2.3
        [Command("MPRT", "IP4|TCP|132.235.34.34|2345,6789,1212"), Command("MPSV", "")],
    ),
    (b"RETR a b\r\n", [Command("RETR", "a b")]),
    (b"RETR  a \r\n", [Command("RETR", " a ")]),
    (b"RETR \r\n", [Command("RETR", "")]),
    (b"RETR \t\r\n", [Command("RETR", "\t")]),
    (b"\r\n\n\r\nNOOP\r\n", [Command("NOOP", "")]),
    (b"STOR caf\xc3\xa9 \xe9\r\n", [Command("STOR", "café \udce9")]),
    (b"ABCDEFGHIJKLMNOP\r\n", [Command("ABCDEFGHIJKLMNOP", "")]),
    (b"ABCDEFGHIJKLMNOPQ\r\n", [BAD]),
    (b" NOOP\r\n", [BAD]),
    (b"   \r\n", [BAD]),
    (b"NOOP\t\r\n", [BAD]),
    (b"N0OP\r\n", [Command("N0OP", "")]),
    (b"N\xc3\x96P\r\nQUIT\r\n", [BAD, Command("QUIT", "")]),
    (b"RETR a\r\0b\r\n", [BAD]),
    (b"RETR a\0b\r\n", [BAD]),
    (b"RETR a\rb\n", [BAD]),
    (b"RETR a\r\r\n", [BAD]),
    (b"\0\r\n", []),  # in Telnet NUL is no operation
    # Telnet, RFC 854
    (b"\xff\xf4\xff\xf2ABOR\r\n", [Command("ABOR", "")]),
    (b"AB\xff\xf1OR\r\n", [Command("ABOR", "")]),
    (b"\xff\xfb\x01\xff\xfc\xff\xff\xfd\n\xff\xfe\rNOOP\r\n", [Command("NOOP", "")]),
    (b"RETR \xff\xff\r\n", [Command("RETR", "\udcff")]),
    (b"RETR \xff\xff\xff\xff\r\n", [Command("RETR", "\udcff\udcff")]),
    (b"RETR \xff\xff\xf4\r\n", [Command("RETR", "\udcff\udcf4")]),
    (b"RETR \xffa\r\n", [Command("RETR", "\udcffa")]),
    (b"RETR a\xff\r\n", [Command("RETR", "a\udcff")]),
    (b"RETR a\xff\n", [Command("RETR", "a\udcff")]),
    (b"RETR \xff\xef\r\n", [Command("RETR", "\udcff\udcef")]),
    (b"RETR \xff\xf0\xff\xfaa\r\n", [BAD]),  # not another file
    (b"RETR bad\xff\xfe\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),  # the CR is its option
    (b"RETR bad\xff\xf4\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),
    (b"\xff\xf4\r\n", []),
    (b"", []),
]

verbs = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=16)
# Bytes of a name that are no line end.
arguments = st.binary().map(
    lambda data: data.translate(None, b"\r\n\0").decode("utf-8", "surrogateescape")
)


def parse(*pieces: bytes, max_line_bytes: int = 8192) -> list[Command | str]:
    parser = CommandParser(max_line_bytes)
    found = [line for piece in pieces for line in parser.feed(piece)]
    assert parser.pending_bytes == 0
    return [BAD if isinstance(line, BadLine) else line for line in found]


def one_by_one(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


@pytest.mark.parametrize(("stream", "expected"), STREAMS)
def test_commands_are_read_however_they_are_cut(
    stream: bytes, expected: list[Command | str]
) -> None:
    assert parse(stream) == expected
    assert parse(*one_by_one(stream)) == expected
    for cut in range(len(stream) + 1):
        assert parse(stream[:cut], stream[cut:]) == expected


def test_a_bad_line_says_why() -> None:
    reasons = [
        line.reason
        for line in CommandParser(8).feed(b"RETR a\0\n12\nRETR abcdefgh\n")
        if isinstance(line, BadLine)
    ]
    assert reasons == [
        "a command line holds a CR, a NUL or a command of Telnet (255 is sent twice)",
        "a command is 1 to 16 letters and digits",
        "a command line is longer than 8 bytes",
    ]


LONG_LINES: list[tuple[bytes, list[Command | str]]] = [
    (b"RETR abc\n", [Command("RETR", "abc")]),
    (b"RETR abc\r\n", [Command("RETR", "abc")]),
    (b"\xff\xf1" * 99 + b"RETR abc\r\n", [Command("RETR", "abc")]),
    (b"RETR ab\xff\xff\r\n", [Command("RETR", "ab\udcff")]),
    (b"RETR abcd\nNOOP\n", [BAD, Command("NOOP", "")]),
    (b"RETR abcd\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),
    (b"RETR abc\rd\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),
    (b"RETR abc\r\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),
    (b"RETR " + b"x" * 99 + b"\r\n\r\nNOOP\r\n", [BAD, Command("NOOP", "")]),
    (b"x" * 99 + b"\n" + b"y" * 99 + b"\nNOOP\n", [BAD, BAD, Command("NOOP", "")]),
]


@pytest.mark.parametrize(("stream", "expected"), LONG_LINES)
def test_a_long_line_is_refused_once_however_it_is_cut(
    stream: bytes, expected: list[Command | str]
) -> None:
    assert parse(stream, max_line_bytes=8) == expected
    assert parse(*one_by_one(stream), max_line_bytes=8) == expected
    for cut in range(len(stream) + 1):
        assert parse(stream[:cut], stream[cut:], max_line_bytes=8) == expected


def test_an_endless_line_is_refused_at_once_and_not_kept() -> None:
    parser = CommandParser()
    found = [line for _ in range(100) for line in parser.feed(b"x" * 1000)]
    assert [type(line) for line in found] == [BadLine]
    assert parser.pending_bytes == 0
    assert parser.feed(b"\r\nNOOP\r\n") == [Command("NOOP", "")]


def test_the_bytes_of_an_unfinished_line_are_counted() -> None:
    parser = CommandParser()
    counts = []
    for piece in (b"NO", b"\xff", b"\xfb", b"\x01", b"OP", b"\r", b"\n"):
        parser.feed(piece)
        counts.append(parser.pending_bytes)
    assert counts == [2, 3, 4, 3, 5, 6, 0]


@pytest.mark.parametrize(
    ("verb", "argument", "expected"),
    [
        ("MULT", "", b"MULT\r\n"),
        (
            "MPRT",
            "IP4|TCP|132.235.34.34|2345,6789,1212",
            b"MPRT IP4|TCP|132.235.34.34|2345,6789,1212\r\n",
        ),
        ("RETR", " a ", b"RETR  a \r\n"),
        ("RETR", "é\udcff", b"RETR \xc3\xa9\xff\r\n"),
    ],
)
def test_a_command_is_written(verb: str, argument: str, expected: bytes) -> None:
    assert format_command(verb, argument) == expected


def test_a_name_that_telnet_would_change_is_written_twice_or_not_at_all() -> None:
    for after in range(0xF0, 0x100):
        name = bytes([0xFF, after]).decode("utf-8", "surrogateescape")
        with pytest.raises(ArgumentError, match="Telnet"):
            format_command("DELE", f"bad{name}")
    assert format_command("PASS", "\udcff\udcfe") == b"PASS \xff\xfe\r\n"
    assert format_command("DELE", "a\udcff\udcfe", doubles=True) == b"DELE a\xff\xff\xfe\r\n"


@pytest.mark.parametrize("argument", ["a\rb", "a\nDELE b", "a\0b", "\n", "\ud800", "\udc0a"])
def test_what_would_end_the_line_is_not_written(argument: str) -> None:
    with pytest.raises(ArgumentError):
        format_command("RETR", argument)
    with pytest.raises(ArgumentError):
        format_command(f"RETR{argument}")


@given(st.lists(st.tuples(verbs, arguments), max_size=4), st.integers(0, 300))
def test_what_is_written_is_read_back(sent: list[tuple[str, str]], cut: int) -> None:
    stream = b"".join(format_command(verb, argument, doubles=True) for verb, argument in sent)
    assert parse(stream[:cut], stream[cut:]) == [Command(*command) for command in sent]


pieces_of_telnet = st.sampled_from([b"\xff", b"\xf4", b"\xfb", b"\r", b"\n", b"\0", b" ", b"NOOP"])


@given(st.lists(st.one_of(st.binary(), pieces_of_telnet)))
def test_any_bytes_are_read_the_same_however_they_are_cut(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    cut_parser, whole_parser, single_parser = CommandParser(8), CommandParser(8), CommandParser(8)
    cut_found = [line for piece in pieces for line in cut_parser.feed(piece)]
    assert cut_found == whole_parser.feed(stream)
    assert cut_found == [b for piece in one_by_one(stream) for b in single_parser.feed(piece)]
    assert cut_parser.pending_bytes == whole_parser.pending_bytes == single_parser.pending_bytes
    assert cut_parser.pending_bytes <= 8 + len(b"\r") + len(b"\xff\xfb")
