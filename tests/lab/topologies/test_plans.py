"""Topologies as plans: nothing is built, so no root is needed."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

import pytest

from mininet_topos.errors import LinkError, TopologyError
from mininet_topos.links import PacketLoss, Queue, Red
from mininet_topos.topologies import topos
from mininet_topos.topology.base import LabTopo
from mininet_topos.topology.nodes import Router

EVERY = pytest.mark.parametrize("name", sorted(topos))


def addresses(topology: LabTopo) -> dict[str, list[ipaddress.IPv4Interface]]:
    """Give the addresses of every node, in the order of its ports."""
    found: dict[str, list[ipaddress.IPv4Interface]] = {node: [] for node in topology.nodes()}
    for left, right, info in topology.links(withInfo=True):
        for node, address in zip((left, right), info["addresses"], strict=True):
            found[node].append(ipaddress.IPv4Interface(address))
    return found


def path(topology: LabTopo, start: str, target: ipaddress.IPv4Address) -> list[str]:
    """Follow the routes from a node until one has the address."""
    owned = addresses(topology)
    holder = {one.ip: node for node, ones in owned.items() for one in ones}
    passed = [start]
    while target not in {one.ip for one in owned[passed[-1]]}:
        node = passed[-1]
        if any(target in one.network for one in owned[node]):
            passed.append(holder[target])
            continue
        for route in topology.g.node[node]["routes"]:
            prefix = "0.0.0.0/0" if route.destination == "default" else route.destination
            if target in ipaddress.ip_network(prefix):
                passed.append(holder[ipaddress.IPv4Address(route.gateway)])
                break
        else:
            pytest.fail(f"{node} has no route to {target}")
        assert len(passed) <= len(owned), f"the routes go round: {passed}"
    return passed


@EVERY
def test_every_node_reaches_every_address(name: str) -> None:
    topology = topos[name]()
    owned = addresses(topology)
    for start, end in itertools.permutations(owned, 2):
        for address in owned[end]:
            assert path(topology, start, address.ip)[-1] == end


@EVERY
def test_only_routers_are_passed(name: str) -> None:
    topology = topos[name]()
    owned = addresses(topology)
    for start, end in itertools.permutations(topology.host_names, 2):
        for passed in path(topology, start, owned[end][0].ip)[1:-1]:
            assert topology.nodeInfo(passed)["cls"] is Router


@EVERY
def test_addresses_and_interfaces_are_unique_and_valid(name: str) -> None:
    topology = topos[name]()
    every = [one.ip for ones in addresses(topology).values() for one in ones]
    assert len(set(every)) == len(every)
    longest = max(len(f"{node}-eth{len(topology.nodes())}") for node in topology.nodes())
    assert longest <= 15  # IFNAMSIZ of linux/if.h, less its NUL


@EVERY
def test_the_docstring_draws_every_host_and_the_source_is_named(name: str) -> None:
    kind = topos[name]
    assert kind.source
    assert kind.__doc__ is not None
    drawing = kind.__doc__
    for host in kind().host_names:
        # Henderson's third has as many pairs as gateways: the drawing shows the first ones.
        if name != "henderson3" or host[1:] in {"0", "1", "2", "3"}:
            assert host in drawing, f"{host} is not drawn"


def test_the_long_connection_of_the_third_crosses_every_congested_gateway() -> None:
    topology = topos["henderson3"](gateways=4)
    long_way = path(topology, "s0", addresses(topology)["d0"][0].ip)
    assert long_way == ["s0", "g0", "g1", "g2", "g3", "g4", "d0"]
    short_way = path(topology, "s3", addresses(topology)["d3"][0].ip)
    assert short_way == ["s3", "g2", "g3", "d3"]


def test_a_satellite_link_has_the_queue_and_loss_that_were_asked_for() -> None:
    topology = topos["acts_t1"](queue=40, loss=0.01)
    spec = topology.linkInfo("r1", "r2")["spec"]
    assert spec.forward.queue == Queue(packets=40)
    assert spec.forward.loss == PacketLoss(probability=0.01)
    red = Red(min_packets=20, max_packets=40, limit_packets=50)
    assert topos["henderson2"](queue=red).linkInfo("a", "b")["spec"].forward.queue == red


@pytest.mark.parametrize(
    ("name", "parameters", "error", "sentence"),
    [
        ("acts_t1", {"queue": 0}, LinkError, "queue"),
        ("acts_t1", {"loss": 2.0}, LinkError, "probability"),
        ("acts_t1", {"rtt_s": -1.0}, LinkError, "delay"),
        ("acts_t1", {"ethernet_bps": 0}, TopologyError, "carries nothing"),
        ("leo", {"queu": 40}, TopologyError, "Leo has no queu; it has queue, loss"),
        ("adalr", {"forward_bps": 0.0}, LinkError, "rate of 0"),
        ("henderson1", {"long_rtt_s": 0.001}, TopologyError, "0.001 s is below the 0.005 s"),
        ("henderson3", {"gateways": 0}, TopologyError, "1 to 10"),
        ("henderson3", {"gateways": 11}, TopologyError, "1 to 10"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(
    name: str, parameters: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        topos[name](**parameters)


class Wrong(LabTopo):
    """Built by the test."""

    def build(self, what: str = "") -> None:
        self.host("one")
        self.host("two")
        if what == "twice":
            self.host("one")
        if what == "long":
            self.host("a_very_long_name")
        if what == "nowhere":
            self.wire("one", "three")
        if what == "same link":
            self.wire("one", "two")
            self.wire("one", "two")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("twice", "two nodes named 'one'"),
        ("long", "up to 10 letters"),
        ("nowhere", "'three', which is no node"),
        ("same link", "two links named 'one-two'"),
        ("", "'one' has no link"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(what: str, sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        Wrong(what=what)
