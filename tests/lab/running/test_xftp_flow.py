"""How an XFTP flow becomes a command, and one whose time is what counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mininet_topos.errors import ExperimentError
from mininet_topos.experiments.flows import Bulk, Sockets, Xftp
from mininet_topos.experiments.spec import Scenario
from mininet_topos.running.programs.xftp import XftpProgram
from mininet_topos.running.scenario import algorithms

from .loopback import run


def test_without_a_report_the_time_is_that_of_the_command(tmp_path: Path) -> None:
    flow = Xftp(name="ftp", size_bytes=20_000, connections=0, files=2, report=False)
    outcome = run(flow, tmp_path, 17)
    words = outcome.command.split()
    assert "--json" not in words
    assert words[words.index("-n") + 1] == "auto"
    assert outcome.bytes == 40_000
    assert outcome.data_s == outcome.seconds


@pytest.mark.parametrize("direction", ["get", "put"])
def test_a_directory_is_mirrored(tmp_path: Path, direction: Any) -> None:
    flow = Xftp(
        name="ftp", size_bytes=9_000, files=4, direction=direction, mirror=True, report=False
    )
    outcome = run(flow, tmp_path, 16)
    assert outcome.command.split()[1] == "mirror"
    assert outcome.bytes == 36_000
    with pytest.raises(ExperimentError, match="with a report"):
        Xftp(name="ftp", size_bytes=1, files=4, mirror=True)


def test_a_rate_wants_the_algorithm_that_starts_at_it() -> None:
    told = Xftp(name="ftp", size_bytes=1, sockets=Sockets(rate_bps=50e6))
    plain = Bulk(name="tcp", size_bytes=1, sockets=Sockets(congestion="cubic"))
    for flows, wanted in (((told, plain), {"xftp_rented"}), ((plain,), set())):
        scenario = Scenario(topology="hts_geo", flows=flows, seconds=1)
        assert algorithms(scenario) == wanted


def test_more_connections_than_are_usual_are_made(tmp_path: Path) -> None:
    outcome = run(Xftp(name="ftp", size_bytes=3_000_000, connections=12), tmp_path, 15)
    assert len(outcome.report["files"][0]["connections"]) == 12


def test_fewer_connections_than_asked_for_are_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that grants two."""
    start = XftpProgram.start

    def start_meanly(program: XftpProgram, host: Any, argv: list[str], name: str) -> Any:
        if name == "xftpd":
            argv[argv.index("-n") + 1] = "2"
        return start(program, host, argv, name)

    monkeypatch.setattr(XftpProgram, "start", start_meanly)
    with pytest.raises(ExperimentError, match=r"2 of 3 connections .* 3 data connections asked"):
        run(Xftp(name="ftp", size_bytes=300_000, connections=3), tmp_path, 14)
