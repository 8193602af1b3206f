"""Ports for data connections are drawn so that nobody can tell the next one."""

from __future__ import annotations

import itertools

from xftp.transport.ports import PassivePorts, ephemeral_ports


def drawn(ports: PassivePorts, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(ports.candidates()[0])
        ports.used(found[-1])
    return found


def test_used_ports_rest() -> None:
    found = drawn(PassivePorts(range(5000, 5020)), 1000)
    assert set(found) == set(range(5000, 5020))
    for at in range(len(found) - 10):
        assert len(set(found[at : at + 11])) == 11


def test_all_ports_of_a_range_are_tried() -> None:
    ports = PassivePorts(range(5000, 5010))
    drawn(ports, 100)
    assert sorted(ports.candidates()) == list(range(5000, 5010))
    assert PassivePorts((5000,)).candidates() == [5000]
    single = PassivePorts((5000,))
    single.used(5000)
    assert single.candidates() == [5000]


def test_any_port() -> None:
    ports = PassivePorts()
    found = drawn(ports, 1000)
    assert len(set(found)) == 1000
    assert set(found) <= set(ephemeral_ports())
    assert ports.candidates()[-1] == 0


def test_draws_have_no_pattern() -> None:
    """Neither order nor steps: a counter, however it starts or wraps, has few different steps."""
    found = drawn(PassivePorts(range(20_000, 60_000)), 500)
    steps = {later - earlier for earlier, later in itertools.pairwise(found)}
    assert len(steps) > 450
    rises = sum(later > earlier for earlier, later in itertools.pairwise(found))
    assert 150 < rises < 350
