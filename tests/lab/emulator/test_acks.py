"""ACKs thinned as by a receiver that delays them."""

from __future__ import annotations

import struct

import pytest

from mininet_topos.emulator.acks import DELAYED_ACK_S, AckThinner

FIN, RST, PSH, ACK = 0x01, 0x04, 0x08, 0x10


def segment(
    number: int, *, port: int = 5000, flags: int = ACK, payload: bytes = b"", options: int = 12
) -> bytes:
    tcp = struct.pack("!HHIIBBHHH", port, 80, 1, number, (20 + options) // 4 << 4, flags, 999, 0, 0)
    tcp += bytes(options) + payload
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, b"\x0a" * 4, b"\x0b" * 4
    )
    return ip + tcp


def udp() -> bytes:
    return bytes([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17]) + bytes(30)


def passed(thinner: AckThinner, *packets: bytes) -> list[bytes]:
    return [on for packet in packets for on in thinner.pass_on(0.0, packet)]


def test_every_second_ack_passes() -> None:
    thinner = AckThinner()
    acks = [segment(1460 * n) for n in range(10)]
    assert passed(thinner, *acks) == acks[1::2]
    assert (thinner.thinned, thinner.holds) == (5, 0)


def test_a_held_ack_goes_after_its_time() -> None:
    thinner = AckThinner()
    assert thinner.due_s is None
    assert thinner.pass_on(3.0, segment(1)) == []
    assert thinner.due_s == pytest.approx(3.0 + DELAYED_ACK_S)
    assert thinner.release(3.0 + DELAYED_ACK_S - 0.001) == []
    assert thinner.release(3.0 + DELAYED_ACK_S + 0.001) == [segment(1)]
    assert (thinner.due_s, thinner.thinned) == (None, 0)


def test_connections_are_told_apart() -> None:
    thinner = AckThinner()
    first, second = segment(1, port=1), segment(1, port=2)
    assert passed(thinner, first, second) == []
    assert thinner.holds == 2
    assert thinner.release(1.0) == [first, second]


def test_a_repeated_ack_tells_of_a_gap_and_passes_at_once() -> None:
    thinner = AckThinner()
    assert passed(thinner, segment(1), segment(2), segment(2), segment(2)) == [segment(2)] * 3
    assert passed(thinner, segment(3), segment(3)) == [segment(3)] * 2


@pytest.mark.parametrize(
    "other",
    [
        segment(2, payload=b"data"),
        segment(2, options=24),  # SACK blocks beside time stamps
        segment(2, flags=ACK | FIN),
        segment(2, flags=ACK | RST),
        segment(2, flags=ACK | PSH, payload=b"x"),
    ],
)
def test_anything_else_of_the_connection_lets_the_held_one_go_first(other: bytes) -> None:
    thinner = AckThinner()
    assert passed(thinner, segment(1), other) == [segment(1), other]


@pytest.mark.parametrize("other", [udp(), bytes([0x60]) + bytes(59), segment(2)[:30]])
def test_what_is_not_tcp_passes(other: bytes) -> None:
    thinner = AckThinner()
    assert passed(thinner, segment(1), other) == [other]
    assert thinner.holds == 1


def test_a_closed_connection_is_forgotten() -> None:
    thinner = AckThinner()
    passed(thinner, segment(7), segment(8), segment(8, flags=ACK | FIN))
    assert passed(thinner, segment(8)) == []  # the first of a new connection, no repetition
