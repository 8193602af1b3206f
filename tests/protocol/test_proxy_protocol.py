"""PROXY headers, versions 1 and 2, against the examples of the protocol's text and bad ones."""

from __future__ import annotations

import ipaddress
import struct

import pytest

from xftp.errors import PeerError
from xftp.protocol.proxy_protocol import (
    SIGNATURE,
    Proxied,
    line_is_version_1,
    parse_binary,
    parse_line,
    rest_bytes,
)


def test_lines() -> None:
    # The example of section 2.1.
    line = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443"
    assert parse_line(line) == Proxied("192.168.0.1", 56324, "192.168.0.11", 443)
    line = b"PROXY TCP6 2001:DB8::1 ::1 65535 0"
    assert parse_line(line) == Proxied("2001:db8::1", 65535, "::1", 0)
    assert parse_line(b"PROXY UNKNOWN") is None
    assert parse_line(b"PROXY UNKNOWN ffff:f...f:ffff 65535") is None


@pytest.mark.parametrize(
    "line",
    [
        b"PROXY",
        b"PROXY TCP4",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 1",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 65536",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 -1 443",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 +1 443",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 \xd9\xa1 443",
        b"PROXY TCP4 192.168.0.1 192.168.0.11  443",
        b"PROXY TCP4 2001:db8::1 ::1 1 443",
        b"PROXY TCP6 192.168.0.1 192.168.0.11 1 443",
        b"PROXY TCP4 192.168.0.01 192.168.0.11 1 443",
        b"PROXY TCP4 localhost 192.168.0.11 1 443",
        b"PROXY UDP4 192.168.0.1 192.168.0.11 1 443",
    ],
)
def test_bad_lines(line: bytes) -> None:
    with pytest.raises(PeerError):
        parse_line(line)


def binary(command: int, family: int, rest: bytes) -> tuple[bytes, bytes]:
    return SIGNATURE + struct.pack(">BBH", command, family, len(rest)), rest


def test_binary() -> None:
    source, destination = (ipaddress.ip_address(each) for each in ("192.0.2.1", "192.0.2.2"))
    rest = source.packed + destination.packed + struct.pack(">HH", 1234, 21)
    for more in (b"", b"\x04\0\x01x"):
        head, sent = binary(0x21, 0x11, rest + more)
        assert rest_bytes(head) == len(sent)
        assert parse_binary(head, sent) == Proxied("192.0.2.1", 1234, "192.0.2.2", 21)
    source, destination = (ipaddress.ip_address(each) for each in ("2001:db8::1", "::1"))
    head, sent = binary(0x21, 0x21, source.packed + destination.packed + b"\0\x01\0\x02")
    assert parse_binary(head, sent) == Proxied("2001:db8::1", 1, "::1", 2)


def test_binary_of_the_balancer_itself() -> None:
    for command, family in ((0x20, 0x00), (0x20, 0x11), (0x21, 0x00), (0x21, 0x31)):
        head, rest = binary(command, family, b"\0" * 12)
        assert parse_binary(head, rest) is None


@pytest.mark.parametrize(
    "head",
    [
        binary(0x22, 0x11, b"")[0],
        binary(0x11, 0x11, b"")[0],
        binary(0x21, 0x11, b"\0" * 1025)[0],
        binary(0x21, 0x11, b"")[0][:-1],
        b"\0" * 16,
    ],
)
def test_bad_binary(head: bytes) -> None:
    with pytest.raises(PeerError):
        rest_bytes(head)


def test_cut_addresses() -> None:
    for family, size in ((0x11, 11), (0x21, 35)):
        with pytest.raises(PeerError):
            parse_binary(*binary(0x21, family, b"\0" * size))


def test_versions() -> None:
    assert line_is_version_1(b"PROXY UNKNOWN\r\n")
    assert not line_is_version_1(SIGNATURE + b"\x21\x11\0")
    for other in (b"USER anonymous\r", b"", b"PROXYX", SIGNATURE[:-1]):
        with pytest.raises(PeerError):
            line_is_version_1(other)
