"""What the sender's sockets had in a download, asked of the server with SITE REPORT.

Algorithm, initial window, losses and delivery rate of a download are the server's. A server that
lists SITE REPORT in FEAT tells them (docs/protocol.md): one of our own kind in the flight that ends
the transfer, another one for a round trip more.
"""

from __future__ import annotations

from dataclasses import replace

from xftp.errors import PeerError, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.reports import FEATURE, ReportedConnection, parse_report
from xftp.transport.report import ConnectionReport, SenderReport, TransferReport

from .dialogue import Dialogue
from .flights import Pace

_IN_SOCKET = (
    "congestion",
    "initial_window_segments",
    "send_buffer_bytes",
    "receive_buffer_bytes",
    "pacing_rate_bps",
    "delivery_rate_bps",
)
"""Fields that go into `ConnectionReport.socket` as they are."""


def ask_sender(dialogue: Dialogue) -> None:
    """Ask ahead of time, behind the RETR that runs and the HASH of its file, if it is wanted.

    Servers of our own kind answer when the transfer is done, so that it costs no round trip. The
    first RETR since `with_sender` counts: what follows only mends. Raises ConnectError.
    """
    is_wanted = dialogue.options.report_sender and _knows(dialogue)
    if is_wanted and dialogue.pace is Pace.ALL and dialogue.sender_answer is None:
        (dialogue.sender_answer,) = dialogue.control.send(Command(*FEATURE))


async def with_sender(dialogue: Dialogue, report: TransferReport) -> TransferReport:
    """Add the server's side to the report of a download, if the user wants it and the server can.

    The download is done already: what goes wrong here is told and fails nothing.
    """
    answer, dialogue.sender_answer = dialogue.sender_answer, None
    if not (dialogue.options.report_sender and report.connections and _knows(dialogue)):
        return report
    try:
        if answer is not None:
            reply = await answer.wait_final(dialogue.options.reply_timeout_s)
        else:
            reply = await dialogue.ask(*FEATURE)
        if not reply.is_positive:
            return report
        told = parse_report(reply.lines)
        if told.direction != "sent" or told.bytes != report.bytes:
            raise PeerError("the server's report is of another transfer")
    except XftpError as error:
        dialogue.notice_once(f"how the server's sockets fared is not known: {error}")
        return report
    connections = tuple(_connection(each) for each in told.connections)
    return replace(report, sender=SenderReport(told.duration_us / 1e6, connections))


def _knows(dialogue: Dialogue) -> bool:
    name, parameters = FEATURE
    listed = (dialogue.features or {}).get(name, "").upper()
    return parameters in listed.split(";")


def _connection(told: ReportedConnection) -> ConnectionReport:
    had: dict[str, object] = {name: getattr(told, name) for name in _IN_SOCKET}
    had["min_rtt_s"] = None if told.min_rtt_us is None else told.min_rtt_us / 1e6
    return ConnectionReport(
        number=told.number,
        bytes=told.bytes,
        rtt_s=None if told.rtt_us is None else told.rtt_us / 1e6,
        retransmits=told.retransmits,
        socket={name: value for name, value in had.items() if value is not None},
    )
