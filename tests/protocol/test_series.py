"""Series: the lines, and where each file lies in the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError, FileError, PeerError
from xftp.protocol.series import (
    Layout,
    SeriesFile,
    format_argument,
    format_facts,
    format_failure,
    parse_argument,
    parse_facts,
    parse_failures,
)


@pytest.mark.parametrize(
    ("line", "way", "file"),
    [
        ("RETR Hash=SHA-256; a/b", "RETR", SeriesFile("a/b", algorithm="SHA-256")),
        ("RETR  a", "RETR", SeriesFile("a")),
        ("retr   lead", "RETR", SeriesFile(" lead")),
        (
            "STOR Size=5;Modify=19700101000001;Hash=MD5:0123456789abcdef; x y",
            "STOR",
            SeriesFile("x y", 5, 1.0, "MD5", "0123456789abcdef"),
        ),
        ("STOR size=0;Colour=red; a;b", "STOR", SeriesFile("a;b", 0)),
    ],
)
def test_arguments(line: str, way: str, file: SeriesFile) -> None:
    assert parse_argument(line) == (way, file)
    assert parse_argument(format_argument(way, file)) == (way, file)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "RETR",
        "RETR a",
        "RETR Size=1;",
        "APPE Size=1; a",
        "STOR  a",
        "STOR Size=-1; a",
        "STOR Size=9223372036854775808; a",
        "STOR Size=1;Size=2; a",
        "STOR Size; a",
        "STOR Size=1;Modify=yesterday; a",
        "STOR Size=1;Hash=MD5:xyz; a",
        "STOR Size=1;Hash=M/5; a",
    ],
)
def test_what_is_malformed(line: str) -> None:
    with pytest.raises(ArgumentError):
        parse_argument(line)


def test_the_reply() -> None:
    file = SeriesFile("a", 51_200, 1.0, "CRC32", "0a1b2c3d")
    assert format_facts(file) == "Size=51200;Modify=19700101000001;Hash=CRC32:0a1b2c3d;"
    assert parse_facts(format_facts(file), "a") == file


def test_failures() -> None:
    lines = ("Series moved:", format_failure(0, FileError("a\nb")), format_failure(12, FileError()))
    assert parse_failures((*lines, "End."), 13) == {0: (550, "a?b"), 12: (550, "")}
    assert parse_failures(("Series complete.",), 1) == {}


@pytest.mark.parametrize("line", ["13 550 beyond", "x 550 no", "1", "1 226 good"])
def test_failures_that_cannot_be_read(line: str) -> None:
    with pytest.raises(PeerError):
        parse_failures(("Series moved:", line, "End."), 13)


@given(sizes=st.lists(st.integers(0, 5), max_size=8), data=st.data())
def test_every_byte_belongs_to_one_file(sizes: list[int], data: st.DataObject) -> None:
    layout = Layout(sizes)
    owners = [(index, at) for index, size in enumerate(sizes) for at in range(size)]
    assert layout.total == len(owners)
    start = data.draw(st.integers(0, layout.total))
    end = data.draw(st.integers(start, layout.total))
    found = [
        (index, at + step)
        for index, at, count in layout.spans(start, end - start)
        for step in range(count)
    ]
    assert found == owners[start:end]
