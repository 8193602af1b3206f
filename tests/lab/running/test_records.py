"""Records that are kept: short, and with both ends."""

from __future__ import annotations

from mininet_topos.emulator.counters import Occupancy
from mininet_topos.running.records import MOST_ROWS, queue_rows, thinned


def test_short_records_stay() -> None:
    rows = [[float(n)] for n in range(MOST_ROWS)]
    assert thinned(rows) == rows


def test_long_ones_keep_their_ends() -> None:
    rows = [[float(n)] for n in range(10 * MOST_ROWS)]
    kept = thinned(rows)
    assert len(kept) == MOST_ROWS
    assert (kept[0], kept[-1]) == (rows[0], rows[-1])
    assert kept == sorted(kept)


def test_queue_times_are_of_the_scenario() -> None:
    rows = queue_rows({"forward": [Occupancy(102.5, 3, 300)], "backward": []}, 100.0)
    assert rows == {"forward": [[2.5, 3, 300]], "backward": []}
