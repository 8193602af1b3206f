"""Which record goes next, what is sent once more, and that every record is delivered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from xftp.protocol.records import CHUNK_BYTES, HEADER_BYTES, RECORD_BYTES, record_count
from xftp.protocol.striping import BatchSize, Lane, Striping


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=5),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_every_record_is_handed_out_once_in_order(
    ranges: list[tuple[int, int]], limits: list[int]
) -> None:
    striping = Striping(ranges)
    lane = striping.open()
    given_out: list[int] = []
    turn = 0
    while (run := striping.take(lane, limit := limits[turn % len(limits)])) is not None:
        first, count = run
        assert 1 <= count <= limit
        given_out += range(first, first + count)
        turn += 1
    assert given_out == [n for start, end in ranges for n in range(start, end)]
    assert striping.is_exhausted


def wire(first: int, count: int, size: int) -> int:
    return min((first + count) * CHUNK_BYTES, size) - first * CHUNK_BYTES + count * HEADER_BYTES


@dataclass
class Wire:
    """A connection as a test plays it: what it was given, record by record."""

    lane: Lane
    sent: list[tuple[int, int]] = field(default_factory=list)
    """(record, bytes given up to its end)"""
    acknowledged: int = 0

    def numbers(self) -> list[int]:
        return [number for number, _ in self.sent]

    def outstanding(self) -> list[int]:
        return [number for number, end in self.sent if end > self.acknowledged]


class Play:
    """Grants, acknowledgments, repeats, losses and recalls in any order."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.striping = Striping([(0, record_count(size))], size)
        self.wires: list[Wire] = []
        self.arrived: set[int] = set()

    def give(self, wire_: Wire, run: tuple[int, int] | None) -> None:
        if run is None:
            return
        at = wire_.sent[-1][1] if wire_.sent else 0
        for number in range(run[0], run[0] + run[1]):
            assert number not in wire_.outstanding(), "twice on one connection"
            at += wire(number, 1, self.size)
            wire_.sent.append((number, at))
        assert wire_.lane.given_bytes == at
        self.check_copies()

    def check_copies(self) -> None:
        copies = Counter(number for each in self.wires for number in each.outstanding())
        assert max(copies.values(), default=0) <= 2

    def acknowledge(self, wire_: Wire, size: int) -> None:
        end = wire_.sent[-1][1] if wire_.sent else 0
        wire_.acknowledged = min(end, wire_.acknowledged + size)
        self.striping.acknowledge(wire_.lane, wire_.acknowledged)
        assert wire_.lane.outstanding_bytes == end - wire_.acknowledged
        self.arrived |= set(wire_.numbers()) - set(wire_.outstanding())

    def take_back(self, wire_: Wire, size: int) -> None:
        """The last `size` bytes were never sent."""
        end = wire_.sent[-1][1] if wire_.sent else 0
        sent = max(wire_.acknowledged, end - size)
        kept = [(number, stop) for number, stop in wire_.sent]
        while kept and kept[-1][1] - wire(kept[-1][0], 1, self.size) >= sent:
            kept.pop()
        taken = self.striping.take_back(wire_.lane, sent)
        assert taken == end - (kept[-1][1] if kept else 0)
        wire_.sent = kept

    def step(self, what: str, which: int, other: int, size: int) -> None:
        if what == "open" or not self.wires:
            if len(self.wires) < 5:
                self.wires.append(Wire(self.striping.open()))
            return
        chosen = self.wires[which % len(self.wires)]
        second = self.wires[other % len(self.wires)]
        if what == "take":
            self.give(chosen, self.striping.take(chosen.lane, 1 + size % 9))
        elif what == "acknowledge":
            self.acknowledge(chosen, size)
        elif what == "repeat" and chosen is not second:
            run = self.striping.repeat(chosen.lane, second.lane, 1 + size % 9)
            if run is not None:
                assert set(range(run[0], run[0] + run[1])) <= set(second.outstanding())
            self.give(chosen, run)
        elif what == "take back":
            self.take_back(chosen, size)
        elif what == "lose":
            self.striping.close(chosen.lane)
            self.wires.remove(chosen)

    def finish(self) -> None:
        """Deliver the rest over one more connection, and what is under way where it is."""
        last = Wire(self.striping.open())
        self.wires.append(last)
        while (run := self.striping.take(last.lane, 64)) is not None:
            self.give(last, run)
        for each in self.wires:
            self.acknowledge(each, 1 << 40)


STEPS = st.tuples(
    st.sampled_from(["open", "take", "take", "acknowledge", "repeat", "take back", "lose"]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 5 * RECORD_BYTES),
)


@given(
    st.integers(1, 40 * CHUNK_BYTES),
    st.lists(STEPS, max_size=60),
)
@settings(max_examples=300, deadline=None)
def test_whatever_happens_every_record_is_delivered(
    size: int, steps: list[tuple[str, int, int, int]]
) -> None:
    play = Play(size)
    for step in steps:
        play.step(*step)
        if play.striping.is_delivered:
            assert play.arrived == set(range(record_count(size)))
    play.finish()
    assert play.striping.is_delivered
    assert play.striping.is_exhausted
    assert play.arrived == set(range(record_count(size)))


def test_what_a_lost_connection_had_not_delivered_goes_next_and_in_order() -> None:
    striping = Striping([(0, 10)])
    lost, other = striping.open(), striping.open()
    striping.take(lost, 2)
    striping.take(other, 2)
    striping.take(lost, 2)
    striping.acknowledge(lost, RECORD_BYTES + 5)
    striping.close(lost)
    assert striping.take(other, 9) == (1, 1)
    assert striping.take(other, 9) == (4, 6)
    assert striping.repeated_bytes == 3 * CHUNK_BYTES


def test_what_was_lost_in_vain_waits_for_the_others() -> None:
    """However soon connections are lost, without a word of what arrived, every record goes out."""
    striping = Striping([(0, 10)])
    went: set[int] = set()
    for _ in range(4):
        lane = striping.open()
        run = striping.take(lane, 3)
        assert run is not None
        went.update(range(run[0], run[0] + run[1]))
        striping.close(lane, go_last=True)
    assert went == set(range(10))


def test_repeats_begin_with_what_was_given_last() -> None:
    striping = Striping([(0, 8)])
    slow, idle = striping.open(), striping.open()
    striping.take(slow, 8)
    striping.acknowledge(slow, RECORD_BYTES)
    assert [striping.repeat(idle, slow, 3) for _ in range(4)] == [(5, 3), (2, 3), (1, 1), None]
    assert striping.repeated_bytes == 7 * CHUNK_BYTES
    striping.acknowledge(idle, 7 * RECORD_BYTES)
    assert striping.is_delivered
    assert slow.outstanding_bytes == 7 * RECORD_BYTES


def test_what_the_peers_kernel_has_is_not_repeated() -> None:
    striping = Striping([(0, 8)])
    slow, idle = striping.open(), striping.open()
    striping.take(slow, 5)
    striping.take(slow, 3)
    arrived_bytes = 6 * RECORD_BYTES + 1
    assert striping.repeat(idle, slow, 8, arrived_bytes) == (6, 2)
    assert striping.repeat(idle, slow, 8, arrived_bytes) is None
    assert striping.repeat(idle, slow, 8) == (5, 1)


def test_batches_grow_and_shrink() -> None:
    batch = BatchSize(64)
    sizes = []
    for _ in range(8):
        sizes.append(batch.records)
        batch.took_all()
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 64]
    batch.took(5)
    assert batch.records == 5
    batch.took(0)
    assert batch.records == 1
