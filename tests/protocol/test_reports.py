"""The reply to SITE REPORT: written, read, and refused where it is malformed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import PeerError
from xftp.protocol.replies import ReplyParser, format_reply
from xftp.protocol.reports import (
    MAX_CONNECTIONS,
    ReportedConnection,
    ReportedTransfer,
    format_report,
    parse_report,
)

FULL = ReportedConnection(
    number=1,
    bytes=4_002_048,
    congestion="xftp_rented",
    initial_window_segments=647,
    send_buffer_bytes=1_875_000,
    receive_buffer_bytes=87_380,
    pacing_rate_bps=12_066_664,
    rtt_us=601_812,
    min_rtt_us=600_877,
    retransmits=0,
    delivery_rate_bps=11_900_000,
)
REPORT = ReportedTransfer(
    direction="sent",
    bytes=8_000_000,
    duration_us=1_400_000,
    connections=(ReportedConnection(number=0, bytes=4_001_864), FULL),
)

WIRE = (
    "211-Report of the last transfer:\r\n"
    " Transfer Direction=sent;Bytes=8000000;Duration=1400000;\r\n"
    " Connection Number=0;Bytes=4001864;\r\n"
    " Connection Number=1;Bytes=4002048;Congestion=xftp_rented;InitialWindow=647;"
    "SendBuffer=1875000;ReceiveBuffer=87380;Pacing=12066664;RTT=601812;MinRTT=600877;"
    "Retransmits=0;DeliveryRate=11900000;\r\n"
    "211 End\r\n"
)
TRANSFER = "Transfer Direction=sent;Bytes=8;Duration=5;"


def test_on_the_wire() -> None:
    assert format_reply(211, *format_report(REPORT)).decode() == WIRE
    (reply,) = ReplyParser().feed(WIRE.encode())
    assert parse_report(reply.lines) == REPORT


_count = st.integers(0, 10**18 - 1)
_known = st.none() | _count


@given(
    st.builds(
        ReportedTransfer,
        direction=st.sampled_from(["sent", "received"]),
        bytes=_count,
        duration_us=_count,
        connections=st.lists(
            st.builds(
                ReportedConnection,
                number=st.integers(0, 999),
                bytes=_count,
                congestion=st.none() | st.from_regex(r"[A-Za-z0-9_.-]{1,15}", fullmatch=True),
                initial_window_segments=_known,
                send_buffer_bytes=_known,
                receive_buffer_bytes=_known,
                pacing_rate_bps=_known,
                rtt_us=_known,
                min_rtt_us=_known,
                retransmits=_known,
                delivery_rate_bps=_known,
            ),
            max_size=8,
            unique_by=lambda each: each.number,
        ).map(lambda made: tuple(sorted(made, key=lambda each: each.number))),
    )
)
def test_what_is_written_is_read(report: ReportedTransfer) -> None:
    assert parse_report(format_report(report)) == report


def test_what_is_new_is_passed_over() -> None:
    lines = ("?", "Weather fine", f"{TRANSFER}Colour=red;", "connection x", "End")
    assert parse_report(lines) == ReportedTransfer(direction="sent", bytes=8, duration_us=5)


def test_keys_in_any_case() -> None:
    (made,) = parse_report(("", TRANSFER, "Connection NUMBER=0;bytes=5;rtt=7", "")).connections
    assert (made.number, made.bytes, made.rtt_us) == (0, 5, 7)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "of no transfer"),
        (["Connection Number=0;Bytes=5;"], "of no transfer"),
        ([TRANSFER, TRANSFER], "or of several"),
        (["Transfer Direction=sent;Bytes=8;"], "not complete"),
        ([TRANSFER, "Connection Bytes=5;"], "not complete"),
        ([TRANSFER, "Connection Number=0;"], "not complete"),
        (["Transfer"], "cannot be read"),
        ([f"{TRANSFER};"], "cannot be read"),
        ([f"{TRANSFER}Bytes=8;"], "cannot be read"),
        ([TRANSFER, "Connection Number=0;Bytes=;"], "cannot be read"),
        ([TRANSFER, "Connection Number=0;Bytes"], "cannot be read"),
        ([TRANSFER, "Connection Number=0; Bytes=5;"], "cannot be read"),
        ([TRANSFER, f"Connection Number=0;Bytes=5;{'a' * 33}=1;"], "cannot be read"),
        ([TRANSFER, f"Connection Number=0;Bytes=5;A={'a' * 65};"], "cannot be read"),
        (["Transfer Direction=up;Bytes=8;Duration=5;"], "no valid direction"),
        ([TRANSFER, "Connection Number=0;Bytes=-5;"], "no valid bytes"),
        ([TRANSFER, "Connection Number=0;Bytes=٣;"], "no valid bytes"),
        ([TRANSFER, f"Connection Number=0;Bytes={'1' * 19};"], "no valid bytes"),
        ([TRANSFER, "Connection Number=0;Bytes=5;RTT=0.6;"], "no valid rtt_us"),
        ([TRANSFER, "Connection Number=0;Bytes=5;Congestion=sixteen_letters_;"], "no valid cong"),
        ([TRANSFER, "Connection Number=0;Bytes=5;Congestion=\x1b[2J;"], "no valid congestion"),
        ([TRANSFER, "Connection Number=0;Bytes=5;"] * 2, "or of several"),
        ([TRANSFER, *["Connection Number=0;Bytes=5;"] * 2], "in disorder"),
        ([TRANSFER, "Connection Number=1;Bytes=5;", "Connection Number=0;Bytes=5;"], "disorder"),
        (
            [TRANSFER, *(f"Connection Number={n};Bytes=5;" for n in range(MAX_CONNECTIONS + 1))],
            "too many",
        ),
        ([TRANSFER, f"Connection {'A' * 1024}=1;"], "too long"),
    ],
)
def test_what_is_refused(lines: list[str], why: str) -> None:
    with pytest.raises(PeerError, match=re.escape(why)):
        parse_report(("Report:", *lines, "End"))


def test_as_many_connections_as_may_be() -> None:
    lines = [f"Connection Number={n};Bytes=5;" for n in range(MAX_CONNECTIONS)]
    assert len(parse_report(("", TRANSFER, *lines, "")).connections) == MAX_CONNECTIONS
