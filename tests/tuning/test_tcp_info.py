"""struct tcp_info: of real sockets, and of every length."""

from __future__ import annotations

import dataclasses
import socket
import struct
import sys

import pytest

from tuning.errors import TuningError
from tuning.tcp_info import (
    BASE_BYTES,
    KNOWN_BYTES,
    RecoveryState,
    TcpInfo,
    TcpOption,
    TcpState,
    decode,
    tcp_info,
)

from .support import connected

OFFSETS = {
    # As `bpftool btf dump` and linux/tcp.h give them, in bytes.
    "state": (0, "B"),
    "options": (5, "B"),
    "rto_s": (8, "I"),
    "snd_mss_bytes": (16, "I"),
    "unacked_segments": (24, "I"),
    "last_data_sent_s": (44, "I"),
    "pmtu_bytes": (60, "I"),
    "rtt_s": (68, "I"),
    "snd_ssthresh_segments": (76, "I"),
    "snd_cwnd_segments": (80, "I"),
    "total_retrans_segments": (100, "I"),
    "pacing_rate_bps": (104, "Q"),
    "max_pacing_rate_bps": (112, "Q"),
    "bytes_acked": (120, "Q"),
    "segs_out": (136, "I"),
    "notsent_bytes": (144, "I"),
    "min_rtt_s": (148, "I"),
    "delivery_rate_bps": (160, "Q"),
    "busy_s": (168, "Q"),
    "delivered_segments": (192, "I"),
    "bytes_sent": (200, "Q"),
    "rcv_ooopack_segments": (224, "I"),
    "snd_wnd_bytes": (228, "I"),
    "rcv_wnd_bytes": (232, "I"),
    "total_rto": (240, "H"),
    "total_rto_s": (244, "I"),
    "received_ce_segments": (248, "I"),
    "accecn_opt_seen": (278, "H"),
}

SCALES = {
    "rto_s": 1e-6,
    "rtt_s": 1e-6,
    "min_rtt_s": 1e-6,
    "busy_s": 1e-6,
    "last_data_sent_s": 1e-3,
    "total_rto_s": 1e-3,
    "pacing_rate_bps": 8,
    "max_pacing_rate_bps": 8,
    "delivery_rate_bps": 8,
}


def raw_info(length: int = KNOWN_BYTES, **values: int) -> bytes:
    """Write a structure with some fields set, straight at the kernel's offsets."""
    raw = bytearray(KNOWN_BYTES)
    for name, value in values.items():
        offset, code = OFFSETS[name]
        struct.pack_into("=" + code, raw, offset, value)
    return bytes(raw[:length])


def test_the_length_is_that_of_linux_6_18() -> None:
    assert KNOWN_BYTES == 280


@pytest.mark.parametrize("name", OFFSETS)
def test_field_stands_where_the_kernel_puts_it(name: str) -> None:
    info = decode(raw_info(**{name: 7}))
    assert getattr(info, name) == pytest.approx(7 * SCALES.get(name, 1))
    others = dataclasses.asdict(info)
    del others[name]
    assert all(not value for value in others.values()), "another field changed too"


@pytest.mark.parametrize("length", range(BASE_BYTES))
def test_too_short(length: int) -> None:
    with pytest.raises(TuningError):
        decode(bytes(length))


@pytest.mark.parametrize("length", range(BASE_BYTES, KNOWN_BYTES + 1))
def test_every_length(length: int) -> None:
    info = decode(bytes(length))
    for name, (offset, code) in OFFSETS.items():
        known = offset + struct.calcsize(code) <= length
        assert (getattr(info, name) is not None) == known, name


def test_fields_end_in_order() -> None:
    """A longer structure never knows less."""
    counts = [
        sum(value is not None for value in dataclasses.asdict(decode(bytes(length))).values())
        for length in range(BASE_BYTES, KNOWN_BYTES + 1)
    ]
    assert counts == sorted(counts)
    assert counts[-1] == len(dataclasses.fields(TcpInfo))


def test_a_newer_kernel_is_understood() -> None:
    assert decode(raw_info(rtt_s=600_000) + bytes(range(40))).rtt_s == 0.6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("snd_ssthresh_segments", 0x7FFFFFFF),
        ("min_rtt_s", 2**32 - 1),
        ("pacing_rate_bps", 2**64 - 1),
        ("max_pacing_rate_bps", 2**64 - 1),
    ],
)
def test_what_the_kernel_writes_for_none(name: str, value: int) -> None:
    assert getattr(decode(raw_info(**{name: value})), name) is None


def test_the_largest_ordinary_values_stay() -> None:
    info = decode(raw_info(max_pacing_rate_bps=2**64 - 2, min_rtt_s=2**32 - 2))
    assert info.max_pacing_rate_bps == (2**64 - 2) * 8
    assert info.min_rtt_s == pytest.approx(4294.967294)


@pytest.mark.skipif(sys.byteorder != "little", reason="bit fields lie the other way round")
def test_bit_fields() -> None:
    raw = bytearray(KNOWN_BYTES)
    raw[6], raw[7] = 0x97, 0b101
    info = decode(bytes(raw))
    assert (info.snd_wscale, info.rcv_wscale) == (7, 9)
    assert info.delivery_rate_app_limited
    assert info.fast_open_client_fail == 2


def test_unknown_states_and_options_do_no_harm() -> None:
    raw = bytearray(KNOWN_BYTES)
    raw[0], raw[1], raw[5] = 99, 99, 255
    info = decode(bytes(raw))
    assert info.state is TcpState.UNKNOWN
    assert info.recovery is RecoveryState.UNKNOWN
    assert TcpOption.SACK in info.options


# -- real sockets -----------------------------------------------------------------------------


def test_new_and_listening_sockets() -> None:
    with socket.socket() as sock:
        info = tcp_info(sock)
        assert info is not None
        assert info.state is TcpState.CLOSE
        assert info.min_rtt_s is None
        assert info.snd_ssthresh_segments is None
        assert info.max_pacing_rate_bps is None
        sock.bind(("127.0.0.1", 0))
        sock.listen(5)
        listening = tcp_info(sock)
        assert listening is not None
        assert listening.state is TcpState.LISTEN


def test_connection() -> None:
    with connected() as pair:
        before = tcp_info(pair.client)
        assert before is not None
        assert before.state is TcpState.ESTABLISHED
        assert TcpOption.TIMESTAMPS in before.options
        assert before.snd_cwnd_segments > 0
        assert before.bytes_sent == 0

        data = bytes(100_000)
        pair.client.settimeout(10)
        pair.client.sendall(data)
        received = 0
        while received < len(data):
            received += len(pair.server.recv(65536))
        pair.server.sendall(b"done")
        assert pair.client.recv(4) == b"done"  # acknowledges all of it

        sender, receiver = tcp_info(pair.client), tcp_info(pair.server)
        assert sender is not None and receiver is not None
        assert sender.bytes_sent == len(data)
        assert sender.bytes_acked == len(data) + 1  # the SYN
        assert receiver.bytes_received == len(data)
        assert sender.unacked_segments == 0
        assert sender.notsent_bytes == 0
        assert sender.rtt_s > 0
        assert sender.min_rtt_s is not None and 0 < sender.min_rtt_s <= sender.rtt_s * 10
        assert sender.rto_s >= 0.2
        assert sender.snd_mss_bytes > 500
        assert sender.data_segs_out is not None and sender.data_segs_out >= 2
        assert sender.total_retrans_segments == 0
        assert receiver.snd_wscale == sender.rcv_wscale
        assert sender.snd_wnd_bytes is not None and sender.snd_wnd_bytes > 0


def test_max_pacing_rate_is_seen() -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, 47, struct.pack("@L", 6_250_000_000))
        info = tcp_info(sock)
        assert info is not None
        assert info.max_pacing_rate_bps == 50_000_000_000


def test_what_is_no_tcp_socket_gives_none() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        assert tcp_info(datagrams) is None
    closed = socket.socket()
    closed.close()
    assert tcp_info(closed) is None
