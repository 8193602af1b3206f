"""How flows become commands, and processes that fail: without a topology."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mininet_topos.errors import ExperimentError, MissingToolError
from mininet_topos.experiments.flows import Bulk, Sockets, Xftp
from mininet_topos.running.hosts import Process, find
from mininet_topos.running.programs import Place, program_for
from mininet_topos.running.programs.base import MOST_FLOWS, write_random
from mininet_topos.running.programs.xftp import _options


class Loopback:
    """A host that is this machine."""

    ip = "127.0.0.1"

    def popen(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        return subprocess.Popen(argv, **options)


def program(flow: Any, scratch: Path, slot: int = 0) -> Any:
    return program_for(flow, Place(host=lambda name: Loopback(), scratch=scratch, seed=1), slot)


def test_files_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first = write_random(tmp_path / "a", 2_500_000, 3).read_bytes()
    assert len(first) == 2_500_000
    assert write_random(tmp_path / "b", 2_500_000, 3).read_bytes() == first
    assert write_random(tmp_path / "c", 2_500_000, 4).read_bytes() != first


def test_flows_have_ports_of_their_own_below_the_ephemeral_ones(tmp_path: Path) -> None:
    taken: set[int] = set()
    for slot in range(MOST_FLOWS):
        first, last = program(Bulk(name=f"b{slot}", size_bytes=1), tmp_path, slot).data_ports
        ports = set(range(first, last + 1))
        assert not taken & ports
        taken |= ports
        xftp = program(Xftp(name=f"x{slot}", size_bytes=1), tmp_path, slot)
        assert xftp.data_ports == (first, last - 1)
        assert xftp.control_port == last  # behind the data port, where xftp looks for that
    assert max(taken) < 32_768
    with pytest.raises(ExperimentError, match="at most"):
        program(Bulk(name="more", size_bytes=1), tmp_path, MOST_FLOWS)


def test_settings_become_options_that_must_be_granted() -> None:
    sockets = Sockets(congestion="reno", initial_window_segments=4, receive_buffer_bytes=65536)
    assert _options(sockets, strict=True) == [
        *("--cc", "reno", "--initial-window", "4", "--rcvbuf", "65536", "--strict-tuning")
    ]
    told = Sockets(rate_bps=1.536e6)
    assert _options(told, strict=True) == ["--rate", "1536kbit", "--strict-tuning"]
    assert _options(told, strict=False) == ["--rate", "1536kbit"]
    assert _options(Sockets(), strict=True) == []
    with pytest.raises(ExperimentError, match="use a Bulk flow"):
        _options(Sockets(parameters=(("k", 2.0),)), strict=True)


def test_xftp_over_loopback(tmp_path: Path) -> None:
    """The same steps as in a topology: prepare, begin, done, finish, stop."""
    made = program(Xftp(name="ftp", size_bytes=50_000, connections=2), tmp_path, 20)
    try:
        made.prepare()
        made.begin()
        while not made.done():
            time.sleep(0.01)
        outcome = made.finish(made.client.started_s)
    finally:
        made.stop()
    assert outcome.bytes == 50_000
    assert outcome.report["files"][0]["framed"] is True
    assert str(tmp_path) not in outcome.command.split(" ", 1)[1]


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    complains = [sys.executable, "-c", "import sys; sys.exit('no such luck')"]
    process = Process(Loopback(), complains, tmp_path, "unlucky")
    with pytest.raises(ExperimentError, match="unlucky does not start: no such luck"):
        process.wait_until(lambda line: line == "ready")
    with pytest.raises(ExperimentError, match="unlucky ended with 1: no such luck"):
        process.check()
    with pytest.raises(ExperimentError, match="gave no report"):
        process.last_report()


def test_a_process_that_does_not_want_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mininet_topos.running.hosts.STOP_TIMEOUT_S", 0.2)
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    process = Process(Loopback(), ["sh", "-c", script], tmp_path, "stubborn")
    process.wait_until(lambda line: line == "ready")
    process.stop()
    assert process.poll() == -9


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(MissingToolError, match="nosuchprogram is not installed: try another"):
        find("nosuchprogram", "try another")
