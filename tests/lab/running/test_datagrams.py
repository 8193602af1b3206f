"""Numbered UDP packets: over loopback, and their summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from mininet_topos.experiments.flows import Datagrams
from mininet_topos.running.inside import datagrams

from .loopback import run


def test_all_arrive_at_their_pace(tmp_path: Path) -> None:
    flow = Datagrams(name="probe", packets=50, packet_bytes=200, packets_per_s=250)
    outcome = run(flow, tmp_path, 18)
    received, sent = outcome.report["receiver"], outcome.report["sender"]
    assert (received["packets"], received["first_lost"]) == (50, None)
    assert outcome.bytes == 50 * 200
    assert sent["packets_per_s"] <= 260
    assert 0 < received["least_delay_s"] <= received["mean_delay_s"]


def test_what_is_echoed_tells_the_round_trip(tmp_path: Path) -> None:
    outcome = run(Datagrams(name="probe", packets=5, echo=True), tmp_path, 19)
    rtts_s = outcome.report["sender"]["rtts_s"]
    assert len(rtts_s) == 5
    assert all(0 < rtt_s < datagrams.SILENCE_S for rtt_s in rtts_s)


def test_a_summary_of_packets_of_which_two_are_lost() -> None:
    arrivals = [(0, 1.0, 1.5), (1, 1.1, 1.6), (3, 1.3, 1.9), (5, 1.5, 2.5)]
    told = datagrams.summary(arrivals, sent=6)
    assert told["packets"] == 4
    assert told["first_lost"] == 2
    assert told["seconds"] == pytest.approx(1.0)
    assert told["packets_per_s"] == pytest.approx(3.0)
    assert told["least_delay_s"] == pytest.approx(0.5)
    assert told["mean_delay_s"] == pytest.approx(0.65)


def test_a_summary_of_nothing() -> None:
    told = datagrams.summary([], sent=3)
    assert (told["packets"], told["first_lost"], told["seconds"]) == (0, 0, 0.0)
