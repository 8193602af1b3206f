"""The initial window by a route: granted, shared, put back whatever happens."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.emulated_path import CLIENT, SERVER, Link
from tuning import TuningError, granted
from tuning.routes import (
    PROTOCOL,
    RouteWindow,
    leftovers,
    may_change_routes,
    remove_leftovers,
)
from tuning.rtnetlink import host_routes

from .route_support import inside_client, needs_routes, routes_of
from .support import unprivileged

pytestmark = needs_routes

WAITS_WITH_WINDOW = """
import sys
from tuning.routes import RouteWindow
window = RouteWindow(sys.argv[1])
window.set(int(sys.argv[2]))
print("set", flush=True)
sys.stdin.read()
window.close()
"""


@pytest.fixture
def link() -> Iterator[Link]:
    with inside_client() as made:
        yield made


@contextmanager
def another_process(host: str, segments: int) -> Iterator[subprocess.Popen[str]]:
    """Have a process that uses a window until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS_WITH_WINDOW, host, str(segments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "set\n"
        yield process
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()


def initial_windows(link: Link) -> tuple[int | None, int | None]:
    """Connect to the other end; give what both sockets begin with."""
    with link.server.entered():
        listener = socket.create_server((SERVER, 0))
    with listener, socket.create_connection(listener.getsockname(), timeout=10) as active:
        passive, _ = listener.accept()
        with passive:
            return granted(active).initial_window_segments, granted(passive).initial_window_segments


@pytest.mark.parametrize("segments", [3, 40])
def test_connections_with_the_host_begin_with_it(link: Link, segments: int) -> None:
    before, usual = routes_of(), initial_windows(link)
    window = RouteWindow(SERVER)
    window.set(segments)
    window.set(segments)
    assert initial_windows(link) == (segments, usual[1])
    window.close()
    window.close()
    assert routes_of() == before
    assert initial_windows(link) == usual


def test_the_side_that_accepts_too(link: Link) -> None:
    with link.server.entered():
        window = RouteWindow(f"::ffff:{CLIENT}")
        window.set(25)
    assert initial_windows(link)[1] == 25
    with link.server.entered():
        window.close()
        assert host_routes(PROTOCOL) == []


def test_two_transfers_at_once(link: Link) -> None:
    before = routes_of()
    one, two = RouteWindow(SERVER), RouteWindow(SERVER)
    one.set(30)
    two.set(30)
    one.close()
    assert initial_windows(link)[0] == 30
    two.close()
    assert routes_of() == before


def test_two_processes_at_once(link: Link) -> None:
    before = routes_of()
    window = RouteWindow(SERVER)
    with another_process(SERVER, 30):
        window.set(30)
        with pytest.raises(TuningError, match="has initcwnd 30 in force"):
            RouteWindow(SERVER).set(31)
    assert initial_windows(link)[0] == 30, "the other has left, this one has not"
    window.close()
    assert routes_of() == before


def test_what_a_killed_process_left_is_found_and_removed(link: Link) -> None:
    link.client.run("ip", "route", "add", "192.0.2.0/24", "via", SERVER)
    before = routes_of()
    with another_process(SERVER, 30) as process:
        assert leftovers() == ()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
    assert leftovers() == (SERVER,)
    assert routes_of() != before
    window = RouteWindow("192.0.2.9")  # any other does it too
    window.set(20)
    assert leftovers() == ()
    assert [str(route.host) for route in host_routes(PROTOCOL)] == ["192.0.2.9"]
    window.close()
    assert routes_of() == before


def test_leftovers_are_removed_on_demand(link: Link) -> None:
    with another_process(SERVER, 30) as process:
        assert remove_leftovers() == (), "it is in use"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
    assert remove_leftovers() == (SERVER,)
    assert host_routes(PROTOCOL) == []


def test_it_is_taken_over_from_a_killed_process(link: Link) -> None:
    with another_process(SERVER, 30) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
    window = RouteWindow(SERVER)
    window.set(31)
    assert initial_windows(link)[0] == 31
    window.close()
    assert host_routes(PROTOCOL) == []


@pytest.mark.parametrize(
    ("host", "sentence"),
    [(CLIENT, "is this machine"), ("127.0.0.1", "is this machine"), ("192.0.2.1", "no route to")],
)
def test_hosts_that_have_no_such_route(link: Link, host: str, sentence: str) -> None:
    before = routes_of()
    for refuse in (RouteWindow(host).check, RouteWindow(host).set):
        with pytest.raises(TuningError, match=sentence):
            refuse(20)
    assert routes_of() == before


def test_without_the_right(link: Link) -> None:
    assert may_change_routes()
    with unprivileged():
        assert not may_change_routes()
        with pytest.raises(TuningError, match="needs CAP_NET_ADMIN"):
            RouteWindow(SERVER).set(20)


def test_another_window_later(link: Link) -> None:
    window = RouteWindow(SERVER)
    window.set(20)
    with pytest.raises(TuningError, match="has initcwnd 20 in force"):
        window.set(21)
    window.close()
    window.set(21)
    assert initial_windows(link)[0] == 21
    window.close()


def test_a_better_route_is_noticed(link: Link) -> None:
    """IPv6 has nothing better than the lowest metric, which somebody may have taken."""
    link.client.run("ip", "-6", "address", "add", "fd77::1/64", "dev", "long0", "nodad")
    link.client.run("ip", "-6", "route", "add", "fd77::2", "dev", "long0", "metric", "1")
    with pytest.raises(TuningError, match=r"could not be set|goes before"):
        RouteWindow("fd77::2").set(20)
    assert host_routes(PROTOCOL) == []


def test_names_that_anybody_may_give_do_no_harm(link: Link) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.bind("\0xftp/initcwnd/user/1:2:3:::/1")
        window = RouteWindow(SERVER)
        window.set(20)
        window.close()
    assert host_routes(PROTOCOL) == []


def test_the_mutex_is_waited_for_and_not_for_ever(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuning.routes._MUTEX_TIMEOUT_S", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        holder.bind("\0xftp/initcwnd/mutex")
        with pytest.raises(TuningError, match="has been changing routes"):
            RouteWindow(SERVER).set(20)
    assert host_routes(PROTOCOL) == []
