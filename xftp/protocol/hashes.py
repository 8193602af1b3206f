"""Hashes of files over the control connection: HASH, RANG, and the older X commands.

HASH reply    "213 " name SP first "-" last SP digest SP path     draft-bryan-ftpext-hash-02
FEAT line     "HASH " name *( ";" name ), a star behind the one in force
RANG          first SP last, both of them included; "1 0": the whole file again
                                                                  draft-bryan-ftp-range-08
XCRC, XMD5 …  path, or quoted path [ SP first [ SP end ] ]; the reply holds the digest. Nowhere
              specified; as ProFTPD's mod_digest reads them, the end is not included
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from xftp.errors import ArgumentError, PeerError

DIGEST_BITS = {
    "BLAKE3": 256,
    "SHA-256": 256,
    "SHA-512": 512,
    "SHA-1": 160,
    "MD5": 128,
    "CRC32": 32,
}
"""Hashes by the names of the wire (IANA's hash function textual names, and two that are not among
them); in the order in which they are preferred."""

X_COMMANDS = {
    "XSHA256": "SHA-256",
    "XSHA512": "SHA-512",
    "XSHA1": "SHA-1",
    "XSHA": "SHA-1",
    "XMD5": "MD5",
    "XCRC": "CRC32",
}
"""The commands of before HASH, and what each computes; in the order in which they are preferred."""

_LARGEST = 2**63 - 1
_RANG = re.compile(r"([0-9]{1,19}) ([0-9]{1,19})")
_REPLY = re.compile(
    r"([A-Za-z0-9-]+) ([0-9]{1,19})-([0-9]{1,19}) ([0-9A-Fa-f]+)(?: .*)?", re.DOTALL
)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?: ([0-9]{1,19})(?: ([0-9]{1,19}))?)?')
_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]+(?![0-9A-Za-z])")


class ByteRange(NamedTuple):
    """The bytes from `start` up to and without `end`."""

    start: int
    """Offset of the first byte."""

    end: int
    """Offset behind the last byte."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.end - self.start


class HashReply(NamedTuple):
    """What a 213 reply to HASH tells."""

    algorithm: str
    """Name of the hash, upper case."""

    first: int
    """Offset of the first byte that was hashed."""

    last: int
    """Offset of the last byte that was hashed; 0 if there was none."""

    digest: str
    """In hexadecimal, lower case."""


def parse_rang(argument: str) -> ByteRange | None:
    """Read the argument of RANG; None: the whole file again. Raises ArgumentError."""
    found = _RANG.fullmatch(argument)
    if found is None:
        raise ArgumentError("RANG takes the offsets of a first and a last byte.")
    first, last = int(found[1]), int(found[2])
    if (first, last) == (1, 0):
        return None
    if first > last or last >= _LARGEST:
        raise ArgumentError("RANG: the last byte is not before the first.")
    return ByteRange(first, last + 1)


def format_rang(wanted: ByteRange | None) -> str:
    """Write the argument of RANG."""
    return "1 0" if wanted is None else f"{wanted.start} {wanted.end - 1}"


def format_hash_feature(names: Sequence[str], in_force: str) -> str:
    """Write the FEAT line of HASH."""
    return "HASH " + ";".join(f"{name}*" if name == in_force else name for name in names)


def parse_hash_feature(parameters: str) -> tuple[tuple[str, ...], str | None]:
    """Read the parameters of the FEAT line of HASH: names, upper case, and the one in force."""
    words = [word.strip().upper() for word in parameters.split(";")]
    in_force = next((word.rstrip("*") for word in words if word.endswith("*")), None)
    return tuple(word.rstrip("*") for word in words if word.rstrip("*")), in_force


def format_hash_reply(algorithm: str, hashed: ByteRange, digest: str, path: str) -> str:
    """Write the text of a 213 reply to HASH. Of no bytes at all the last one is called 0."""
    return f"{algorithm} {hashed.start}-{max(hashed.end - 1, 0)} {digest} {path}"


def parse_hash_reply(text: str) -> HashReply:
    """Read the text of a 213 reply to HASH. Raises PeerError."""
    found = _REPLY.fullmatch(text.strip())
    if found is None:
        raise PeerError("the reply to HASH cannot be read")
    algorithm, digest = found[1].upper(), found[4].lower()
    _check_length(algorithm, digest)
    return HashReply(algorithm, int(found[2]), int(found[3]), digest)


def parse_x_argument(argument: str) -> tuple[str, int, int | None]:
    """Read the argument of XCRC and the like: path, first byte, end (None: that of the file).

    Only behind a quoted path offsets can be told from the words of a name. Raises ArgumentError.
    """
    if not argument.startswith('"'):
        return argument, 0, None
    found = _QUOTED.fullmatch(argument)
    if found is None or not found[1]:
        raise ArgumentError('expected "path" and perhaps two offsets')
    start, end = int(found[2] or 0), int(found[3]) if found[3] else None
    if end is not None and end < start:
        raise ArgumentError("the end is before the start")
    return found[1].replace('""', '"'), start, end


def parse_x_reply(text: str, algorithm: str) -> str:
    """Find the digest in the reply to XCRC and the like. Raises PeerError if there is none.

    Servers put words around it, and leave leading zeros of a CRC away.
    """
    digits = DIGEST_BITS[algorithm] // 4
    for word in _HEX.findall(text):
        if len(word) == digits or (algorithm == "CRC32" and len(word) < digits):
            return str(word.lower().zfill(digits))
    raise PeerError(f"the reply holds no {algorithm}")


def _check_length(algorithm: str, digest: str) -> None:
    bits = DIGEST_BITS.get(algorithm)
    if bits is not None and len(digest) * 4 != bits:
        raise PeerError(f"the reply to HASH holds no {algorithm}")
