"""Replies of one line and of several, and what a hostile server may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import PeerError
from xftp.protocol import replies
from xftp.protocol.replies import Reply, ReplyParser, format_reply

STREAMS = [
    (b"200 OK\r\n", [Reply(200, ("OK",))]),
    (b"200 OK\n", [Reply(200, ("OK",))]),
    (b"200 \r\n", [Reply(200, ("",))]),
    (b"200\r\n", [Reply(200, ("",))]),
    (b"631 c2FmZQ==\r\n", [Reply(631, ("c2FmZQ==",))]),
    (b"250 caf\xc3\xa9 \xe9\r\n", [Reply(250, ("café \udce9",))]),
    (b"200 8 data connections available.\r\n", [Reply(200, ("8 data connections available.",))]),
    (
        # RFC 959 section 4.2
        b"123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n"
        b"123 The last line\r\n",
        [
            Reply(
                123,
                (
                    "First line",
                    "Second line",
                    " 234 A line beginning with numbers",
                    "The last line",
                ),
            )
        ],
    ),
    (
        b"211-Features:\r\n MDTM\r\n MLST type*;\r\n211 End\r\n",
        [Reply(211, ("Features:", "MDTM", "MLST type*;", "End"))],
    ),
    (
        b"220-a\n220-b\n220-\n220 c\n331 d\n",
        [Reply(220, ("a", "b", "", "c")), Reply(331, ("d",))],
    ),
    (
        b"220-a\r\n\r\n221 not the end\r\n2200\r\n 220 no\r\n221-no\r\n220\r\n",
        [Reply(220, ("a", "", "221 not the end", "2200", "220 no", "221-no", ""))],
    ),
    (b"", []),
]

BROKEN = [
    b"\r\n",
    b"20 OK\r\n",
    b" 200 OK\r\n",
    b"2000 OK\r\n",
    b"200OK\r\n",
    b"200\tOK\r\n",
    b"000 OK\r\n",
    b"700 OK\r\n",
    b"+20 OK\r\n",
    b"2\xd9\xa00 OK\r\n",
    b"SSH-2.0-OpenSSH\r\n",
    b"HTTP/1.1 400 Bad Request\r\n",
    b"\x00\xff\n",
]

texts = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))
reply_values = st.builds(
    Reply, st.integers(100, 699), st.lists(texts, min_size=1, max_size=6).map(tuple)
)


def parse(*pieces: bytes) -> list[Reply]:
    parser = ReplyParser()
    found = [reply for piece in pieces for reply in parser.feed(piece)]
    parser.close()
    return found


def one_by_one(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


@pytest.mark.parametrize(("stream", "expected"), STREAMS)
def test_replies_are_read_however_they_are_cut(stream: bytes, expected: list[Reply]) -> None:
    assert parse(stream) == expected
    assert parse(*one_by_one(stream)) == expected
    for cut in range(len(stream) + 1):
        assert parse(stream[:cut], stream[cut:]) == expected


@pytest.mark.parametrize("stream", BROKEN)
def test_what_is_no_reply_is_the_fault_of_the_peer(stream: bytes) -> None:
    with pytest.raises(PeerError):
        parse(stream)
    with pytest.raises(PeerError):
        parse(*one_by_one(stream))


@pytest.mark.parametrize("stream", [b"2", b"200 OK", b"200 OK\r", b"200-a\r\n", b"200-a\r\nb"])
def test_a_stream_must_not_end_inside_a_reply(stream: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(stream) == []
    with pytest.raises(PeerError):
        parser.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_longest_line_is_read_and_a_longer_one_is_not(end: bytes) -> None:
    line = b"200 " + b"x" * (replies.MAX_LINE_BYTES - 4)
    assert len(parse(line, end)) == 1
    assert len(parse(line + end)) == 1
    with pytest.raises(PeerError):
        parse(line + b"x" + end)
    with pytest.raises(PeerError):
        parse(line, b"x", end)


def test_a_line_without_end_is_cut_off() -> None:
    parser = ReplyParser()
    with pytest.raises(PeerError):
        for _ in range(replies.MAX_LINE_BYTES + 2):
            parser.feed(b"2")


def test_the_longest_reply_is_read_and_a_longer_one_is_not() -> None:
    line = b"x" * 8191 + b"\n"
    rest = replies.MAX_REPLY_BYTES - len(b"200-") - 7 * 8191 - len(b"200 ")
    assert len(parse(b"200-\n", line * 7, b"y" * rest, b"\n200 \n")) == 1
    with pytest.raises(PeerError):
        parse(b"200-\n", line * 7, b"y" * (rest + 1), b"\n200 \n")


def test_the_most_lines_are_read_and_more_are_not() -> None:
    middle = b"\n" * (replies.MAX_REPLY_LINES - 2)
    assert len(parse(b"200-\n", middle, b"200 \n")[0].lines) == replies.MAX_REPLY_LINES
    with pytest.raises(PeerError):
        parse(b"200-\n", middle, b"\n", b"200 \n")


def test_the_limits_are_those_of_one_reply() -> None:
    long = b"200-\n" + b"\n" * 900 + b"200 " + b"x" * 10000 + b"\n"
    assert len(parse(long * 20)) == 20


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), b"211 \r\n"),
        (("ok",), b"211 ok\r\n"),
        (("a", "b"), b"211-a\r\n211 b\r\n"),
        (("a", "b", " c", "211 d", "e"), b"211-a\r\n b\r\n  c\r\n 211 d\r\n211 e\r\n"),
        (("a\r\n230 in",), b"211 a??230 in\r\n"),
        (("a\0", "b\n211 c", "d\r"), b"211-a?\r\n b?211 c\r\n211 d?\r\n"),
        (("é \udcff",), b"211 \xc3\xa9 \xff\r\n"),
        (("\ud800 \udc0a \udc7f \udfff",), b"211 ? ? ? ?\r\n"),
    ],
)
def test_a_reply_is_written(lines: tuple[str, ...], expected: bytes) -> None:
    assert format_reply(211, *lines) == expected


@pytest.mark.parametrize("code", [0, 99, 700, -200])
def test_what_is_no_code_is_not_written(code: int) -> None:
    with pytest.raises(ValueError, match="not a reply code"):
        format_reply(code, "text")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (150, (True, False, False, False, False)),
        (226, (False, True, False, False, False)),
        (350, (False, False, True, False, False)),
        (425, (False, False, False, True, True)),
        (550, (False, False, False, True, False)),
        (631, (False, False, False, False, False)),
    ],
)
def test_the_first_digit_tells_the_outcome(code: int, expected: tuple[bool, ...]) -> None:
    reply = Reply(code, ("a", "b"))
    assert reply.text == "a\nb"
    assert expected == (
        reply.is_preliminary,
        reply.is_positive,
        reply.is_intermediate,
        reply.is_negative,
        reply.is_transient,
    )


@given(st.lists(reply_values, max_size=4), st.integers(0, 2000))
def test_what_is_written_is_read_back(sent: list[Reply], cut: int) -> None:
    stream = b"".join(format_reply(reply.code, *reply.lines) for reply in sent)
    assert parse(stream[:cut], stream[cut:]) == sent


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_any_text_is_one_reply_of_as_many_lines(lines: list[str]) -> None:
    (reply,) = parse(format_reply(250, *lines))
    assert reply.code == 250
    assert len(reply.lines) == max(1, len(lines))


@given(st.lists(st.one_of(st.binary(), st.sampled_from([b"200", b"-", b" ", b"\r", b"\n"]))))
def test_nothing_but_a_peer_error_comes_out(pieces: list[bytes]) -> None:
    parser = ReplyParser()
    try:
        for piece in pieces:
            for reply in parser.feed(piece):
                assert 100 <= reply.code <= 699
        parser.close()
    except PeerError:
        return
    assert b"".join(pieces).endswith(b"\n") or not any(pieces)
