"""What is remembered of servers and paths, and what becomes of a bad file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.client.memory import (
    LONGEST_S,
    MOST_BYTES,
    MOST_PLACES,
    PATH_LIFETIME_S,
    KnownPath,
    KnownServer,
    MemoryFile,
    corrected,
)

OURS = KnownServer(True, features={"MULT": "Connections;"}, connection_limit=8)
FAST = KnownPath(50e6, 0.6)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1e9

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def memory(tmp_path: Path, clock: Clock, told: list[str]) -> MemoryFile:
    return MemoryFile(tmp_path / "cache" / "paths.json", told.append, clock)


def test_what_was_noted_is_recalled_by_host_port_and_way(
    memory: MemoryFile, told: list[str], tmp_path: Path
) -> None:
    assert memory.server("host", 21) is None
    memory.note_server("Host", 21, OURS)
    memory.note_path("host", 21, "download", FAST)
    again = MemoryFile(tmp_path / "cache" / "paths.json", told.append, lambda: 1e9)
    assert again.server("host", 21) == OURS
    assert again.path("HOST", 21, "download") == FAST
    assert again.path("host", 21, "upload") is None
    assert again.server("host", 2121) is None
    assert told == []


def test_it_is_nobody_elses_business(memory: MemoryFile, tmp_path: Path) -> None:
    memory.note_server("host", 21, OURS)
    folder = tmp_path / "cache"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "paths.json").stat().st_mode) == 0o600
    assert os.listdir(folder) == ["paths.json"]


def test_what_is_old_is_forgotten(memory: MemoryFile, clock: Clock) -> None:
    memory.note_server("host", 21, OURS)
    memory.note_path("host", 21, "download", FAST)
    clock.now_s += PATH_LIFETIME_S + 1
    assert memory.path("host", 21, "download") is None
    assert memory.server("host", 21) == OURS
    clock.now_s += LONGEST_S
    assert memory.server("host", 21) is None


def test_what_is_confirmed_lives_on_but_a_doubt_does_not(memory: MemoryFile, clock: Clock) -> None:
    bad = KnownServer(False, pipelines=False)
    memory.note_server("good", 21, OURS)
    memory.note_server("bad", 21, bad)
    for _ in range(3):
        clock.now_s += PATH_LIFETIME_S / 3 + 1
        memory.note_server("good", 21, OURS)
        known = memory.server("bad", 21)
        if known is not None:
            memory.note_server("bad", 21, known)
    assert memory.server("good", 21) == OURS
    assert memory.server("bad", 21) is None  # so that it is tried again
    memory.note_server("bad", 21, bad)
    assert memory.server("bad", 21) == bad  # it failed again


def test_a_clock_that_was_set_back_makes_nothing_eternal(memory: MemoryFile, clock: Clock) -> None:
    memory.note_path("host", 21, "download", FAST)
    clock.now_s -= 2 * LONGEST_S
    assert memory.path("host", 21, "download") is None


def test_it_is_bounded(memory: MemoryFile, clock: Clock) -> None:
    for number in range(MOST_PLACES + 5):
        clock.now_s += 1
        memory.note_server(f"host{number}", 21, OURS)
    assert memory.server("host4", 21) is None
    assert memory.server("host5", 21) == OURS
    assert memory.server(f"host{MOST_PLACES + 4}", 21) == OURS


def test_a_file_that_says_so_already_is_not_written(memory: MemoryFile, tmp_path: Path) -> None:
    memory.note_server("host", 21, OURS)
    before = (tmp_path / "cache" / "paths.json").stat().st_ino
    memory.note_server("host", 21, OURS)
    assert (tmp_path / "cache" / "paths.json").stat().st_ino == before


def test_a_round_trip_is_written_where_it_is_another(memory: MemoryFile, tmp_path: Path) -> None:
    def noted(rtt_s: float | None) -> tuple[int, float | None]:
        memory.note_server("host", 21, OURS._replace(rtt_s=rtt_s))
        known = memory.server("host", 21)
        assert known is not None
        return (tmp_path / "cache" / "paths.json").stat().st_ino, known.rtt_s

    first, rtt_s = noted(0.6)
    assert rtt_s == 0.6
    assert noted(0.63) == (first, 0.6)
    for other in (0.8, None, 0.6):
        before = (tmp_path / "cache" / "paths.json").stat().st_ino
        assert noted(other)[1] == other
        assert (tmp_path / "cache" / "paths.json").stat().st_ino != before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"version": 99, "places": {}}',
        b'{"version": 1, "places": []}',
        b"[" * 100_000,
        b" " * (MOST_BYTES + 1),
    ],
)
def test_a_bad_file_is_ignored_with_a_word_and_written_anew(
    memory: MemoryFile, told: list[str], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "cache" / "paths.json"
    file.parent.mkdir()
    file.write_bytes(content)
    assert memory.server("host", 21) is None
    assert len(told) == 1
    assert "paths.json is not used" in told[0]
    memory.note_server("host", 21, OURS)
    assert memory.server("host", 21) == OURS


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {},
        {"at": "now", "server": {}},
        {"at": True, "server": {"is_our_kind": True, "pipelines": True}},
        {"at": 1e9, "server": {"is_our_kind": 1, "pipelines": True}},
        {"at": 1e9, "server": {"is_our_kind": True}},
        {"at": 1e9, "server": [1]},
        {"at": 1e9, "download": {"at": 1e9, "rate_bps": -5, "rtt_s": 0.6}},
        {"at": 1e9, "download": {"at": 1e9, "rate_bps": 1e99, "rtt_s": 0.6}},
        {"at": 1e9, "download": {"at": 1e9, "rate_bps": "50mbit", "rtt_s": 0.6}},
        {"at": 1e9, "download": {"at": 1e9, "rate_bps": 5e6, "rtt_s": None}},
        {"at": 1e9, "download": {"at": 1e9, "rate_bps": float("nan"), "rtt_s": 0.6}},
        {"at": 1e9, "download": "fast"},
    ],
)
def test_values_that_cannot_be_are_no_memory(
    memory: MemoryFile, tmp_path: Path, entry: object
) -> None:
    file = tmp_path / "cache" / "paths.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 1, "places": {"host:21": entry}}))
    assert memory.server("host", 21) is None
    assert memory.path("host", 21, "download") is None
    memory.note_path("host", 21, "download", FAST)
    assert memory.path("host", 21, "download") == FAST


def test_features_that_cannot_be_are_left_out(memory: MemoryFile) -> None:
    for features in ({"A": "x" * 1000}, {str(n): "" for n in range(1000)}):
        memory.note_server("host", 21, OURS._replace(features=features))
        known = memory.server("host", 21)
        assert known is not None
        assert known.features is None


def test_a_place_that_cannot_be_written_is_told_and_fails_nothing(
    tmp_path: Path, told: list[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    memory = MemoryFile(tmp_path / "file" / "paths.json", told.append)
    memory.note_server("host", 21, OURS)
    assert any("cannot be written" in sentence for sentence in told)


# -- what a transfer changes ----------------------------------------------------------------------


def test_a_faster_path_counts_at_once_and_a_slower_one_by_and_by() -> None:
    assert corrected(None, FAST) == FAST
    faster = FAST._replace(rate_bps=80e6)
    assert corrected(FAST, faster) == faster
    slow = FAST._replace(rate_bps=5e6)
    rates = [FAST.rate_bps]
    known = FAST
    for _ in range(6):
        known = corrected(known, slow)
        rates.append(known.rate_bps)
    assert rates == sorted(rates, reverse=True)
    assert rates[1] == pytest.approx(50e6 / 10**0.5)
    assert rates[-1] < 1.05 * 5e6


@given(st.floats(1e3, 1e12), st.floats(1e3, 1e12))
def test_a_correction_is_never_beyond_what_was_seen(before: float, seen: float) -> None:
    known = corrected(KnownPath(before, 0.6), KnownPath(seen, 0.6))
    assert min(before, seen) * 0.999 <= known.rate_bps <= max(before, seen) * 1.001
