"""Tells other protocols from FTP by the first bytes of a control connection.

A browser can be made to send an HTTP request, or a TLS handshake, to an FTP port, with commands of
the attacker's choice in its body: Brinkmann et al., ALPACA (USENIX Security 2021), section 5. None
of the words below is an FTP command, so whoever begins with one is no FTP client.
"""

from __future__ import annotations

import re

OPENING_BYTES = 16
"""So many bytes, at most, decide."""

_WORDS = {
    "HTTP": ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI"),
    "SMTP": ("EHLO", "HELO", "LHLO"),
    "RTSP": ("DESCRIBE", "SETUP", "ANNOUNCE"),
    "SIP": ("INVITE", "REGISTER"),
    "the PROXY protocol": ("PROXY",),
}
"""First words of requests: RFC 9110 section 9, RFC 9113 section 3.4, RFC 5321, RFC 2033, RFC 7826,
RFC 3261."""

_PREFIXES = {
    b"\x16\x03": "TLS",  # RFC 8446 section 5.1: a handshake record
    b"SSH-": "SSH",  # RFC 4253 section 4.2
    b"\0": "a binary protocol",  # PROXY version 2 among them, behind two empty lines
    b"<": "XML",
    b"*": "RESP",
    b"{": "JSON",
}

_BY_WORD = {word.encode(): name for name, words in _WORDS.items() for word in words}
_WORD = re.compile(rb"[A-Za-z]+(?=[ \r\n])")


class Opening:
    """Looks at the first bytes of a control connection, however they are cut."""

    def __init__(self) -> None:
        self._seen = b""
        self._is_decided = False

    def feed(self, data: bytes) -> str | None:
        """Take received bytes; give the name of the protocol that they begin, if not FTP."""
        if self._is_decided:
            return None
        line = (self._seen + data).lstrip(b"\r\n")  # empty lines are no first line
        self._seen = line = line[:OPENING_BYTES]
        found = other_protocol(line)
        self._is_decided = len(line) == OPENING_BYTES or b"\n" in line or b" " in line
        return found


def other_protocol(opening: bytes) -> str | None:
    """Name the protocol that the first bytes belong to; None if they may be FTP."""
    for prefix, name in _PREFIXES.items():
        if opening.startswith(prefix):
            return name
    found = _WORD.match(opening)
    return None if found is None else _BY_WORD.get(found[0].upper())
