"""MULT, FEAT and OPTS."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError
from xftp.protocol import options
from xftp.protocol.options import MultOptions
from xftp.protocol.replies import ReplyParser, format_reply


def test_the_recommended_limits_are_those_of_the_thesis() -> None:
    assert (options.MULT_DEFAULT_CONNECTIONS, options.MULT_LIMIT) == (4, 8)  # Allman B.5


# -- MULT -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16 data connections available.", 16),  # Allman B.2.1
        ("8 data connections available.", 8),
        ("Up to 12 connections", 12),
        ("0 data connections available.", 0),
        ("999999999", 999_999_999),
        ("Command OK.", None),
        ("", None),
        ("\u0661\u0666 data connections available.", None),
        ("² data connections available.", None),
        ("1" * 10 + " data connections available.", None),
        ("1" * 9000, None),
    ],
)
def test_the_reply_to_mult_is_read(text: str, expected: int | None) -> None:
    assert options.parse_mult_reply(text) == expected


def test_the_reply_to_mult_is_written() -> None:
    assert options.format_mult_reply(16) == "16 data connections available."  # Allman B.2.1


@given(st.integers(0, 10**9 - 1))
def test_a_limit_is_read_back(limit: int) -> None:
    assert options.parse_mult_reply(options.format_mult_reply(limit)) == limit


# -- FEAT -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ("Features:", "MDTM", " mlst type*;size*;", "REST STREAM ", "MULT  8", "", "End"),
            {"MDTM": "", "MLST": "type*;size*;", "REST": "STREAM", "MULT": "8"},
        ),
        (
            ("Features", "AUTH TLS", "AUTH SSL", "UTF8", "UTF8", "END"),
            {"AUTH": "TLS;SSL", "UTF8": ""},
        ),
        (("No features",), {}),
        (("Features", "End"), {}),
        ((), {}),
    ],
)
def test_features_are_read(lines: tuple[str, ...], expected: dict[str, str]) -> None:
    assert options.parse_feat(lines) == expected


def test_features_are_written_as_lines_of_a_reply() -> None:
    lines = options.format_feat([("MULT", "8"), ("UTF8", "")])
    assert lines == ("Features:", "MULT 8", "UTF8", "End")
    assert format_reply(211, *lines) == b"211-Features:\r\n MULT 8\r\n UTF8\r\n211 End\r\n"


def test_no_features_are_one_line() -> None:
    assert format_reply(211, *options.format_feat([])) == b"211 No features\r\n"


visible = st.characters(min_codepoint=33, max_codepoint=126)
features = st.dictionaries(
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", min_size=1), st.text(visible), max_size=5
)


@given(features)
def test_features_are_read_back(sent: dict[str, str]) -> None:
    (reply,) = ReplyParser().feed(format_reply(211, *options.format_feat(list(sent.items()))))
    assert options.parse_feat(reply.lines) == sent


# -- OPTS -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("MULT Connections=8;", ("MULT", "Connections=8;")),
        ("UTF8 ON", ("UTF8", "ON")),
        ("utf8 on", ("UTF8", "on")),
        ("MLST type;size;", ("MLST", "type;size;")),
        ("MLST", ("MLST", "")),
        ("MLST ", ("MLST", "")),
    ],
)
def test_opts_is_split(argument: str, expected: tuple[str, str]) -> None:
    assert options.parse_opts(argument) == expected


@pytest.mark.parametrize("argument", ["", " ", " MLST", "=1", "ÜTF8 ON", "MLST\ttype;", "8"])
def test_opts_without_a_feature_is_refused(argument: str) -> None:
    with pytest.raises(ArgumentError):
        options.parse_opts(argument)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", (MultOptions(), ())),
        ("Connections=8;", (MultOptions(connections=8), ())),
        ("connections=8", (MultOptions(connections=8), ())),
        ("CONNECTIONS=999999999;", (MultOptions(connections=999_999_999), ())),
        ("Connections=08;", (MultOptions(connections=8), ())),
        ("Colour=red;Connections=3;x=;", (MultOptions(connections=3), ("Colour", "x"))),
        ("Colour=a=b", (MultOptions(), ("Colour",))),
        (
            "Congestion=xftp_hybla;InitialWindow=33;Rate=50000000;"
            "SendBuffer=4000000;ReceiveBuffer=8000000;",
            (MultOptions(None, "xftp_hybla", 33, 50_000_000, 4_000_000, 8_000_000), ()),
        ),
    ],
)
def test_mult_options_are_read(
    argument: str, expected: tuple[MultOptions, tuple[str, ...]]
) -> None:
    assert options.parse_mult_options(argument) == expected


@pytest.mark.parametrize(
    "argument",
    [
        ";",
        "Connections",
        "Connections;",
        "=8;",
        "Connections=;",
        "Connections=0;",
        "Connections=-1;",
        "Connections=+8;",
        "Connections= 8;",
        "Connections=8 ;",
        " Connections=8;",
        "Connections=1_0;",
        "Connections=\u0668;",
        "Connections=8.0;",
        "Connections=8;;",
        ";Connections=8;",
        "Connections=8;;x=1;",
        "Connections=8;connections=8;",
        "x=1;X=2;",
        "ключ=1;",
        "Connections=" + "9" * 5000,
        "Congestion=;",
        "Congestion=a b;",
        "Congestion=0123456789abcdef;",
        "InitialWindow=0;",
        "Rate=50mbit;",
        "Rate=0;",
        "Rate=1000000000000000;",
        "SendBuffer=4MB;",
        "ReceiveBuffer=-1;",
    ],
)
def test_malformed_mult_options_are_refused(argument: str) -> None:
    with pytest.raises(ArgumentError):
        options.parse_mult_options(argument)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(MultOptions(), ""), (MultOptions(connections=8), "Connections=8;")],
)
def test_mult_options_are_written(value: MultOptions, expected: str) -> None:
    assert options.format_mult_options(value) == expected


def up_to(digits: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, 10**digits - 1)


@given(
    st.builds(
        MultOptions,
        connections=up_to(9),
        congestion=st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,15}", fullmatch=True),
        initial_window_segments=up_to(9),
        rate_bps=up_to(15),
        send_buffer_bytes=up_to(15),
        receive_buffer_bytes=up_to(15),
    )
)
def test_mult_options_are_read_back(sent: MultOptions) -> None:
    assert options.parse_mult_options(options.format_mult_options(sent)) == (sent, ())


@given(
    st.one_of(st.text(), st.text("Conetis=;0123\u0668 "), st.text().map("Connections={}".format))
)
def test_nothing_but_an_argument_error_comes_out(argument: str) -> None:
    try:
        found, _ = options.parse_mult_options(argument)
    except ArgumentError:
        return
    assert found.connections is None or found.connections >= 1
