"""Machine-readable listings, times, and the lines of LIST."""

from __future__ import annotations

import calendar
import stat
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError, FileNameError, PeerError, XftpError
from xftp.protocol import listings
from xftp.protocol.listings import Entry


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def time_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the test in several local time zones."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


# -- times ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("time_zone")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("19700101000000", 0.0),
        ("19980615100045", 897_904_845.0),  # RFC 3659 section 3.3
        ("19980615100045.014", 897_904_845.014),
        ("20240229120000", 1_709_208_000.0),
        ("19691231235959.5", -0.5),
        ("00010101000000", -62_135_596_800.0),
        ("99991231235959", 253_402_300_799.0),
        ("19981231235960", 915_148_800.0),  # a leap second
    ],
)
def test_a_time_is_read(text: str, expected: float) -> None:
    assert listings.parse_time_val(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024022912000",
        "202402291200000",
        "20230229120000",
        "20240231120000",
        "20241301120000",
        "20240001120000",
        "20240100120000",
        "20240101240000",
        "20240101126000",
        "20240101120061",
        "00000101000000",
        "20240101120000.",
        "20240101120000,5",
        "20240101120000Z",
        "20240101120000\n",
        " 20240101120000",
        "+2024010112000",
        "\u0662\u0660\u0662\u0664\u0660\u0661\u0660\u0661\u0661\u0662\u0660\u0660\u0660\u0660",
        "2024-01-01T12:00:00",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        listings.parse_time_val(text)


@pytest.mark.usefixtures("time_zone")
@pytest.mark.parametrize(
    ("unix_time", "expected"),
    [
        (0, "19700101000000"),
        (897_904_845.999, "19980615100045"),
        (-0.5, "19691231235959"),
        (-62_135_596_800, "00010101000000"),
        (253_402_300_799.5, "99991231235959"),
    ],
)
def test_a_time_is_written(unix_time: float, expected: str) -> None:
    assert listings.format_time_val(unix_time) == expected


@pytest.mark.parametrize(
    "unix_time",
    [-62_135_596_801, 253_402_300_800, 1e18, 1e300, float("inf"), float("-inf"), float("nan")],
)
def test_a_time_outside_the_calendar_is_not_written(unix_time: float) -> None:
    with pytest.raises(ArgumentError):
        listings.format_time_val(unix_time)


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_a_time_is_read_back_and_agrees_with_the_calendar(unix_time: int) -> None:
    text = listings.format_time_val(unix_time)
    assert listings.parse_time_val(text) == unix_time
    fields = [int(text[:4]), *(int(text[at : at + 2]) for at in range(4, 14, 2))]
    if fields[0] >= 1970:
        assert calendar.timegm((*fields, 0, 0, 0)) == unix_time


# -- MLSD and MLST ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Type=file;Size=1024990;Modify=19980615100045;Perm=r; cap60.pl198.tar.gz",
            Entry(
                "cap60.pl198.tar.gz",
                "file",
                1_024_990,
                897_904_845.0,
                {
                    "type": "file",
                    "size": "1024990",
                    "modify": "19980615100045",
                    "perm": "r",
                },
            ),
        ),
        ("TYPE=DIR; a b ", Entry("a b ", "dir", None, None, {"type": "DIR"})),
        ("type=cdir;  x", Entry(" x", "cdir", None, None, {"type": "cdir"})),
        ("type=pdir; ..", Entry("..", "pdir", None, None, {"type": "pdir"})),
        (
            "type=OS.unix=slink:/a; b",
            Entry("b", "link", None, None, {"type": "OS.unix=slink:/a"}),
        ),
        ("type=os.unix=symlink; b", Entry("b", "link", None, None, {"type": "os.unix=symlink"})),
        ("type=OS.unix=chr-1/3; b", Entry("b", "other", None, None, {"type": "OS.unix=chr-1/3"})),
        ("type=OS.unix=slinky; b", Entry("b", "other", None, None, {"type": "OS.unix=slinky"})),
        (" name", Entry("name", "other", None, None, {})),
        ("unique=; n;m=1", Entry("n;m=1", "other", None, None, {"unique": ""})),
        ("type=file;size=0 n", Entry("n", "file", 0, None, {"type": "file", "size": "0"})),
    ],
)
def test_an_entry_is_read(line: str, expected: Entry) -> None:
    assert listings.parse_mlsx_line(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "name",
        "type=file;",
        "type=file; ",
        "type; n",
        "=file; n",
        "; n",
        "type=file;; n",
        "size=; n",
        "size=-1; n",
        "size=+1; n",
        "size=1_0; n",
        "size=\u0661; n",
        "size=1.5; n",
        f"size={'9' * 5000}; n",
        "modify=; n",
        "modify=20230229120000; n",
        "-rw-r--r-- 1 owner group 5 Jan 1 00:00 n",
    ],
)
def test_a_malformed_entry_is_the_fault_of_the_peer(line: str) -> None:
    with pytest.raises(PeerError):
        listings.parse_mlsx_line(line)


def test_an_entry_is_written() -> None:
    line = listings.format_mlsx_line({"type": "file", "size": "5"}, " a b")
    assert line == "type=file;size=5;  a b"
    assert listings.format_mlsx_line({}, "/a") == " /a"


@pytest.mark.parametrize(
    "facts", [{"": "x"}, {"a b": "x"}, {"a=b": "x"}, {"a;b": "x"}, {"a": "x;"}, {"a": "x\n"}]
)
def test_a_fact_that_would_break_the_line_is_not_written(facts: dict[str, str]) -> None:
    with pytest.raises(ArgumentError):
        listings.format_mlsx_line(facts, "name")


BROKEN_NAMES = ["", "a\nb", "a\rb", "a\0b", "\n"]


@pytest.mark.parametrize("name", BROKEN_NAMES)
def test_a_name_that_would_break_the_line_is_not_written(name: str) -> None:
    with pytest.raises(FileNameError):
        listings.format_mlsx_line({"type": "file"}, name)
    with pytest.raises(FileNameError):
        listings.format_list_line(name, stat.S_IFREG, 1, "o", "g", 0, 0.0, 0.0)


visible = st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=";=")
facts = st.dictionaries(
    st.text(visible, min_size=1).map(lambda name: "x." + name.lower()), st.text(visible)
)
names = st.text(st.characters(exclude_characters="\r\n\0"), min_size=1)


@given(facts, names, st.integers(0, 2**64 - 1), st.integers(0, 2**32))
def test_an_entry_is_read_back(more: dict[str, str], name: str, size: int, modified: int) -> None:
    sent = {**more, "type": "file", "size": str(size)}
    sent["modify"] = listings.format_time_val(modified)
    entry = listings.parse_mlsx_line(listings.format_mlsx_line(sent, name))
    assert entry == Entry(name, "file", size, float(modified), sent)


@given(
    st.one_of(st.text(), st.text("typesizmodf=;0129 .\u0669"), st.text().map("size={}; n".format))
)
def test_nothing_but_a_peer_error_comes_out(line: str) -> None:
    try:
        entry = listings.parse_mlsx_line(line)
    except XftpError as error:
        assert type(error) is PeerError
        return
    assert line.endswith(" " + entry.name)


# -- LIST -------------------------------------------------------------------------------------

NOW = 1_763_726_400.0  # 2025-11-21 12:00:00 UTC


@pytest.mark.usefixtures("time_zone")
@pytest.mark.parametrize(
    ("modified", "expected"),
    [
        (NOW, "Nov 21 12:00"),
        (NOW - 60.5, "Nov 21 11:58"),
        (NOW - listings.RECENT_S + 1, "May 22 21:05"),
        (NOW - listings.RECENT_S, "May 22  2025"),
        (NOW + 1, "Nov 21  2025"),
        (0.0, "Jan  1  1970"),
        (-62_135_596_800.0, "Jan  1     1"),
    ],
)
def test_a_date_has_a_time_or_a_year(modified: float, expected: str) -> None:
    line = listings.format_list_line("n", stat.S_IFREG, 1, "o", "g", 5, modified, NOW)
    assert line.endswith(f" 5 {expected} n")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (stat.S_IFREG | 0o644, "-rw-r--r--"),
        (stat.S_IFDIR | 0o1777, "drwxrwxrwt"),
        (stat.S_IFLNK | 0o777, "lrwxrwxrwx"),
    ],
)
def test_a_line_has_the_columns_of_ls(mode: int, expected: str) -> None:
    line = listings.format_list_line("a  b ", mode, 12, "root", "Domain Users", 2**40, NOW, NOW)
    columns = line.split(None, 8)
    assert columns[:5] == [expected, "12", "root", "Domain_Users", "1099511627776"]
    assert line.endswith(" Nov 21 12:00 a  b ")


def test_a_missing_owner_keeps_its_column() -> None:
    line = listings.format_list_line("n", stat.S_IFREG, 1, "", " ", 5, NOW, NOW)
    assert line.split()[2:5] == ["-", "-", "5"]


def test_months_are_english_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> str:
        raise AssertionError("a locale was asked")

    monkeypatch.setattr(time, "strftime", refuse)
    dates = [
        listings.format_list_line("n", stat.S_IFREG, 1, "o", "g", 5, month * 2_629_746.0, NOW)
        for month in range(12)
    ]
    months = " ".join(line.split()[5] for line in dates)
    assert months == "Jan Jan Mar Apr May Jun Jul Aug Sep Oct Nov Dec"


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "...", ".a", "a b", " ", "\\", "é", "\udcff", "a:b", "-rf"])
def test_names_that_are_safe(name: str) -> None:
    assert listings.safe_name(name)


@pytest.mark.parametrize("name", [*BROKEN_NAMES, ".", "..", "/", "a/b", "/etc", "../x", "a/"])
def test_names_that_are_not_safe(name: str) -> None:
    assert not listings.safe_name(name)
