import pytest

from xftp.client.url import FtpUrl, parse_url
from xftp.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ftp://h", FtpUrl("h")),
        ("ftp://h/", FtpUrl("h")),
        ("FTP://Host.example/a", FtpUrl("Host.example", path="a")),
        ("ftp://h/a/b", FtpUrl("h", path="a/b")),
        ("ftp://h/a/", FtpUrl("h", path="a/")),
        ("ftp://h/%2Fa/b", FtpUrl("h", path="/a/b")),
        ("ftp://h//a", FtpUrl("h", path="/a")),
        ("ftp://h:2121/a", FtpUrl("h", 2121, path="a")),
        ("ftp://h:/a", FtpUrl("h", path="a")),
        ("ftp://u@h/", FtpUrl("h", user="u")),
        ("ftp://u:@h/", FtpUrl("h", user="u", password="")),
        ("ftp://u:p%40%3a@h/", FtpUrl("h", user="u", password="p@:")),
        ("ftp://u:p@q@h/", FtpUrl("h", user="u", password="p@q")),
        ("ftp://u:p:q@h/", FtpUrl("h", user="u", password="p:q")),
        ("ftp://@h/", FtpUrl("h")),
        ("ftp://[::1]/a", FtpUrl("::1", path="a")),
        ("ftp://[2001:DB8::1]:21212", FtpUrl("2001:db8::1", 21212)),
        ("ftp://[fe80::1%25lo]/", FtpUrl("fe80::1%lo")),
        ("ftp://h/a;type=a", FtpUrl("h", path="a", type="a")),
        ("ftp://h/a;TYPE=I", FtpUrl("h", path="a", type="i")),
        ("ftp://h/a;type=x", FtpUrl("h", path="a;type=x")),
        ("ftp://h/a%3Btype=a", FtpUrl("h", path="a;type=a")),
        ("ftp://h/what?#1", FtpUrl("h", path="what?#1")),
        ("ftp://h/a b", FtpUrl("h", path="a b")),
        ("ftp://h/%C3%A4", FtpUrl("h", path="ä")),
        ("ftp://h/ä", FtpUrl("h", path="ä")),
        ("ftp://h/%ff", FtpUrl("h", path="\udcff")),
        ("ftp://h/100%25", FtpUrl("h", path="100%")),
        ("ftpes://h/a", FtpUrl("h", path="a", scheme="ftpes")),
        ("FTPS://h/a", FtpUrl("h", 990, path="a", scheme="ftps")),
        ("ftps://h:21/a", FtpUrl("h", 21, path="a", scheme="ftps")),
        ("ftps://[::1]", FtpUrl("::1", 990, scheme="ftps")),
    ],
)
def test_urls_are_read(text: str, expected: FtpUrl) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h/a",
        "http://h/a",
        "ftpss://h/a",
        "ftp:/h/a",
        "ftp://",
        "ftp:///a",
        "ftp://u:secret@/a",
        "ftp://h h/",
        "ftp://h:x/",
        "ftp://h:0/",
        "ftp://h:65536/",
        "ftp://h:-1/",
        "ftp://h?x",
        "ftp://[::1/",
        "ftp://[::g]/",
        "ftp://[::1]x/",
        "ftp://::1/",
        "ftp://h/%",
        "ftp://h/%4",
        "ftp://h/%zz",
        "ftp://h/a%0d%0aDELE%20b",
        "ftp://h/a%00",
        "ftp://h/a\r\nDELE b",
        "ftp://u%0aUSER:secret@h/",
        "ftp://u:secret%0a@h/",
    ],
)
def test_what_is_no_url_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_url(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://h/",
        "ftp://u@h/a/b",
        "ftp://u@h:2121/%2Fa%20b",
        "ftp://[::1]:2121/%FF%25;type=a",
        "ftpes://u@h/a",
        "ftps://h/a",
        "ftps://h:21/a",
    ],
)
def test_a_url_is_written_as_it_was_read(text: str) -> None:
    assert str(parse_url(text)) == text


def test_a_password_is_never_shown() -> None:
    url = parse_url("ftp://u:secret@h/a")
    assert "secret" not in str(url) + repr(url) + f"{url}"
    assert url.password == "secret"
