"""Other protocols are told by their first bytes, FTP is never taken for one."""

from __future__ import annotations

import pytest

from xftp.protocol.strangers import Opening, other_protocol

STRANGERS = {
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP",
    b"get / HTTP/1.0\r\n": "HTTP",
    b"\r\n\r\nPOST /x HTTP/1.1\r\n": "HTTP",
    b"OPTIONS * HTTP/1.1\r\n": "HTTP",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "HTTP",
    b"EHLO\r\n": "SMTP",
    b"HELO there\r\n": "SMTP",
    b"SSH-2.0-x\r\n": "SSH",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03": "TLS",
    b"PROXY TCP4 192.0.2.1 192.0.2.2 1 21\r\n": "the PROXY protocol",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c": "a binary protocol",
}

FTP = [
    b"USER anonymous\r\n",
    b"user x\n",
    b"\r\nAUTH TLS\r\n",
    b"FEAT\r\n",
    b"OPTS UTF8 ON\r\n",
    b"HELP\r\n",
    b"GETX y\r\n",
    b"\xff\xf4\xff\xf2ABOR\r\n",
    b"PASS GET / HTTP/1.1\r\n",
    b"PASV\r\nGET / HTTP/1.1\r\n",
]


@pytest.mark.parametrize(("data", "name"), STRANGERS.items())
def test_strangers(data: bytes, name: str) -> None:
    assert Opening().feed(data) == name


@pytest.mark.parametrize("data", FTP)
def test_ftp(data: bytes) -> None:
    assert Opening().feed(data) is None


@pytest.mark.parametrize(("data", "name"), STRANGERS.items())
def test_strangers_in_pieces(data: bytes, name: str) -> None:
    for cut in range(len(data)):
        opening = Opening()
        found = [opening.feed(data[:cut]), opening.feed(data[cut:])]
        assert name in found
    opening = Opening()
    assert name in [opening.feed(bytes((byte,))) for byte in data]


@pytest.mark.parametrize("data", FTP)
def test_ftp_in_pieces(data: bytes) -> None:
    opening = Opening()
    assert {opening.feed(bytes((byte,))) for byte in data} == {None}


def test_only_the_first_line_counts() -> None:
    opening = Opening()
    assert opening.feed(b"NOOP\r\n") is None
    assert opening.feed(b"GET / HTTP/1.1\r\n") is None
    assert other_protocol(b"") is None
