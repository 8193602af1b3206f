"""Drop-tail and RED against their definitions."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.emulator.queue import (
    Admission,
    DropTail,
    RandomEarlyDetection,
    WaitingRoom,
)
from mininet_topos.links import Queue, Red

BUSY_S, NOW_S = math.inf, 0.0


def room_with(*sizes_bytes: int) -> WaitingRoom:
    room = WaitingRoom()
    for size_bytes in sizes_bytes:
        room.enter(BUSY_S, size_bytes)
    return room


def test_a_room_is_left_when_transmission_begins() -> None:
    room = WaitingRoom()
    room.enter(1.0, 100)
    room.enter(2.0, 40)
    assert (room.packets, room.bytes) == (2, 140)
    room.advance(0.999)
    assert (room.packets, room.bytes) == (2, 140)
    room.advance(1.0)
    assert (room.packets, room.bytes) == (1, 40)
    room.advance(3.0)
    assert (room.packets, room.bytes) == (0, 0)
    assert (room.most_packets, room.most_bytes) == (2, 140)


@pytest.mark.parametrize(
    ("queue", "waiting", "size_bytes", "admission"),
    [
        (Queue(), [1500] * 10_000, 1500, Admission.GRANTED),
        (Queue(packets=2), [40], 1500, Admission.GRANTED),
        (Queue(packets=2), [40, 40], 40, Admission.NO_ROOM),
        (Queue(bytes=3000), [1500], 1500, Admission.GRANTED),
        (Queue(bytes=3000), [1500], 1501, Admission.NO_ROOM),
        (Queue(bytes=3000), [1500, 1400], 100, Admission.GRANTED),
        (Queue(packets=9, bytes=100), [99], 2, Admission.NO_ROOM),
    ],
)
def test_drop_tail_grants_what_fits(
    queue: Queue, waiting: list[int], size_bytes: int, admission: Admission
) -> None:
    assert DropTail(queue).admit(room_with(*waiting), size_bytes, NOW_S, BUSY_S) is admission


def test_an_idle_transmitter_needs_no_queue() -> None:
    assert DropTail(Queue(bytes=1)).admit(room_with(), 1500, NOW_S, NOW_S) is Admission.GRANTED


def red(spec: Red, seed: int = 1) -> RandomEarlyDetection:
    return RandomEarlyDetection(spec, 1.5e6, random.Random(seed).random)


def hold_average(policy: RandomEarlyDetection, room: WaitingRoom) -> None:
    policy.average = room.packets


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=100))
def test_the_average_is_exponentially_weighted(lengths: list[int]) -> None:
    policy = red(Red())
    expected = 0.0
    for length in lengths:
        policy.admit(room_with(*[1000] * length), 1000, NOW_S, BUSY_S)
        expected = (1 - 0.002) * expected + 0.002 * length
        assert policy.average == pytest.approx(expected)


def test_the_average_decays_while_the_link_idles() -> None:
    """As if packets of the typical size had found the queue empty: (1 - w)^m."""
    policy = red(Red(typical_packet_bytes=1000))
    policy.average = 10.0
    packet_s = 8000 / 1.5e6
    policy.admit(room_with(), 1000, 100 * packet_s, 0.0)
    assert policy.average == pytest.approx(10 * (1 - 0.002) ** 100)


def test_nothing_is_dropped_below_the_first_threshold_and_all_from_the_second() -> None:
    policy = red(Red())
    for length, admission in ((19, Admission.GRANTED), (40, Admission.EARLY_DROP)):
        room = room_with(*[1000] * length)
        for _ in range(2000):
            hold_average(policy, room)
            assert policy.admit(room, 1000, NOW_S, BUSY_S) is admission


def test_a_burst_is_only_limited_by_the_room() -> None:
    """The average is slow: 50 packets at once are all taken."""
    policy, room = red(Red()), WaitingRoom()
    admissions = []
    for _ in range(52):
        admissions.append(policy.admit(room, 1000, NOW_S, BUSY_S))
        if admissions[-1] is Admission.GRANTED:
            room.enter(BUSY_S, 1000)
    assert admissions == [Admission.GRANTED] * 50 + [Admission.NO_ROOM] * 2


@pytest.mark.parametrize(("length", "longest"), [(24, 49), (25, 39), (30, 19), (36, 12)])
def test_drops_are_evenly_spread_between_the_thresholds(length: int, longest: int) -> None:
    """The distance of two drops is uniform on 1 ... 1/p_b - 1 (Floyd and Jacobson 1993).

    By figure 2 the count is 1 for the first packet after a drop: section 7's 1/p_b, less one. With
    p_b = 0.08 the last distance, 12, has what 11 distances of 1/11.5 leave.
    """
    policy, room = red(Red()), room_with(*[1000] * length)
    distances, distance = [], 0
    while len(distances) < 4001:
        hold_average(policy, room)
        distance += 1
        if policy.admit(room, 1000, NOW_S, BUSY_S) is Admission.EARLY_DROP:
            distances.append(distance)
            distance = 0
    counted = Counter(distances[1:])  # the first count begins at 0
    base = 0.1 * (length - 20) / 20
    each = base / (1 - base)
    shares = {gap: each for gap in range(1, longest)}
    shares[longest] = 1 - sum(shares.values())
    assert set(counted) == set(shares)
    squares = sum(
        (counted[gap] - 4000 * share) ** 2 / (4000 * share) for gap, share in shares.items()
    )
    assert squares <= longest + 4 * math.sqrt(2 * longest)  # chi-square, four deviations
