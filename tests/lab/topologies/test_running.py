"""Every topology, built: reached, as far away as asked, shaped, and gone without a trace."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from mininet_topos.namespaces import netlink
from mininet_topos.network import Host, Lab
from mininet_topos.tcp_settings import nineties
from mininet_topos.topologies import topos
from tests.lab.topologies.support import (
    assert_nothing_left,
    connected,
    exactly,
    lab_processes,
    needs_lab,
    network_of,
)
from tuning.tcp_info import tcp_info

pytestmark = needs_lab

PINGS = 5
PING_BYTES = 84
LEEWAY_S = 0.008
"""For a machine whose cores are busy; the fastest of the pings counts."""

PAIRS = {
    "acts_t1": [("server", "client", 0.560, [1.536e6] * 2)],
    "half_t1": [("server", "client", 0.580, [768e3] * 2)],
    "italsat": [("server", "client", 0.520, [2e6] * 2)],
    "hts_geo": [("server", "client", 0.600, [50e6, 5e6])],
    "leo": [("server", "client", 0.040, [200e6, 20e6])],
    "adalr": [("server", "client", 0.520, [2.048e6, 256e3])],
    "henderson1": [
        ("s1", "d1", 0.010, [1.5e6] * 2),
        ("s2", "d2", 0.600, [1.5e6] * 2),
        ("web_s", "web_d", 0.100, [1.5e6] * 2),
    ],
    "henderson2": [
        (f"s{number}", f"d{number}", rtt_s, [1.5e6] * 2)
        for number, rtt_s in enumerate((0.010, 0.020, 0.100, 0.200, 0.300, 0.600), start=1)
    ],
    "henderson3": [
        ("s0", "d0", 0.600, [1.5e6] * 10),
        ("s1", "d1", 0.010, [1.5e6] * 2),
        ("s5", "d5", 0.010, [1.5e6] * 2),
    ],
    "henderson_testbed": [
        ("server", "client", 0.600, [1.3e6] * 2),
        ("bg_s", "bg_d", 0.020, []),
    ],
    "adalr_fairness": [
        (f"s{number}", f"d{number}", rtt_s, [])
        for number, rtt_s in enumerate((0.025, 0.050, 0.100, 0.300, 0.400, 0.500), start=1)
    ],
}
"""Sender, receiver, RTT, and the slow rates that a ping is transmitted at on its way."""


def start_ping(sender: Host, receiver: str) -> subprocess.Popen[str]:
    command = ["ping", "-n", "-c", str(PINGS), "-i", "0.1", receiver]
    return sender.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_pings(lab: Lab, pairs: list[tuple[str, str, float, list[float]]]) -> None:
    """Check that all pairs at once are as far from each other as asked, by name."""
    pings = [start_ping(lab.host(sender), receiver) for sender, receiver, _, _ in pairs]
    for ping, (sender, receiver, rtt_s, rates_bps) in zip(pings, pairs, strict=True):
        said, _ = ping.communicate(timeout=60)
        took_s = [float(ms) / 1e3 for ms in re.findall(r"time=([\d.]+) ms", said)]
        assert len(took_s) == PINGS, f"{sender} to {receiver}: {said}"
        sent_s = sum(8 * PING_BYTES / rate for rate in [*rates_bps, *[10e6] * 4])
        assert rtt_s <= min(took_s) <= rtt_s + sent_s + LEEWAY_S, f"{sender} to {receiver}"


def check_tcp(lab: Lab, sender: str, receiver: str, rtt_s: float) -> None:
    """Check that a connection carries data both ways."""
    message = bytes(range(256)) * 8
    with connected(lab.host(receiver), lab.host(sender)) as (client, server):
        server.sendall(message)
        assert exactly(client, len(message)) == message
        client.sendall(message)
        assert exactly(server, len(message)) == message
        told = tcp_info(server)
    assert told is not None
    assert told.rtt_s >= rtt_s


@pytest.mark.parametrize("name", sorted(topos))
def test_hosts_reach_each_other_and_are_as_far_as_asked(name: str) -> None:
    pairs = PAIRS[name]
    with Lab(topos[name]()) as lab:
        check_pings(lab, pairs)
        check_tcp(lab, *pairs[-1][:3])
        label = "satellite" if "satellite" in lab.links else lab.topology.labels[0]
        counters = lab.links[label].counters()
        networks = {network_of(lab.host(node).pid) for node in lab.topology.nodes()}
    assert counters.forward.bytes_in >= PINGS * PING_BYTES
    assert counters.backward.bytes_in >= PINGS * PING_BYTES
    assert len(networks - {network_of(1)}) == len(lab.topology.nodes())


def test_the_description_is_complete_and_fits_json() -> None:
    with Lab(topos["acts_t1"](queue=40), tcp=nineties(sack=False)) as lab:
        told = json.loads(json.dumps(lab.describe()))
    assert told["source"] == lab.topology.source
    assert told["parameters"] == {"queue": "40"}
    specs = [link["spec"] for link in told["links"] if link["kind"] == "emulated"]
    assert specs == [link.spec.to_json() for link in lab.links.values()]
    wires = [link for link in told["links"] if link["kind"] == "veth"]
    assert [wire["rate_bps"] for wire in wires] == [10e6, 10e6]
    offloads = [
        state for wire in wires for end in wire["offloads"].values() for state in end.values()
    ]
    assert offloads == [False] * 12  # three of each end
    assert set(told["hosts"]) == {"server", "client"}
    assert told["hosts"]["server"]["sysctls"]["net.ipv4.tcp_sack"] == "0"
    assert any("NewReno" in note for note in told["hosts"]["client"]["deviations"])


def test_nothing_of_it_stays() -> None:
    with Lab(topos["henderson1"](), tcp=nineties(sack=True)) as lab:
        orphan = [
            "sh",
            "-c",
            "exec >&- 2>&-; setsid -f sleep 1000; exec setsid -f env -i sleep 1000",
        ]
        assert lab.host("s1").run(orphan, timeout=20).returncode == 0
        waited_for = lab.host("d1").popen(["sleep", "1000"])
        pids = lab_processes(lab)
        name = lab.name
        # keeper, 8 nodes, 4 emulators, 3 sleeps
        assert len(pids) == 1 + 8 + 4 + 3
    assert waited_for.wait() == -9
    assert_nothing_left(name, pids)
    lab.stop()  # again: nothing


def test_a_wire_is_no_faster_than_asked() -> None:
    """The T1's Ethernets, 10 Mbit/s: a burst over one of them takes its time."""
    size_bytes = 250_000
    with Lab(topos["acts_t1"]()) as lab:
        with connected(lab.host("r1"), lab.host("server")) as (client, server):
            began_s = time.monotonic()
            server.sendall(bytes(size_bytes))
            exactly(client, size_bytes)
            took_s = time.monotonic() - began_s
        assert took_s >= 0.95 * 8 * size_bytes / 10e6
        with netlink(lab.host("server").pid, "looking") as kernel:
            kinds = {qdisc.get_attr("TCA_KIND") for qdisc in kernel.get_qdiscs()}
    assert "tbf" in kinds
