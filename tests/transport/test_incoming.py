"""What a receiver tells on one connection, and how it sees to it that it is heard."""

from __future__ import annotations

import errno
import socket
import sys
from typing import cast

import pytest

from xftp.protocol.receipts import ALL_HELD, format_receipt
from xftp.transport.connection import DataConnection
from xftp.transport.incoming import REPEAT_S, Incoming
from xftp.transport.sockets import SocketState

RTT_S = 0.04

_TCP_THIN_LINEAR_TIMEOUTS, _TCP_RTO_MIN_US = 16, 45  # linux/tcp.h


class Line:
    """A connection on which nothing is lost but what should be."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.bytes_received = 0
        self.waiting = 0

    def unacknowledged(self) -> int:
        return self.waiting

    def state(self) -> SocketState:
        return SocketState(established=True, rtt_s=RTT_S, retransmits=0)

    def say(self, data: bytes) -> int:
        self.said.append(data)
        return len(data)


def incoming_on(line: Line) -> Incoming:
    return Incoming(cast(DataConnection, line), 0.0)


def test_a_receipt_is_told_once_and_not_too_often() -> None:
    line = Line()
    incoming = incoming_on(line)
    line.bytes_received = 8192
    incoming.tell(1.0, all_held=False)
    incoming.tell(2.0, all_held=False)
    line.bytes_received = 16384
    incoming.tell(1.0 + RTT_S / 4, all_held=False)
    assert line.said == [format_receipt(8192)]
    incoming.tell(1.0 + RTT_S, all_held=False)
    assert line.said == [format_receipt(8192), format_receipt(16384)]


def test_it_is_told_again_where_the_kernel_has_nothing_to_repeat() -> None:
    line = Line()
    incoming = incoming_on(line)
    line.bytes_received = 8192
    incoming.tell(1.0, all_held=False)
    line.waiting = 8
    incoming.tell(1.2, all_held=False, again=True)
    assert len(line.said) == 1, "it is on its way still"
    line.waiting = 0
    incoming.tell(1.3, all_held=False, again=True)
    assert line.said == [format_receipt(8192)] * 2


def test_news_does_not_wait_for_what_the_kernel_repeats() -> None:
    line = Line()
    incoming = incoming_on(line)
    line.bytes_received = line.waiting = 8
    incoming.tell(1.0, all_held=False, again=True)
    incoming.tell(1.0, all_held=True)
    assert line.said == [format_receipt(8), format_receipt(ALL_HELD)]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's own options")
def test_the_kernel_repeats_receipts_soon() -> None:
    with socket.socket() as sock:
        try:
            sock.getsockopt(socket.IPPROTO_TCP, _TCP_RTO_MIN_US)
        except OSError as error:
            assert error.errno == errno.ENOPROTOOPT
            pytest.skip("needs Linux 6.16 (TCP_RTO_MIN_US)")
        Incoming(DataConnection(sock, 0), 0.0).persist()
        assert sock.getsockopt(socket.IPPROTO_TCP, _TCP_THIN_LINEAR_TIMEOUTS) == 1
        least_s = sock.getsockopt(socket.IPPROTO_TCP, _TCP_RTO_MIN_US) / 1e6
        assert least_s == pytest.approx(REPEAT_S, abs=0.01), "in ticks of the kernel's clock"
