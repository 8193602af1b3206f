"""The backend for kernels with netem: what it is told, and what it refuses."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from mininet_topos.errors import TopologyError
from mininet_topos.links import BitErrors, LinkSpec, Outage, PacketLoss, Queue, Red, Way
from mininet_topos.network import Lab
from mininet_topos.topologies import topos
from mininet_topos.topology.netem import propagation, transmitter
from tests.lab.topologies.support import assert_nothing_left, lab_processes, missing


def spec_of(**way: Any) -> LinkSpec:
    ways = Way(**way)
    return LinkSpec(name="tried", forward=ways, backward=ways)


def test_each_part_of_a_way_is_told_to_the_interface_that_does_it() -> None:
    topology = topos["acts_t1"](backend="netem", queue=100, loss=0.001)
    transmitted = {"bw": 1.536, "max_queue_size": 100}
    propagated = {"delay": "280000us", "loss": 0.1, "max_queue_size": 1_000_000}
    assert topology.linkInfo("r1", "sky1")["shapes"] == (transmitted, propagated)
    assert topology.linkInfo("sky1", "r2")["shapes"] == (propagated, transmitted)


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ({"rate_bps": 1e6, "queue": Queue(bytes=9000)}, "any queue but drop-tail in packets"),
        (
            {"rate_bps": 1e6, "queue": Red(min_packets=20, max_packets=40, limit_packets=50)},
            "any queue but drop-tail in packets",
        ),
        ({"rate_bps": 2e9}, "above 1e"),
        ({"delayed_acks": True}, "thinned ACKs"),
        ({"loss": BitErrors(rate=1e-6)}, "BitErrors, only PacketLoss"),
        ({"loss": PacketLoss(probability=1e-9)}, "a loss of 1e-09"),
        ({"events": (Outage(at_s=1, lasts_s=1),)}, "outages and delay steps"),
    ],
)
def test_what_netem_cannot_do_is_refused(way: dict[str, Any], sentence: str) -> None:
    spec = spec_of(**way)
    with pytest.raises(TopologyError, match=sentence):
        {**transmitter(spec, spec.forward), **propagation(spec, spec.forward)}


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(TopologyError, match="no backend 'magic', only emulator, netem"):
        topos["leo"](backend="magic")


@pytest.mark.root
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc")
class TestOnThisKernel:
    def test_the_link_is_as_asked_or_the_lab_does_not_start(self) -> None:
        lab = Lab(topos["italsat"](backend="netem", rtt_s=0.1))
        try:
            lab.start()
        except TopologyError as error:
            assert "is not shaped as asked" in str(error)
            assert lab.keeper_pid is None
            return
        pids = lab_processes(lab)
        try:
            done = lab.host("server").run(["ping", "-n", "-c3", "-i.1", "client"], timeout=30)
            took_ms = [float(line.split()[0]) for line in done.stdout.split("time=")[1:]]
            assert 100 <= min(took_ms) <= 110
        finally:
            lab.stop()
        assert_nothing_left(lab.name, pids)
