"""When a receiver is woken: seldom where much comes, at once where little does."""

from __future__ import annotations

import selectors
import socket
import sys
from collections.abc import Iterator

import pytest

from xftp.transport.connection import DataConnection
from xftp.transport.gathering import LEAST_GATHERED_BYTES, MOST_GATHERED_BYTES, Gathering

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs SO_RCVLOWAT of Linux")

LOOK_S = 0.1


class Stage:
    """Both ends of a connection, with a clock of its own."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self.sender = sender
        self.connection = DataConnection(receiver, 0)
        self.now = 10.0
        self.gathering = Gathering(self.connection, self.now)

    def receives(self, rate_bytes_per_s: float) -> int:
        """Let one interval pass at a rate; give the mark of the kernel."""
        self.now += LOOK_S
        self.connection.bytes_received += round(rate_bytes_per_s * LOOK_S)
        self.gathering.update(self.now)
        return self.connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    def is_woken(self, timeout_s: float = 0.0) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            return bool(selector.select(timeout_s))


@pytest.fixture
def stage() -> Iterator[Stage]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
    with sender, receiver:
        receiver.setblocking(False)
        yield Stage(sender, receiver)


def test_the_mark_follows_the_rate(stage: Stage) -> None:
    assert stage.receives(1e6) == 1, "2 ms of that are less than two records"
    assert stage.receives(10e6) == pytest.approx(20_000, rel=0.01)
    assert stage.receives(13e6) == pytest.approx(20_000, rel=0.01), "a little more is no reason"
    assert stage.receives(1e9) == MOST_GATHERED_BYTES
    assert stage.receives(1e5) == 1


def test_little_wakes_nobody_while_much_comes_and_does_when_it_stops(stage: Stage) -> None:
    stage.receives(1e9)
    stage.sender.sendall(bytes(LEAST_GATHERED_BYTES))
    assert not stage.is_woken(0.05)
    stage.receives(0.0)
    assert stage.is_woken(5.0), "what was there already counts"


def test_the_end_and_errors_wake_at_once(stage: Stage) -> None:
    stage.receives(1e9)
    stage.sender.sendall(b"last")
    stage.sender.shutdown(socket.SHUT_WR)
    assert stage.is_woken(5.0)


def test_at_the_end_every_byte_wakes(stage: Stage) -> None:
    stage.receives(1e9)
    stage.gathering.end()
    stage.sender.sendall(b"x")
    assert stage.is_woken(5.0)


def test_a_broken_connection_is_left_to_who_reads_it(stage: Stage) -> None:
    stage.connection.sock.close()
    stage.gathering.end()
    stage.now += LOOK_S
    stage.connection.bytes_received += 10**9
    stage.gathering.update(stage.now)
    assert stage.gathering.mark_bytes == 1


def test_nothing_is_judged_without_time(stage: Stage) -> None:
    stage.connection.bytes_received += 10**9
    stage.gathering.update(stage.now)
    assert stage.gathering.mark_bytes == 1
