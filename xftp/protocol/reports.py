"""What the server's sockets had in a transfer: the reply to SITE REPORT (docs/protocol.md).

    reply       = "211-" text CRLF SP transfer CRLF *(SP connection CRLF) "211 " text CRLF
    transfer    = "Transfer" SP *( key "=" value ";" )
    connection  = "Connection" SP *( key "=" value ";" )

Keys are of any case; those that are not known, and lines that begin with another word, are passed
over, so that old clients get along with new servers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from xftp.errors import PeerError

FEATURE = ("SITE", "REPORT")
"""Its line in FEAT."""

MAX_CONNECTIONS = 256
"""More lines than that are no report of one transfer."""

MAX_LINE_CHARACTERS = 1024
_MAX_DIGITS = 18
"""Longer numbers are a mistake or an attack."""

_PAIR = re.compile(r"([A-Za-z][A-Za-z0-9]{0,31})=([^;=\s]{1,64})")
_NUMBER = re.compile(rf"[0-9]{{1,{_MAX_DIGITS}}}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_DIRECTIONS = ("sent", "received")
_Kind = TypeVar("_Kind")


class ReportedConnection(NamedTuple):
    """One data connection as the server saw it; None: it could not tell."""

    number: int
    """From 0, in the order in which the server got them."""

    bytes: int
    """Bytes on this connection, sequence numbers included."""

    congestion: str | None = None
    """Congestion-control algorithm."""

    initial_window_segments: int | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None

    pacing_rate_bps: int | None = None
    """The most payload that the socket sends, bits per second; None: no limit, or not known."""

    rtt_us: int | None = None
    """Smoothed round-trip time at the end."""

    min_rtt_us: int | None = None
    """The least round-trip time that was seen."""

    retransmits: int | None = None
    """Segments that the server sent again."""

    delivery_rate_bps: int | None = None
    """The kernel's latest estimate of what reaches the other side (tcp_info)."""


class ReportedTransfer(NamedTuple):
    """A finished transfer as the server saw it."""

    direction: str
    """ "sent" or "received", seen from the server."""

    bytes: int
    """Of the file, without sequence numbers."""

    duration_us: int
    """From the first connection to the end of the data."""

    connections: tuple[ReportedConnection, ...] = ()


_TRANSFER_KEYS = {"Direction": "direction", "Bytes": "bytes", "Duration": "duration_us"}

_CONNECTION_KEYS = {
    "Number": "number",
    "Bytes": "bytes",
    "Congestion": "congestion",
    "InitialWindow": "initial_window_segments",
    "SendBuffer": "send_buffer_bytes",
    "ReceiveBuffer": "receive_buffer_bytes",
    "Pacing": "pacing_rate_bps",
    "RTT": "rtt_us",
    "MinRTT": "min_rtt_us",
    "Retransmits": "retransmits",
    "DeliveryRate": "delivery_rate_bps",
}


def format_report(report: ReportedTransfer) -> tuple[str, ...]:
    """Write the lines of a 211 reply to SITE REPORT, for `format_reply`, which indents them."""
    return (
        "Report of the last transfer:",
        f"Transfer {_format(report, _TRANSFER_KEYS)}",
        *(f"Connection {_format(each, _CONNECTION_KEYS)}" for each in report.connections),
        "End",
    )


def parse_report(lines: Sequence[str]) -> ReportedTransfer:
    """Read the lines of a 211 reply to SITE REPORT.

    Raises PeerError for what is malformed, incomplete, given twice or too much.
    """
    transfers: list[dict[str, Any]] = []
    connections: list[ReportedConnection] = []
    for line in lines[1:-1]:
        if len(line) > MAX_LINE_CHARACTERS:
            raise PeerError("a line of the server's report is too long")
        word, _, pairs = line.strip().partition(" ")
        if word == "Transfer":
            transfers.append(_parse(pairs, _TRANSFER_KEYS))
        elif word == "Connection":
            connections.append(_made(ReportedConnection, _parse(pairs, _CONNECTION_KEYS)))
    if len(transfers) != 1:
        raise PeerError("the server's report is of no transfer, or of several")
    numbers = [each.number for each in connections]
    if len(numbers) > MAX_CONNECTIONS or numbers != sorted(set(numbers)):
        raise PeerError("the connections of the server's report are too many, or in disorder")
    return _made(ReportedTransfer, transfers[0] | {"connections": tuple(connections)})


def _format(values: object, keys: dict[str, str]) -> str:
    told = ((key, getattr(values, field)) for key, field in keys.items())
    return "".join(f"{key}={value};" for key, value in told if value is not None)


def _parse(text: str, keys: dict[str, str]) -> dict[str, Any]:
    fields = {key.lower(): field for key, field in keys.items()}
    values: dict[str, Any] = {}
    seen: set[str] = set()
    for pair in text.removesuffix(";").split(";"):
        found = _PAIR.fullmatch(pair)
        if found is None or found[1].lower() in seen:
            raise PeerError("the server's report cannot be read")
        seen.add(found[1].lower())
        field = fields.get(found[1].lower())
        if field is not None:
            values[field] = _value(field, found[2])
    return values


def _value(field: str, text: str) -> object:
    if field == "direction" and text in _DIRECTIONS:
        return text
    if field == "congestion" and _NAME.fullmatch(text):
        return text
    if field not in ("direction", "congestion") and _NUMBER.fullmatch(text):
        return int(text)
    raise PeerError(f"the server's report has no valid {field}")


def _made(kind: type[_Kind], values: dict[str, Any]) -> _Kind:
    try:
        return kind(**values)
    except TypeError as error:  # a key without which it says nothing is not there
        raise PeerError("the server's report is not complete") from error
