"""The PROXY protocol, versions 1 and 2: how a load balancer tells whose connection it hands on.

    version 1 = "PROXY" SP family SP source SP destination SP port SP port CRLF    section 2.1
    version 2 = signature (12), version and command, family, length (2), addresses  section 2.2

The PROXY protocol, Willy Tarreau, HAProxy Technologies, 2020/03/05.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from xftp.errors import PeerError

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
"""Begins version 2 (section 2.2)."""

HEAD_BYTES = 16
"""The fixed part of version 2. The shortest line of version 1, `PROXY UNKNOWN CRLF`, has 15."""

MOST_LINE_BYTES = 107
"""The longest line of version 1, with its end (section 2.1)."""

MOST_ADDRESS_BYTES = 1024
"""What follows the head of version 2 at most: addresses, and values that are not read. The field
would allow 65,535; balancers send some tens."""

_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_ADDRESSES = {_TCP4: struct.Struct(">4s4sHH"), _TCP6: struct.Struct(">16s16sHH")}
_FAMILIES = {b"TCP4": 4, b"TCP6": 6}


@dataclass(frozen=True, slots=True)
class Proxied:
    """The two ends of the connection that the client made to the balancer."""

    source_host: str
    source_port: int
    destination_host: str
    destination_port: int


def line_is_version_1(head: bytes) -> bool:
    """Tell the versions apart by the first bytes. Raises PeerError if they are of neither."""
    if head.startswith(b"PROXY "):
        return True
    if head.startswith(SIGNATURE):
        return False
    raise PeerError("a connection of a load balancer does not begin with a PROXY header")


def parse_line(line: bytes) -> Proxied | None:
    """Read version 1, without line end; None if the balancer does not know. Raises PeerError."""
    words = line.split(b" ")
    if words[:2] == [b"PROXY", b"UNKNOWN"]:
        return None
    if len(words) != 6 or words[0] != b"PROXY" or words[1] not in _FAMILIES:
        raise PeerError("the PROXY line is malformed")
    version = _FAMILIES[words[1]]
    source, destination = (_address(word, version) for word in words[2:4])
    return Proxied(source, _port(words[4]), destination, _port(words[5]))


def _address(word: bytes, version: int) -> str:
    if b"%" in word:  # a zone, which may be any text, means something on its own node only
        raise PeerError("the PROXY line holds an address with a zone")
    try:
        address = ipaddress.ip_address(word.decode("ascii"))
    except ValueError as error:
        raise PeerError("the PROXY line holds a malformed address") from error
    if address.version != version:
        raise PeerError("the PROXY line holds an address of another family")
    return str(address)


def _port(word: bytes) -> int:
    if not word.isdigit() or len(word) > 5 or int(word) > 0xFFFF:
        raise PeerError("the PROXY line holds a malformed port")
    return int(word)


def rest_bytes(head: bytes) -> int:
    """Tell how much follows the head of version 2. Raises PeerError."""
    if len(head) != HEAD_BYTES or not head.startswith(SIGNATURE):
        raise PeerError("the PROXY header is malformed")
    if head[12] not in (_LOCAL, _PROXY):
        raise PeerError("the PROXY header is of an unknown version or command")
    (length,) = struct.unpack(">H", head[14:])
    if length > MOST_ADDRESS_BYTES:
        raise PeerError("the PROXY header is too long")
    return int(length)


def parse_binary(head: bytes, rest: bytes) -> Proxied | None:
    """Read version 2, checked by `rest_bytes`; None for a connection of the balancer's own.

    Raises PeerError.
    """
    layout = _ADDRESSES.get(head[13])
    if head[12] == _LOCAL or layout is None:
        return None
    if len(rest) < layout.size:
        raise PeerError("the PROXY header is cut")
    source, destination, source_port, destination_port = layout.unpack_from(rest)
    return Proxied(
        str(ipaddress.ip_address(source)),
        source_port,
        str(ipaddress.ip_address(destination)),
        destination_port,
    )
