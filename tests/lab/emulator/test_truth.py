"""What goes through a real link obeys the laws it was asked to.

On a busy machine the emulator may run late, and says so: then a test whose law did not hold tries
again. The law stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import IPPROTO_TCP, SOCK_STREAM, SOL_SOCKET, TCP_CONGESTION, TCP_WINDOW_CLAMP
from typing import TypeVar

import pytest

from mininet_topos.emulator.capture import read_capture
from mininet_topos.emulator.counters import LinkCounters
from mininet_topos.emulator.direction import Direction
from mininet_topos.emulator.loss import packet_error_rate
from mininet_topos.emulator.pair import Pair, joined
from mininet_topos.links import (
    BitErrors,
    ErrorBursts,
    GilbertElliott,
    LinkSpec,
    Loss,
    Outage,
    PacketLoss,
    Queue,
    Red,
    Way,
)

from .traffic import captured_arrivals, ping_s, receiving, send_numbered
from .waiting import until, wait_for_the_end

pytestmark = pytest.mark.root

TRIES = 5
TOLERANCE_S = 0.001
T1_BPS = 1.536e6

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h: past the system's ceiling

Result = TypeVar("Result")


def judge(run: Callable[[], tuple[LinkCounters, Result]], law: Callable[[Result], bool]) -> None:
    """Fail if the law did not hold while the emulator was in time, or in none of TRIES runs."""
    for _ in range(TRIES):
        counted, result = run()
        if law(result):
            return
        if counted.could_keep_up and counted.most_lateness_s <= TOLERANCE_S:
            break
    pytest.fail(f"{result} is against the law; late by {counted.most_lateness_s:.6f} s at most")


def both_ways(way: Way) -> LinkSpec:
    return LinkSpec(name="test", forward=way, backward=way)


@pytest.mark.parametrize(
    ("way", "packet_bytes"),
    [
        (Way(), 84),
        (Way(delay_s=0.01), 84),
        (Way(delay_s=0.28), 84),
        (Way(rate_bps=T1_BPS, delay_s=0.05), 1500),
    ],
)
def test_a_ping_takes_transmission_and_propagation(way: Way, packet_bytes: int) -> None:
    transmission_s = packet_bytes * 8 / way.rate_bps if way.rate_bps else 0.0
    expected_s = 2 * (transmission_s + way.delay_s)

    def run() -> tuple[LinkCounters, float]:
        with joined(both_ways(way)) as hosts:
            # The shortest: the others may have waited for this process, which is not the link's.
            measured_s = min(ping_s(hosts.left, hosts.right, packet_bytes, times=5))
            return hosts.link.counters(), measured_s

    judge(run, lambda measured_s: expected_s <= measured_s <= expected_s + TOLERANCE_S)


def test_the_directions_differ_as_asked() -> None:
    spec = LinkSpec(
        name="test",
        forward=Way(rate_bps=2e6, delay_s=0.03),
        backward=Way(rate_bps=256e3, delay_s=0.02),
    )
    expected_s = 0.05 + 1500 * 8 / 2e6 + 1500 * 8 / 256e3

    def run() -> tuple[LinkCounters, float]:
        with joined(spec) as hosts:
            measured_s = min(ping_s(hosts.left, hosts.right, 1500, times=4))
            return hosts.link.counters(), measured_s

    judge(run, lambda measured_s: expected_s <= measured_s <= expected_s + TOLERANCE_S)


def look_twice(hosts: Pair, packets: int, over_s: float) -> tuple[LinkCounters, LinkCounters]:
    """Read the counters once so many packets have left, and again so much later."""
    until(lambda: hosts.link.counters().forward.packets_out > packets)
    before = hosts.link.counters()
    until(lambda: hosts.link.counters().at_s >= before.at_s + over_s)
    return before, hosts.link.counters()


def drain(rate_bps: float, packets: int, over_s: float) -> tuple[LinkCounters, LinkCounters]:
    """Fill both queues while the link is away, so that they drain without a pause; look twice."""
    for held_s in (1, 2, 2, 2, 4, 4, 4, 8, 16):
        outage = Outage(at_s=0, lasts_s=held_s, holds=True)
        with joined(both_ways(Way(rate_bps=rate_bps, events=(outage,)))) as hosts:
            send_numbered(hosts.left, hosts.right, packets, 1500)
            send_numbered(hosts.right, hosts.left, packets, 1500)
            filled = hosts.link.counters()
            while min(filled.forward.packets_in, filled.backward.packets_in) < packets:
                if filled.at_s >= filled.started_s + held_s / 2:
                    break
                filled = hosts.link.counters()
            if min(filled.forward.packets_in, filled.backward.packets_in) < packets:
                continue
            if filled.at_s >= filled.started_s + held_s:
                continue  # it took too long
            before, after = look_twice(hosts, packets // 50, over_s)
            if min(after.forward.waiting_packets, after.backward.waiting_packets) > 0:
                return before, after
    pytest.fail("this machine is too busy to look twice at a queue that drains")


@pytest.mark.parametrize(("rate_bps", "packets", "over_s"), [(1e7, 1000, 0.8), (1e8, 8000, 0.5)])
def test_the_rate_is_held_in_both_directions_at_once(
    rate_bps: float, packets: int, over_s: float
) -> None:
    """And packets leave so near to their time that a round trip is within its millisecond."""

    def run() -> tuple[LinkCounters, list[float]]:
        before, after = drain(rate_bps, packets, over_s)
        seconds = after.at_s - before.at_s
        sent_bytes = [
            after.forward.bytes_out - before.forward.bytes_out,
            after.backward.bytes_out - before.backward.bytes_out,
        ]
        late_s = after.forward.mean_lateness_s + after.backward.mean_lateness_s
        return after, [*(sent * 8 / seconds for sent in sent_bytes), late_s]

    def law(measured: list[float]) -> bool:
        *rates, late_s = measured
        return rates == pytest.approx([rate_bps, rate_bps], rel=0.01) and late_s < TOLERANCE_S / 2

    judge(run, law)


def survivors_of_drop_tail(
    arrivals: list[tuple[float, int]], packet_s: float, room: int
) -> list[int]:
    """Tell by the law of the queue who survives: an event model that knows no emulator."""
    begins: list[float] = []
    survivors, end_s = [], 0.0
    for at_s, number in arrivals:
        if end_s > at_s and sum(begin_s > at_s for begin_s in begins[-room - 1 :]) >= room:
            continue
        begins.append(max(at_s, end_s))
        end_s = begins[-1] + packet_s
        survivors.append(number)
    return survivors


def test_a_burst_loses_exactly_what_finds_no_room(tmp_path: Path) -> None:
    """One is in transmission and 10 wait: the first drop is packet 11, counted from 0."""
    way = Way(rate_bps=128e3, queue=Queue(packets=10))  # 1000 bytes take 62.5 ms
    capture = tmp_path / "link.pcap"
    for _ in range(TRIES):
        with joined(both_ways(way), capture=capture) as hosts, receiving(hosts.right) as got:
            send_numbered(hosts.left, hosts.right, 15, 1000)
            counted = wait_for_the_end(hosts.link, 15).forward
        arrivals = captured_arrivals(capture)
        if arrivals[-1][0] - arrivals[0][0] < 0.06:  # it came before anything left the queue
            break
    assert got.numbers == list(range(11))
    assert (counted.queue_drops, counted.most_packets) == (4, 10)


def test_a_constant_bit_rate_loses_what_the_law_says(tmp_path: Path) -> None:
    """Twice the rate of the link: first the queue fills, then every second packet is dropped."""
    way = Way(rate_bps=T1_BPS, delay_s=0.02, queue=Queue(packets=20))
    packet_s = 512 * 8 / T1_BPS
    capture = tmp_path / "link.pcap"
    with joined(both_ways(way), capture=capture) as hosts, receiving(hosts.right) as got:
        send_numbered(hosts.left, hosts.right, 200, 512, interval_s=packet_s / 2)
        counted = wait_for_the_end(hosts.link, 200).forward
    expected = survivors_of_drop_tail(captured_arrivals(capture), packet_s, room=20)
    assert got.numbers == expected
    assert len(expected) < 200
    assert counted.queue_drops == 200 - len(expected)
    assert counted.most_packets == 20


@pytest.mark.parametrize(
    "way",
    [
        Way(rate_bps=T1_BPS, queue=Red(min_packets=3, max_packets=20, weight=0.2)),
        Way(loss=GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.3)),
        Way(rate_bps=T1_BPS, queue=Queue(bytes=5000), loss=PacketLoss(probability=0.2)),
    ],
    ids=["red", "gilbert-elliott", "drop-tail and loss"],
)
def test_the_process_does_what_the_stages_say(way: Way, tmp_path: Path) -> None:
    """The captured arrivals, put through the pure stages, give what arrived."""
    capture = tmp_path / "link.pcap"
    with joined(both_ways(way), capture=capture) as hosts, receiving(hosts.right) as got:
        started_s = hosts.link.counters().started_s
        send_numbered(hosts.left, hosts.right, 300, 512, interval_s=512 * 8 / T1_BPS / 2)
        wait_for_the_end(hosts.link, 300)
    replayed = Direction(way, seed="1 forward", started_s=started_s)
    for at_s, number in captured_arrivals(capture):
        replayed.accept(at_s, number.to_bytes(4, "big") + bytes(508))
    expected = []
    while (given := replayed.deliver(math.inf)) is not None:
        expected.append(int.from_bytes(given[:4], "big"))
    assert got.numbers == expected
    assert 0 < len(expected) < 300


@pytest.mark.parametrize(
    ("loss", "packet_bytes", "probability"),
    [
        (PacketLoss(probability=0.1), 100, 0.1),
        (PacketLoss(probability=0.01), 1500, 0.01),
        (BitErrors(rate=1e-5), 1500, packet_error_rate(1e-5, 12_000)),
        (BitErrors(rate=1e-4), 100, packet_error_rate(1e-4, 800)),
    ],
)
def test_losses_are_within_their_confidence_interval(
    loss: Loss, packet_bytes: int, probability: float
) -> None:
    packets = 4000
    with joined(both_ways(Way(loss=loss))) as hosts, receiving(hosts.right) as got:
        send_numbered(hosts.left, hosts.right, packets, packet_bytes)
        counted = wait_for_the_end(hosts.link, packets).forward
    deviation = math.sqrt(packets * probability * (1 - probability))
    assert abs(counted.losses - packets * probability) <= 4 * deviation
    assert len(got.numbers) == packets - counted.losses


def test_bursts_of_bit_errors_hit_the_packets_that_have_the_bits() -> None:
    bursts = ErrorBursts(every_bits=100_000, length_bits=4000)
    wrong = {
        bit // 12_000
        for begin in range(100_000, 200 * 12_000, 100_000)
        for bit in (begin, begin + 3999)
    }
    with joined(both_ways(Way(loss=bursts))) as hosts, receiving(hosts.right) as got:
        send_numbered(hosts.left, hosts.right, 200, 1500)
        wait_for_the_end(hosts.link, 200)
    assert got.numbers == [number for number in range(200) if number not in wrong]


@contextmanager
def steady_stream(outage: Outage, capture: Path) -> Iterator[tuple[LinkCounters, list[int]]]:
    """Send a packet every 5 ms for 600 ms; give the last counters and what arrived."""
    way = Way(events=(outage,))
    with joined(both_ways(way), capture=capture) as hosts, receiving(hosts.right) as got:
        hosts.link.restart()  # the outage counts from here
        send_numbered(hosts.left, hosts.right, 120, 500, interval_s=0.005)
        counted = wait_for_the_end(hosts.link, 120)
    for number, at_s in zip(got.numbers, got.times, strict=True):
        begin_s = counted.started_s + outage.at_s
        arrived_in_it = begin_s + TOLERANCE_S < at_s < begin_s + outage.lasts_s
        assert not arrived_in_it or counted.most_lateness_s > TOLERANCE_S, number
    yield counted, got.numbers


def away(capture: Path, counted: LinkCounters, outage: Outage) -> list[int]:
    begin_s = counted.started_s + outage.at_s
    return [
        number
        for at_s, number in captured_arrivals(capture)
        if begin_s <= at_s < begin_s + outage.lasts_s
    ]


def test_an_outage_loses_what_it_should(tmp_path: Path) -> None:
    capture, outage = tmp_path / "link.pcap", Outage(at_s=0.2, lasts_s=0.2)
    with steady_stream(outage, capture) as (counted, numbers):
        missing = away(capture, counted, outage)
        assert missing
        assert numbers == [number for number in range(120) if number not in missing]
        assert counted.forward.outage_losses == len(missing)


def test_an_outage_holds_what_it_should(tmp_path: Path) -> None:
    capture, outage = tmp_path / "link.pcap", Outage(at_s=0.2, lasts_s=0.2, holds=True)
    with steady_stream(outage, capture) as (counted, numbers):
        assert numbers == list(range(120))
        assert counted.forward.most_packets == len(away(capture, counted, outage)) > 0


WINDOW_BYTES = 65_535
RTT_S = 0.1


def test_tcp_gets_its_window_per_round_trip(tmp_path: Path) -> None:
    """A receiver that never offers more than a window gets it once per RTT, within 3%."""
    capture = tmp_path / "link.pcap"
    segment_bytes = 1460 - 12  # with time stamps
    expected_bps = WINDOW_BYTES // segment_bytes * segment_bytes * 8 / RTT_S

    def run() -> tuple[LinkCounters, float]:
        link = both_ways(Way(delay_s=RTT_S / 2))
        with joined(link, capture=capture, acknowledge_all=True) as hosts:
            transfer_over_tcp(hosts, 32 * WINDOW_BYTES)
            counted = hosts.link.counters()
        return counted, steady_rate_bps(capture)

    judge(run, lambda measured_bps: measured_bps == pytest.approx(expected_bps, rel=0.03))


def transfer_over_tcp(hosts: Pair, size_bytes: int) -> None:
    """Let the kernels do it alone: all fits in both buffers, and is read at the end."""
    with hosts.right.socket(SOCK_STREAM) as listener, hosts.left.socket(SOCK_STREAM) as sender:
        listener.setsockopt(SOL_SOCKET, SO_RCVBUFFORCE, 16 * size_bytes)
        listener.setsockopt(IPPROTO_TCP, TCP_WINDOW_CLAMP, WINDOW_BYTES)
        listener.bind((hosts.right.address, 5002))
        listener.listen()
        sender.setsockopt(SOL_SOCKET, SO_SNDBUFFORCE, 16 * size_bytes)
        sender.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b"reno")
        sender.settimeout(60)
        sender.connect((hosts.right.address, 5002))
        sender.sendall(bytes(size_bytes))
        accepted, _ = listener.accept()
        with accepted:
            until(lambda: hosts.link.counters().forward.bytes_out > size_bytes)
            while size_bytes:
                size_bytes -= len(accepted.recv(2**20))


def steady_rate_bps(capture: Path) -> float:
    """Give the rate of the segments after slow start, by the times they entered the link."""
    times, sizes = [], []
    for noted in read_capture(capture):
        if noted.size_bytes > 1000:
            times.append(noted.at_s)
            sizes.append(noted.size_bytes - 52)
    # Of 32 windows 8 are for slow start and one for the end; the bytes from the first segment to
    # the last are those of all but the last.
    first, last = len(times) // 4, len(times) - WINDOW_BYTES // 1448
    return sum(sizes[first:last]) * 8 / (times[last] - times[first])
