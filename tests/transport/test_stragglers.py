"""Which idle connection carries what sits on which slow one, at the end of a transfer."""

from __future__ import annotations

from typing import cast

import pytest

from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES
from xftp.protocol.repeating import LIVE_RECORDS, Progress, RepeatBudget
from xftp.protocol.striping import BatchSize, Striping
from xftp.transport.outgoing import Outgoing
from xftp.transport.stragglers import LARGEST_REPEAT, Stragglers

RATE_BYTES_PER_S = 780_000
RTT_S = 0.6
KEPT = LIVE_RECORDS // 2
"""Records of the budget that are kept for the end."""


class Line:
    """A connection that has sent all that it was given."""

    def __init__(self, striping: Striping, given: int, **fare: object) -> None:
        self.lane = striping.open()
        if given:
            striping.take(self.lane, given)
        self.arrived_bytes = 0
        self.is_idle = True
        self.is_loading = False
        self.waiting = b""
        self.batch_size = BatchSize(64)
        for _ in range(6):
            self.batch_size.took_all()
        self.connection = self
        self._fare = fare

    def acknowledged(self) -> int:
        return self.arrived_bytes

    def progress(self, now: float) -> Progress:
        fare = Progress(
            outstanding_bytes=self.lane.given_bytes - self.arrived_bytes,
            rate_bytes_per_s=RATE_BYTES_PER_S,
            rtt_s=RTT_S,
            rtt_deviation_s=0.001,
            timeouts=0,
            silent_s=0.1,
        )
        return fare._replace(**self._fare)  # type: ignore[arg-type]


class Stage:
    """Connections of a transfer, and what was given to idle ones."""

    def __init__(self, records: int) -> None:
        self.striping = Striping([(0, records)])
        self.lines: list[Line] = []
        self.filled: list[tuple[Line, tuple[int, int]]] = []
        self._stragglers = Stragglers(
            self.striping, RepeatBudget(records * CHUNK_BYTES), self._fill
        )

    def line(self, given: int, **fare: object) -> Line:
        self.lines.append(Line(self.striping, given, **fare))
        return self.lines[-1]

    def help(self) -> list[tuple[int, int]]:
        self.filled.clear()
        self._stragglers.help(cast(list[Outgoing], self.lines), now=1.0)
        return [run for _, run in self.filled]

    def _fill(self, taker: Outgoing, run: tuple[int, int]) -> None:
        line = cast(Line, taker)
        line.is_idle = False
        self.filled.append((line, run))


LOST_AGAIN = {"is_mending": True, "sacked_bytes": 5 * RECORD_BYTES}


def test_what_sits_behind_a_loss_goes_twice_once_little_is_under_way() -> None:
    stage = Stage(40)
    donor = stage.line(30, **LOST_AGAIN)
    stage.line(10)
    assert stage.help() == [], "the loss is being mended, and much is under way"
    donor.arrived_bytes = 24 * RECORD_BYTES
    stage.lines[1].arrived_bytes = 10 * RECORD_BYTES
    assert stage.help() == [(24, 6)]
    stage.lines[1].is_idle = True
    assert stage.help() == [], "once is enough"


def test_nothing_does_where_nothing_was_lost() -> None:
    stage = Stage(8)
    stage.line(6)
    stage.line(2)
    assert stage.help() == []


@pytest.mark.parametrize(
    ("fare", "run"),
    [({"unanswered_s": 0.7, "unheard_s": 0.1}, (58, 2)), ({"silent_s": 1.1}, (44, LARGEST_REPEAT))],
    ids=["what its kernel has no acknowledgment for", "all that no receipt came for"],
)
def test_a_lost_end_is_repeated_however_much_is_under_way(
    fare: dict[str, object], run: tuple[int, int]
) -> None:
    stage = Stage(400)
    donor = stage.line(60, **fare)
    donor.arrived_bytes = 58 * RECORD_BYTES
    stage.line(340).arrived_bytes = 240 * RECORD_BYTES
    stage.line(0)
    assert run in stage.help()


def test_what_is_late_leaves_a_part_of_the_budget_for_the_end() -> None:
    stage = Stage(200)
    stage.line(200, rate_bytes_per_s=50_000)
    takers = [stage.line(0) for _ in range(4)]
    repeated = sum(count for _, count in stage.help())
    assert repeated == LIVE_RECORDS - KEPT
    assert repeated >= LARGEST_REPEAT
    for each in takers:
        each.is_idle = True
    assert stage.help() == []
