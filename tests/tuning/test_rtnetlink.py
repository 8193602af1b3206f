"""Routes of the kernel as rtnetlink tells them, beside what the ip command tells."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.emulated_path import CLIENT, SERVER, Link
from tuning import rtnetlink
from tuning.rtnetlink import INITCWND, RTN_UNICAST, Route, add, host_routes, look_up, remove

from .route_support import inside_client, needs_routes, routes_of
from .support import unprivileged

pytestmark = needs_routes

PROTOCOL = 211
"""Of nobody."""

HOST = ipaddress.ip_address(SERVER)


@pytest.fixture
def link() -> Iterator[Link]:
    with inside_client() as made:
        yield made


def test_a_route_is_looked_up(link: Link) -> None:
    link.client.run("ip", "route", "change", SERVER, "dev", "long0", "src", CLIENT, "quickack", "1")
    found = look_up(HOST)
    assert (found.host, found.kind, found.table) == (HOST, RTN_UNICAST, 254)
    assert found.source == ipaddress.ip_address(CLIENT).packed
    assert found.metrics == ((15, 1),)  # RTAX_QUICKACK
    assert found.initial_window_segments is None


def test_a_copy_goes_first_and_is_removed_again(link: Link) -> None:
    before = routes_of()
    route = replace(look_up(HOST).with_initial_window(33), protocol=PROTOCOL)
    add(route)
    assert f"{SERVER} dev long0 proto {PROTOCOL} scope link src {CLIENT} initcwnd 33" in routes_of()
    assert look_up(HOST).initial_window_segments == 33
    assert host_routes(PROTOCOL) == [route]
    assert host_routes(PROTOCOL + 1) == []
    assert remove(route)
    assert not remove(route)
    assert routes_of() == before


def test_a_way_over_a_gateway(link: Link) -> None:
    link.client.run("ip", "route", "add", "192.0.2.0/24", "via", SERVER, "advmss", "1000")
    host = ipaddress.ip_address("192.0.2.9")
    route = replace(look_up(host).with_initial_window(20), protocol=PROTOCOL)
    add(route)
    line = next(line for line in routes_of().splitlines() if line.startswith("192.0.2.9 "))
    for word in (f"via {SERVER}", "initcwnd 20", "advmss 1000"):
        assert word in line
    assert remove(route)


def test_a_route_of_another_table(link: Link) -> None:
    link.client.run("ip", "route", "add", "192.0.2.0/24", "via", SERVER, "table", "77")
    link.client.run("ip", "rule", "add", "to", "192.0.2.0/24", "lookup", "77")
    host = ipaddress.ip_address("192.0.2.9")
    found = look_up(host)
    assert found.table == 77
    add(replace(found.with_initial_window(20), protocol=PROTOCOL))
    assert look_up(host).initial_window_segments == 20
    (listed,) = host_routes(PROTOCOL)
    assert listed.table == 77
    assert remove(listed)


@pytest.mark.parametrize("address", ["fd77::2", "2001:db8::1"])
def test_ipv6(link: Link, address: str) -> None:
    link.client.run("ip", "-6", "address", "add", "fd77::1/64", "dev", "long0", "nodad")
    link.client.run("ip", "-6", "route", "add", "default", "via", "fd77::9", "dev", "long0")
    before = routes_of(6)
    host = ipaddress.ip_address(address)
    route = replace(look_up(host).with_initial_window(12), protocol=PROTOCOL, priority=1)
    add(route)
    assert look_up(host).initial_window_segments == 12
    assert host_routes(PROTOCOL) == [route]
    assert remove(route)
    assert routes_of(6) == before


def test_no_way(link: Link) -> None:
    with pytest.raises(OSError, match="unreachable") as refused:
        look_up(ipaddress.ip_address("192.0.2.1"))
    assert refused.value.errno == errno.ENETUNREACH


def test_only_an_administrator_may(link: Link) -> None:
    route = replace(look_up(HOST).with_initial_window(33), protocol=PROTOCOL)
    with unprivileged(), pytest.raises(PermissionError):
        add(route)


def test_what_path_mtu_discovery_learnt_is_not_made_lasting() -> None:
    learnt = Route(HOST, metrics=((2, 1400), (8, 1360)))
    assert learnt.with_initial_window(5).metrics == ((8, 1360), (INITCWND, 5))


@pytest.mark.parametrize("data", [b"\x03\0\x01\0", b"\x02\0\0\0"])
def test_a_broken_answer_is_an_error(data: bytes) -> None:
    with pytest.raises(OSError, match="cannot be read"):
        list(rtnetlink._attributes(data))
