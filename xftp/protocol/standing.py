"""The standing port: one port of the server for the data connections of all sessions.

greeting      welcome SP "Data port" SP port "."        docs/protocol.md
FEAT          SP "MPSV" SP "Port=" port ";"
command       "MPSV" SP token                           token = 32 hex digits, drawn by the client
connection    "XFTP" SP token CRLF, then what goes over any other
"""

from __future__ import annotations

import re
import secrets

from xftp.errors import ArgumentError

_TOKEN_BYTES = 16
"""Nobody guesses 128 random bits."""

_TOKEN = re.compile(r"[0-9a-f]{32}")
_CALL = re.compile(rb"XFTP ([0-9a-f]{32})\r\n")
_IN_GREETING = re.compile(r" Data port ([0-9]{1,5})\.$")
_IN_FEATURE = re.compile(r"(?:^|;)Port=([0-9]{1,5});")

CALL_BYTES = len("XFTP ") + 2 * _TOKEN_BYTES + len("\r\n")
"""What each data connection on the standing port begins with."""


def new_token() -> str:
    """Draw what tells whose data connections are."""
    return secrets.token_hex(_TOKEN_BYTES)


def parse_token(argument: str) -> str:
    """Read the argument of MPSV. Raises ArgumentError."""
    if not _TOKEN.fullmatch(argument):
        raise ArgumentError(f"A token has {2 * _TOKEN_BYTES} digits of 0-9 and a-f.")
    return argument


def format_call(token: str) -> bytes:
    """Write the beginning of a data connection."""
    return f"XFTP {token}\r\n".encode("ascii")


def parse_call(data: bytes) -> str | None:
    """Read the token from the beginning of a data connection; None: it is none."""
    found = _CALL.fullmatch(data)
    return None if found is None else found[1].decode("ascii")


def format_greeting(welcome: str, port: int | None) -> str:
    """Write the text of the greeting; port: None if there is no standing port."""
    return welcome if port is None else f"{welcome} Data port {port}."


def port_of_greeting(text: str) -> int | None:
    """Read the standing port from a greeting; None: it tells none."""
    return _port(_IN_GREETING.search(text))


def format_feature(port: int) -> str:
    """Write the line of FEAT."""
    return f"MPSV Port={port};"


def port_of_feature(parameters: str) -> int | None:
    """Read the standing port from the parameters of MPSV in FEAT; None: they tell none."""
    return _port(_IN_FEATURE.search(parameters))


def _port(found: re.Match[str] | None) -> int | None:
    port = int(found[1]) if found is not None else 0
    return port if 0 < port < 65536 else None
