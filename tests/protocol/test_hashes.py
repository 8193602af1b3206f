"""HASH, RANG and the X commands: what is written, what is read, what is refused."""

from __future__ import annotations

import pytest

from xftp.errors import ArgumentError, PeerError
from xftp.protocol.hashes import (
    ByteRange,
    format_hash_feature,
    format_hash_reply,
    format_rang,
    parse_hash_feature,
    parse_hash_reply,
    parse_rang,
    parse_x_argument,
    parse_x_reply,
)

SHA1 = "6dbd1b2ae2ff2d6a0b1ab9c9d5b1dd5a4ddc51a3"


@pytest.mark.parametrize(
    ("argument", "wanted"),
    [("0 0", ByteRange(0, 1)), ("5 9", ByteRange(5, 10)), ("1 0", None), ("1 1", ByteRange(1, 2))],
)
def test_rang(argument: str, wanted: ByteRange | None) -> None:
    assert parse_rang(argument) == wanted
    assert format_rang(wanted) == argument


@pytest.mark.parametrize(
    "argument", ["", "5", "5 4", "-1 5", "a b", "1 2 3", "5  9", "0 9223372036854775807", "٣ ٤"]
)
def test_bad_rang(argument: str) -> None:
    with pytest.raises(ArgumentError):
        parse_rang(argument)


def test_feature() -> None:
    line = format_hash_feature(["SHA-256", "MD5"], "MD5")
    assert line == "HASH SHA-256;MD5*"
    assert parse_hash_feature("SHA-256;MD5*") == (("SHA-256", "MD5"), "MD5")
    assert parse_hash_feature("sha-512; crc32*;") == (("SHA-512", "CRC32"), "CRC32")
    assert parse_hash_feature("") == ((), None)


def test_reply() -> None:
    text = format_hash_reply("SHA-1", ByteRange(10, 50), SHA1, "a file")
    assert text == f"SHA-1 10-49 {SHA1} a file"
    found = parse_hash_reply(text)
    assert (found.algorithm, found.first, found.digest) == ("SHA-1", 10, SHA1)
    assert format_hash_reply("CRC32", ByteRange(0, 0), "00000000", "x") == "CRC32 0-0 00000000 x"
    assert parse_hash_reply(f"sha-1 0-49 {SHA1.upper()}").digest == SHA1


@pytest.mark.parametrize(
    "text", ["", "SHA-1", "SHA-1 0-49", f"SHA-1 {SHA1} x", f"SHA-1 0-49 {SHA1}0 x", "SHA-1 0-4 xyz"]
)
def test_bad_reply(text: str) -> None:
    with pytest.raises(PeerError):
        parse_hash_reply(text)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("file", ("file", 0, None)),
        ("my file 1 2", ("my file 1 2", 0, None)),
        ('"my file"', ("my file", 0, None)),
        ('"my ""file"""', ('my "file"', 0, None)),
        ('"file" 5', ("file", 5, None)),
        ('"file" 5 10', ("file", 5, 10)),
    ],
)
def test_x_argument(argument: str, found: tuple[str, int, int | None]) -> None:
    assert parse_x_argument(argument) == found


@pytest.mark.parametrize("argument", ['"', '""', '"a" x', '"a" 5 4', '"a"5', '"a" 1 2 3', '"a'])
def test_bad_x_argument(argument: str) -> None:
    with pytest.raises(ArgumentError):
        parse_x_argument(argument)


@pytest.mark.parametrize(
    ("text", "algorithm", "digest"),
    [
        ("CBF43926", "CRC32", "cbf43926"),
        ("1A2B", "CRC32", "00001a2b"),
        (SHA1.upper(), "SHA-1", SHA1),
        (f'"file" {SHA1}', "SHA-1", SHA1),
        (f"XSHA1 {SHA1} OK", "SHA-1", SHA1),
    ],
)
def test_x_reply(text: str, algorithm: str, digest: str) -> None:
    assert parse_x_reply(text, algorithm) == digest


@pytest.mark.parametrize(("text", "algorithm"), [("", "CRC32"), ("done", "MD5"), (SHA1, "MD5")])
def test_bad_x_reply(text: str, algorithm: str) -> None:
    with pytest.raises(PeerError):
        parse_x_reply(text, algorithm)
