"""One direction as a whole: delays, order, drops, outages, and that nothing goes missing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.emulator.counters import LATE_S
from mininet_topos.emulator.direction import Direction
from mininet_topos.links import (
    DelayStep,
    ErrorBursts,
    GilbertElliott,
    Outage,
    PacketLoss,
    Queue,
    Red,
    Way,
)
from tests.lab.emulator.test_acks import segment

T1_BPS = 1.536e6


def direction(way: Way, seed: str = "1", started_s: float = 0.0) -> Direction:
    return Direction(way, seed=seed, started_s=started_s)


def packet(size_bytes: int = 1500, number: int = 0) -> bytes:
    return number.to_bytes(4, "big") + bytes(size_bytes - 4)


def deliveries(at_work: Direction) -> list[tuple[float, int]]:
    """Let everything arrive exactly when it is due: times and numbers of packets."""
    arrived = []
    while (due_s := at_work.next_s) < math.inf:
        while (given := at_work.deliver(due_s)) is not None:
            arrived.append((due_s, int.from_bytes(given[:4], "big")))
    return arrived


def test_a_packet_is_transmitted_then_propagates() -> None:
    link = direction(Way(rate_bps=T1_BPS, delay_s=0.28))
    link.accept(5.0, packet(512))
    assert deliveries(link) == [(pytest.approx(5 + 512 * 8 / T1_BPS + 0.28), 0)]


def test_packets_queue_behind_each_other() -> None:
    link = direction(Way(rate_bps=1e6, delay_s=0.1))
    for number in range(3):
        link.accept(0.0, packet(1250, number))  # 10 ms each
    assert deliveries(link) == [(pytest.approx(0.1 + 0.01 * (n + 1)), n) for n in range(3)]


def test_without_a_rate_packets_only_propagate() -> None:
    link = direction(Way(delay_s=0.1))
    for number in range(3):
        link.accept(float(number), packet(number=number))
    assert deliveries(link) == [(pytest.approx(n + 0.1), n) for n in range(3)]


@pytest.mark.parametrize("room", [1, 4, 20])
def test_of_a_burst_one_is_transmitted_and_the_room_is_filled(room: int) -> None:
    link = direction(Way(rate_bps=1e6, queue=Queue(packets=room)))
    for number in range(room + 5):
        link.accept(0.0, packet(number=number))
    assert link.counters(0.0).queue_drops == 4
    assert link.counters(0.0).most_packets == room
    assert [number for _, number in deliveries(link)] == list(range(room + 1))


def test_a_queue_in_bytes_takes_the_small_one_that_still_fits() -> None:
    link = direction(Way(rate_bps=1e6, queue=Queue(bytes=3100)))
    for number, size_bytes in enumerate([1500, 1500, 1500, 1500, 100, 40]):
        link.accept(0.0, packet(size_bytes, number))
    assert [number for _, number in deliveries(link)] == [0, 1, 2, 4]


def test_a_constant_bit_rate_above_the_link_first_drops_at_the_computed_packet() -> None:
    """Packet n comes at 5.1 n ms; by then floor(0.51 n) + 1 services of 10 ms have begun.

    So n - floor(0.51 n) - 1 wait: 9 before packet 20, and for the first time 10 before packet 21.
    """
    link = direction(Way(rate_bps=1e6, queue=Queue(packets=10)))
    for number in range(22):
        assert link.counters(number * 0.0051).queue_drops == 0
        link.accept(number * 0.0051, packet(1250, number))
    assert link.counters(21 * 0.0051).queue_drops == 1
    assert 21 not in [number for _, number in deliveries(link)]


arrivals = st.lists(
    st.tuples(st.floats(0, 0.02), st.integers(40, 1500)), min_size=1, max_size=80
).map(
    lambda gaps: [(sum(gap for gap, _ in gaps[: n + 1]), size) for n, (_, size) in enumerate(gaps)]
)


@settings(deadline=None)
@given(arrivals, st.integers(1, 8))
def test_drop_tail_is_what_a_simulation_of_events_says(
    packets: list[tuple[float, int]], room: int
) -> None:
    """An independent model: ends of transmission as a list, searched for every arrival."""
    link = direction(Way(rate_bps=1e6, delay_s=0.1, queue=Queue(packets=room)))
    begins: list[float] = []
    expected, end_s = [], 0.0
    for number, (at_s, size_bytes) in enumerate(packets):
        link.accept(at_s, packet(size_bytes, number))
        if end_s > at_s and sum(begin_s > at_s for begin_s in begins) >= room:
            continue
        begins.append(max(at_s, end_s))
        end_s = begins[-1] + size_bytes * 8 / 1e6
        expected.append((pytest.approx(end_s + 0.1), number))
    assert deliveries(link) == expected


ways = st.builds(
    Way,
    rate_bps=st.sampled_from([1e5, 1e6, 1e8]),
    delay_s=st.floats(0, 0.5),
    queue=st.sampled_from(
        [
            Queue(),
            Queue(packets=3),
            Queue(bytes=4000),
            Red(min_packets=1, max_packets=3, limit_packets=4, weight=0.5),
        ]
    ),
    loss=st.sampled_from(
        [
            None,
            PacketLoss(probability=0.3),
            ErrorBursts(every_bits=30_000, length_bits=4000),
            GilbertElliott(p_good_to_bad=0.3, p_bad_to_good=0.3),
        ]
    ),
    events=st.sampled_from(
        [
            (),
            (Outage(at_s=0.1, lasts_s=0.2),),
            (Outage(at_s=0.1, lasts_s=0.2, every_s=0.5, holds=True),),
            (DelayStep(at_s=0.2, delay_s=0.01), Outage(at_s=0.3, lasts_s=0.1)),
        ]
    ),
)


@settings(deadline=None)
@given(ways, arrivals)
def test_every_packet_has_one_fate_and_none_overtakes(
    way: Way, packets: list[tuple[float, int]]
) -> None:
    link = direction(way)
    for number, (at_s, size_bytes) in enumerate(packets):
        link.accept(at_s, packet(size_bytes, number))
        counted = link.counters(at_s)
        assert counted.packets_in == number + 1 == (
            counted.queue_drops + counted.early_drops + counted.losses + counted.outage_losses
            + counted.in_flight
        )  # fmt: skip
    arrived = deliveries(link)
    assert arrived == sorted(arrived)
    numbers = [number for _, number in arrived]
    assert numbers == sorted(set(numbers))
    counted = link.counters(1e6)
    assert counted.packets_out == len(arrived)
    assert counted.bytes_out == sum(packets[number][1] for number in numbers)
    assert (counted.in_flight, counted.waiting_packets, counted.waiting_bytes) == (0, 0, 0)


def test_what_is_lost_took_its_share_of_the_rate() -> None:
    lossless, lossy = direction(Way(rate_bps=1e6)), direction(
        Way(rate_bps=1e6, loss=PacketLoss(probability=0.5))
    )  # fmt: skip
    for number in range(100):
        lossless.accept(0.0, packet(number=number))
        lossy.accept(0.0, packet(number=number))
    at_s = dict((number, at_s) for at_s, number in deliveries(lossless))
    survivors = deliveries(lossy)
    assert 25 < len(survivors) < 75
    assert all(when == at_s[number] for when, number in survivors)


def test_an_outage_loses_what_it_meets() -> None:
    link = direction(
        Way(rate_bps=1e6, delay_s=0.1, events=(Outage(at_s=10, lasts_s=1),)), started_s=100.0
    )
    for number in range(30):  # one every 100 ms from 108.95 s on, 10 ms each
        link.accept(108.95 + number / 10, packet(1250, number))
    arrived = [number for _, number in deliveries(link)]
    assert arrived == [*range(11), *range(21, 30)]
    assert link.counters(1e6).outage_losses == 10


def test_an_outage_that_holds_delays_what_it_meets_and_queues() -> None:
    link = direction(
        Way(
            rate_bps=1e6,
            delay_s=0.1,
            queue=Queue(packets=5),
            events=(Outage(at_s=10, lasts_s=1, holds=True),),
        )
    )
    for number in range(10):
        link.accept(10.1 + number / 100, packet(1250, number))
    assert link.occupancy(10.9)[1:] == (5, 6250)
    arrived = deliveries(link)
    assert arrived == [(pytest.approx(11.1 + 0.01 * (n + 1)), n) for n in range(5)]
    assert link.counters(20).queue_drops == 5


def test_an_outage_counts_apart_from_the_loss_of_the_link() -> None:
    link = direction(
        Way(loss=PacketLoss(probability=1), events=(Outage(at_s=1, lasts_s=1),)),
    )
    for at_s in (0.5, 1.5, 2.5):
        link.accept(at_s, packet())
    counted = link.counters(3.0)
    assert (counted.losses, counted.outage_losses) == (2, 1)


def test_after_a_delay_step_down_packets_keep_their_order() -> None:
    link = direction(Way(delay_s=0.3, events=(DelayStep(at_s=1, delay_s=0.1),)))
    for number, at_s in enumerate([0.95, 1.0, 1.1, 1.2]):
        link.accept(at_s, packet(number=number))
    assert deliveries(link) == [
        (pytest.approx(at_s), n) for n, at_s in enumerate([1.25, 1.25, 1.25, 1.3])
    ]


def test_occupancy_follows_the_time() -> None:
    link = direction(Way(rate_bps=1e6))
    for _ in range(3):
        link.accept(0.0, packet(1250))
    assert [link.occupancy(at_s) for at_s in (0.0, 0.0099, 0.0101, 0.0201)] == [
        (0.0, 2, 2500),
        (0.0099, 2, 2500),
        (0.0101, 1, 1250),
        (0.0201, 0, 0),
    ]


def test_red_drops_on_an_idle_link_too_while_the_average_is_high() -> None:
    link = direction(
        Way(rate_bps=1e6, queue=Red(min_packets=1, max_packets=2, limit_packets=9, weight=1))
    )
    for number in range(5):
        link.accept(0.0, packet(1250, number))
    counted = link.counters(0.0)
    # The average is the queue itself: 0, 0, 1, then 2 as the room has two.
    assert counted.early_drops == 2
    assert counted.queue_drops == 0


def test_the_same_seed_repeats_a_run() -> None:
    way = Way(
        rate_bps=1e6,
        queue=Red(min_packets=2, max_packets=20, weight=0.1),
        loss=PacketLoss(probability=0.1),
    )

    def fates(seed: str) -> list[int]:
        link = direction(way, seed)
        for number in range(500):
            link.accept(number * 0.009, packet(1250, number))
        return [number for _, number in deliveries(link)]

    assert fates("3 forward") == fates("3 forward")
    assert fates("3 forward") != fates("3 backward")


def test_lateness_is_counted() -> None:
    link = direction(Way(delay_s=0.1))
    for _ in range(1000):
        link.accept(0.0, packet())
    for _ in range(999):
        link.deliver(0.1 + LATE_S / 2)
    link.deliver(0.1 + 5 * LATE_S)
    counted = link.counters(1.0)
    assert counted.late_packets == 1
    assert counted.most_lateness_s == pytest.approx(5 * LATE_S)
    assert counted.mean_lateness_s == pytest.approx((999 * LATE_S / 2 + 5 * LATE_S) / 1000)
    assert counted.could_keep_up


@pytest.mark.parametrize(("late", "device_drops"), [(2, 0), (0, 1)])
def test_a_link_that_could_not_keep_up_says_so(late: int, device_drops: int) -> None:
    link = direction(Way())
    for number in range(1000):
        link.accept(0.0, packet())
        link.deliver(2 * LATE_S if number >= 1000 - late else 0.0)
    assert not link.counters(1.0, device_drops=device_drops).could_keep_up


def test_acks_are_thinned_before_the_queue() -> None:
    link = direction(Way(delay_s=0.1, delayed_acks=True))
    for number in range(5):
        link.accept(0.0, segment(number))
    assert link.next_s == pytest.approx(0.04)  # the fifth waits for a sixth
    arrived = deliveries(link)
    assert [at_s for at_s, _ in arrived] == pytest.approx([0.1, 0.1, 0.14])
    counted = link.counters(1.0)
    assert (counted.packets_in, counted.packets_out, counted.thinned_acks) == (5, 3, 2)
