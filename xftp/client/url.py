"""FTP URLs: ftp://user:password@host:port/path;type=a (RFC 1738 section 3.2, RFC 3986).

With ftpes:// the session is protected by TLS that the client asks for (explicit, RFC 4217), with
ftps:// by TLS from the first byte on (implicit, with a port of its own). Neither is in an RFC; they
mean this to most clients.

A path is relative to the login directory; an absolute one is written with %2F (RFC 1738 section
3.2.2), and with a second slash, as most clients allow. "?" and "#" have no meaning in FTP and
belong to the path.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote

from xftp.errors import ArgumentError

DEFAULT_PORT = 21
"""The control port (RFC 959 section 8)."""

IMPLICIT_TLS_PORT = 990
"""The control port with TLS from the first byte on (ftps, IANA)."""

Scheme = Literal["ftp", "ftpes", "ftps"]
"""How the session is protected: not, unless the user asks for it; by explicit TLS; by implicit."""

SCHEMES: tuple[Scheme, ...] = ("ftp", "ftpes", "ftps")
DEFAULT_PORTS: dict[Scheme, int] = {
    "ftp": DEFAULT_PORT,
    "ftpes": DEFAULT_PORT,
    "ftps": IMPLICIT_TLS_PORT,
}

TypeCode = Literal["a", "i", "d"]
"""How the path is to be fetched: as text, as it is, or as a listing (RFC 1738 section 3.2.2)."""

_TYPE = re.compile(r"(.*);type=([aid])", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LINE_ENDS = re.compile("[\r\n\0]")
_PORT = re.compile(r"[0-9]{1,5}")
_HOST_NAME = re.compile(r"[^\s/?#@\[\]:%\\]+")


@dataclass(frozen=True, slots=True)
class FtpUrl:
    """One server, and a path on it. `str` gives the URL without the password."""

    host: str
    """A name or a literal address, IPv6 without brackets."""

    port: int = DEFAULT_PORT
    """1 to 65535."""

    user: str | None = None
    """None: not given."""

    password: str | None = field(default=None, repr=False)
    """None: not given."""

    path: str = ""
    """As it is sent to the server, bytes that are not UTF-8 as surrogate escapes; "" names the
    login directory."""

    type: TypeCode | None = None
    """None: not given."""

    scheme: Scheme = "ftp"
    """What stands before "://"."""

    def __str__(self) -> str:
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port != DEFAULT_PORTS[self.scheme] else ""
        absolute = "%2F" if self.path.startswith("/") else ""
        path = quote(self.path.removeprefix("/"), safe="/", errors="surrogateescape")
        return f"{self.scheme}://{user}{host}{port}/{absolute}{path}" + (
            f";type={self.type}" if self.type else ""
        )


def parse_url(text: str) -> FtpUrl:
    """Read a URL of one of `SCHEMES`. Raises ArgumentError, whose message shows no password."""
    typed, separator, rest = text.partition("://")
    scheme = next((known for known in SCHEMES if known == typed.lower()), None)
    if not separator or scheme is None:
        raise ArgumentError("expected a URL like ftp://host/path, ftpes://… or ftps://…")
    if _CONTROL.search(rest):
        raise ArgumentError("a URL cannot hold control characters")
    authority, _, path = rest.partition("/")
    login, at, place = authority.rpartition("@")
    user, colon, password = login.partition(":")
    host, port = _parse_place(place, DEFAULT_PORTS[scheme])
    path, type_code = _split_type(path)
    return FtpUrl(
        host=host,
        port=port,
        user=_decode(user) if at and user else None,
        password=_decode(password) if colon else None,
        path=_decode(path),
        type=type_code,
        scheme=scheme,
    )


def _parse_place(place: str, default_port: int) -> tuple[str, int]:
    """Read host[:port] or [IPv6][:port]."""
    if place.startswith("["):
        literal, closed, port = place[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ArgumentError("expected [address]:port in the URL")
        return _ipv6(_decode(literal)), _parse_port(port.removeprefix(":"), default_port)
    host, _, port = place.partition(":")
    if not _HOST_NAME.fullmatch(host):
        raise ArgumentError("the URL holds no valid host name")
    return host, _parse_port(port, default_port)


def _ipv6(literal: str) -> str:
    try:
        return str(ipaddress.IPv6Address(literal))
    except ValueError as error:
        raise ArgumentError("the URL holds no valid IPv6 address") from error


def _parse_port(port: str, default: int) -> int:
    if not port:
        return default
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise ArgumentError("the port of the URL is not a number from 1 to 65535")
    return int(port)


def _split_type(path: str) -> tuple[str, TypeCode | None]:
    found = _TYPE.fullmatch(path)
    if found is None:
        return path, None
    code = found[2].lower()
    return found[1], "a" if code == "a" else "i" if code == "i" else "d"


def _decode(text: str) -> str:
    if _BAD_PERCENT.search(text):
        raise ArgumentError('a "%" of the URL is not followed by two digits (write it as %25)')
    decoded = unquote(text, errors="surrogateescape")
    if _LINE_ENDS.search(decoded):
        raise ArgumentError("a line end or NUL cannot be sent in a command")
    return decoded
