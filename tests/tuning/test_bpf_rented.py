"""xftp_rented: the whole rate from the first byte, errors shrugged off, congestion given way to."""

from __future__ import annotations

import math
import socket
import statistics
import struct
from collections.abc import Callable
from typing import Any

import pytest

from bench.emulated_path import Link, long_link, path
from mininet_topos.links import Outage, Queue, Way
from tuning.congestion import ParameterMap, Parameters, choose
from tuning.sockopts import SocketTuning
from tuning.tcp_info import TcpInfo

from .bpf_support import needs_bpf
from .transfers import Observed, connected, info_of, observe, transfer

pytestmark = needs_bpf

RATE_BPS = 20e6
RTT_S = 0.1
BDP_BYTES = int(RATE_BPS / 8 * RTT_S)
HEADERS_BYTES = 52
"""IPv4, and TCP with time stamps."""

SIZE_BYTES = 4 << 20

_SO_MAX_PACING_RATE = 47  # asm-generic/socket.h

rented = Parameters(rate_bps=RATE_BPS)


HOLD_S = RTT_S / 8
"""The queue that is kept at the link."""

ROOM_S = 3 * HOLD_S
"""What is in flight beyond rate x RTT at most."""


def link_segments(info: TcpInfo, rtt_s: float) -> int:
    """Give rate x RTT in segments of the link, as the program rounds."""
    bytes_in_flight = round(RATE_BPS / 8) * round(rtt_s * 1e6) // 1_000_000
    return math.ceil(bytes_in_flight / (info.snd_mss_bytes + HEADERS_BYTES))


def payload_rate_bps(info: TcpInfo) -> float:
    return RATE_BPS * info.snd_mss_bytes / (info.snd_mss_bytes + HEADERS_BYTES)


TRIES = 8
"""Other work on the machine delays packets, which the program takes for a queue, as it should."""


def quick_enough(
    parameter_map: ParameterMap, least_bps: Callable[[Observed], float], **link: Any
) -> Observed:
    """Transfer over a long link until that was as fast as it should be, or fail.

    least_bps: of the payload.
    """
    rates = []
    for _ in range(TRIES):
        with long_link(RTT_S / 2, **link) as path:
            seen = transfer(path, "xftp_rented", rented, parameter_map, size_bytes=SIZE_BYTES)
        rates.append(SIZE_BYTES * 8 / seen.duration_s)
        if rates[-1] >= least_bps(seen):
            return seen
    pytest.fail(f"{rates} bit/s are too slow, each of them")


def check_bounds(seen: Observed) -> None:
    # The first round trip may have taken longer, and the queue that is kept is a part of it.
    longer = max(1.0, seen.first.rtt_s / RTT_S)
    bound = link_segments(seen.first, seen.first.rtt_s + longer * ROOM_S) + 5
    assert all(info.snd_cwnd_segments <= bound for _, info in seen.samples)
    # The kernel's own window after a time-out, which comes where the machine stops for long, is 1.
    sending = [info for _, info in seen.samples[:-1] if not info.retransmits]
    assert all(info.snd_cwnd_segments >= 4 for info in sending)


def test_starts_at_rate_times_rtt(link: Link, parameter_map: ParameterMap) -> None:
    seen = transfer(
        link, "xftp_rented", rented, parameter_map, until=lambda at, info: at > 4 * RTT_S
    )
    assert seen.first.snd_cwnd_segments == link_segments(seen.first, seen.first.rtt_s)
    assert seen.first.pacing_rate_bps == pytest.approx(payload_rate_bps(seen.first), rel=0.001)
    settled = link_segments(seen.last, seen.least_rtt_s + ROOM_S)
    assert seen.last.snd_cwnd_segments == pytest.approx(settled + 3, abs=2)


def test_takes_its_rate_from_the_pacing_option(link: Link, parameter_map: ParameterMap) -> None:
    """Two socket options and no map: what an unprivileged process can do anywhere."""

    def tune(sock: socket.socket) -> None:
        choose(sock, "xftp_rented")
        sock.setsockopt(
            socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("Q", round(RATE_BPS / 8))
        )

    with connected(link, client=tune) as (sender, receiver):
        seen = observe(sender, receiver, size_bytes=1 << 16)
    assert seen.first.snd_cwnd_segments == link_segments(seen.first, seen.first.rtt_s)


def test_a_connection_that_was_accepted_starts_like_one_that_is_made(
    link: Link, parameter_map: ParameterMap
) -> None:
    """The rate is told behind the algorithm, which looks for it when it is chosen."""
    with connected(link) as (_, accepted):
        wishes = SocketTuning(congestion="xftp_rented", pacing_rate_bps=RATE_BPS)
        assert not wishes.apply(accepted)
        info = info_of(accepted)
    assert info.snd_cwnd_segments == link_segments(info, info.rtt_s)
    assert info.pacing_rate_bps == pytest.approx(payload_rate_bps(info), rel=0.001)


def test_an_algorithm_that_is_refused_leaves_what_an_accepted_connection_had(link: Link) -> None:
    with connected(link) as (_, accepted):
        before = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        (refused,) = SocketTuning(congestion="nosuch").apply(accepted)
        assert refused.option == "congestion"
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16) == before


def test_fills_the_link_from_the_first_byte(parameter_map: ParameterMap) -> None:
    def least_bps(seen: Observed) -> float:
        at_line_rate_s = SIZE_BYTES * 8 / payload_rate_bps(seen.first)
        # One way for the last byte and the queue; the rest is the machine.
        return SIZE_BYTES * 8 / (at_line_rate_s + 3 * RTT_S)

    seen = quick_enough(parameter_map, least_bps, rate_bps=RATE_BPS, queue_bytes=BDP_BYTES)
    assert not seen.last.total_retrans_segments
    check_bounds(seen)


def test_keeps_a_queue_of_one_hold(parameter_map: ParameterMap) -> None:
    """What the link works off while the sender is kept from sending."""
    for _ in range(TRIES):
        with long_link(RTT_S / 2, rate_bps=RATE_BPS, queue_bytes=BDP_BYTES) as path:
            seen = transfer(path, "xftp_rented", rented, parameter_map, size_bytes=SIZE_BYTES)
        settled = [info.rtt_s - seen.least_rtt_s for at, info in seen.samples if at > 1]
        queue_s, lost = statistics.median(settled[:-50]), seen.last.total_retrans_segments
        if 0.4 * HOLD_S <= queue_s <= 1.6 * HOLD_S and not lost:
            return
    pytest.fail(f"a queue of {queue_s} s instead of {HOLD_S}, {lost} segments sent again")


def test_keeps_none_where_what_is_above_the_rate_is_dropped(parameter_map: ParameterMap) -> None:
    """A policer of exactly the rate, whose queue is shorter than a hold."""
    for _ in range(TRIES):
        with long_link(RTT_S / 2, rate_bps=RATE_BPS, queue_bytes=12_000) as link:
            seen = transfer(link, "xftp_rented", rented, parameter_map, size_bytes=3 * SIZE_BYTES)
        exact_bps = payload_rate_bps(seen.first)
        paces = [info.pacing_rate_bps / exact_bps for _, info in seen.samples]
        most, later = max(paces), max(paces[len(paces) // 2 :])
        lost = seen.last.total_retrans_segments * seen.first.snd_mss_bytes / (3 * SIZE_BYTES)
        assert most <= 1.0626
        if most > 1.04 and later <= 1.001 and lost < 1 / 32:
            return
    pytest.fail(f"paced at {most} times the rate, later at {later}; {lost} sent again")


def test_takes_scattered_loss_for_errors(parameter_map: ParameterMap) -> None:
    # Reno would get 1.22 segments / (RTT sqrt(loss)): 1.4 Mbit/s.
    seen = quick_enough(
        parameter_map,
        lambda _: 0.75 * RATE_BPS,
        rate_bps=RATE_BPS,
        queue_bytes=BDP_BYTES,
        loss=0.01,
    )
    assert seen.last.total_retrans_segments > 10
    check_bounds(seen)


def test_backs_off_when_the_round_trip_grows(parameter_map: ParameterMap) -> None:
    """Half of the rate is somebody else's: no standing queue, hardly a loss."""
    for _ in range(TRIES):
        # What it keeps is what there is: the link stays busy.
        seen = quick_enough(
            parameter_map,
            lambda _: 0.8 * RATE_BPS / 2,
            rate_bps=RATE_BPS / 2,
            queue_bytes=2 * BDP_BYTES,
        )
        check_bounds(seen)
        settled = [info for at, info in seen.samples if at > 2][:-50]
        window = statistics.mean(info.snd_cwnd_segments for info in settled)
        queue_s = statistics.median(info.rtt_s for info in settled) - seen.least_rtt_s
        lost = seen.last.total_retrans_segments
        is_small = window < 0.8 * link_segments(seen.first, RTT_S)
        if is_small and queue_s < 3 * HOLD_S and lost < 30:
            return
    pytest.fail(f"a window of {window} segments, a queue of {queue_s} s, {lost} sent again")


def test_halves_at_a_policer_that_leaves_no_queue(parameter_map: ParameterMap) -> None:
    """The RTT says nothing; that more than an eighth is lost says enough."""
    with long_link(RTT_S / 2, rate_bps=RATE_BPS / 2, queue_bytes=15_000) as link:
        seen = transfer(link, "xftp_rented", rented, parameter_map, size_bytes=SIZE_BYTES)
    full = link_segments(seen.first, RTT_S)
    assert min(info.snd_cwnd_segments for _, info in seen.samples) < 0.4 * full
    assert seen.last.total_retrans_segments < SIZE_BYTES / seen.first.snd_mss_bytes / 4
    check_bounds(seen)


def test_an_outage_costs_little_more_than_its_time_outs(parameter_map: ParameterMap) -> None:
    """What the link carried last is acknowledged afterwards, and what was lost is no congestion."""
    away = Outage(at_s=0.4, lasts_s=0.6)
    there = Way(delay_s=RTT_S / 2, rate_bps=RATE_BPS, queue=Queue(bytes=BDP_BYTES), events=(away,))
    back = Way(delay_s=RTT_S / 2, events=(away,))
    slow_s = []
    for _ in range(TRIES):
        with path(there, back, acknowledge_all=True) as link:
            seen = transfer(link, "xftp_rented", rented, parameter_map, size_bytes=SIZE_BYTES)
        begin, before = next(
            (at, seen.delivered(info))
            for at, info in reversed(seen.samples)
            if info.retransmits and info.lost_segments
        )
        left_bytes = SIZE_BYTES - before * seen.first.snd_mss_bytes
        at_full_rate_s = left_bytes * 8 / payload_rate_bps(seen.first)
        slow_s.append(seen.duration_s - begin - at_full_rate_s)
        if slow_s[-1] < 5 * RTT_S:
            return
    pytest.fail(f"{slow_s} s longer than at the full rate from the last time-out on")


def test_without_a_rate_it_is_reno_from_ten_segments(
    link: Link, parameter_map: ParameterMap
) -> None:
    seen = transfer(
        link,
        "xftp_rented",
        None,
        parameter_map,
        until=lambda at, info: info.snd_cwnd_segments >= 300,
    )
    assert seen.first.snd_cwnd_segments == 10
    for _, info in seen.samples:
        expected = 10 + seen.delivered(info)
        assert info.snd_cwnd_segments == pytest.approx(expected, rel=0.02, abs=2)
