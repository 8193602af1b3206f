"""SITE REPORT: what the server's data sockets had in the last transfer (docs/protocol.md)."""

from __future__ import annotations

from typing import Any

from xftp.errors import SequenceError
from xftp.protocol.replies import Reply
from xftp.protocol.reports import ReportedConnection, ReportedTransfer, format_report
from xftp.server.session import Session
from xftp.transport.report import ConnectionReport, TransferReport

_KEPT_AS_THEY_ARE = (
    "congestion",
    "initial_window_segments",
    "send_buffer_bytes",
    "receive_buffer_bytes",
    "pacing_rate_bps",
    "delivery_rate_bps",
)
"""Fields that have the same name and unit in the report and on the wire."""


def note_transfer(session: Session, direction: str, report: TransferReport) -> None:
    """Keep what a client may ask about a transfer that has ended well.

    direction: "sent" or "received".
    """
    session.last_transfer = ReportedTransfer(
        direction=direction,
        bytes=report.bytes,
        duration_us=round(report.seconds * 1e6),
        connections=tuple(_reported(each) for each in report.connections),
    )


def site_report(session: Session) -> Reply:
    """Answer SITE REPORT. Raises SequenceError before the first transfer and after a failed one."""
    if session.last_transfer is None:
        raise SequenceError("There is no finished transfer to report on.")
    return Reply(211, format_report(session.last_transfer))


def _reported(connection: ConnectionReport) -> ReportedConnection:
    had = connection.socket
    values: dict[str, Any] = {name: had.get(name) for name in _KEPT_AS_THEY_ARE}
    return ReportedConnection(
        number=connection.number,
        bytes=connection.bytes,
        rtt_us=_microseconds(connection.rtt_s),
        min_rtt_us=_microseconds(had.get("min_rtt_s")),
        retransmits=connection.retransmits,
        **values,
    )


def _microseconds(seconds: object) -> int | None:
    return round(seconds * 1e6) if isinstance(seconds, float | int) else None
