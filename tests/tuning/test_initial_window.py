"""The initial window by whichever means there is."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bench.emulated_path import CLIENT, SERVER, Link
from tuning import SocketTuning, TuningError
from tuning.congestion import ALGORITHMS, ParameterMap, choose
from tuning.initial_window import InitialWindow
from tuning.routes import PROTOCOL
from tuning.rtnetlink import host_routes

from .route_support import inside_client, needs_routes
from .support import unprivileged

pytestmark = needs_routes


@pytest.fixture
def link() -> Iterator[Link]:
    with inside_client() as made:
        yield made


@pytest.fixture
def sock(link: Link) -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        yield made


def test_a_route_for_an_algorithm_of_the_kernel(sock: socket.socket) -> None:
    window = InitialWindow(None, SERVER)
    asked = SocketTuning(congestion="reno", initial_window_segments=40)
    assert asked.apply(sock, set_initial_window=window.set) == ()
    assert [route.initial_window_segments for route in host_routes(PROTOCOL)] == [40]
    window.close()
    window.close()
    assert host_routes(PROTOCOL) == []


def test_a_trial_changes_nothing(sock: socket.socket) -> None:
    for host in (SERVER, None):
        InitialWindow(None, host, is_trial=True).set(sock, 40)
    assert host_routes(PROTOCOL) == []


@pytest.mark.parametrize("is_trial", [True, False])
def test_no_means(sock: socket.socket, is_trial: bool) -> None:
    """Neither a route, for this machine or without the right, nor an algorithm that is loaded."""
    with pytest.raises(TuningError, match=r"is this machine.*: python -m tuning load$"):
        InitialWindow(None, CLIENT, is_trial=is_trial).set(sock, 40)
    with unprivileged(), pytest.raises(TuningError, match="or a route's initcwnd"):
        InitialWindow(None, SERVER, is_trial=is_trial).set(sock, 40)
    if not is_trial:
        with pytest.raises(TuningError, match="or a route's initcwnd"):
            InitialWindow(None, None).set(sock, 40)
    assert host_routes(PROTOCOL) == []


def test_an_algorithm_of_ours_goes_by_its_own_window(
    sock: socket.socket, parameter_map: ParameterMap
) -> None:
    choose(sock, "xftp_abc")
    window = InitialWindow(parameter_map, SERVER)
    window.set(sock, 40)
    told = parameter_map.get(sock)
    assert told is not None
    assert told.initial_window_segments == 40
    assert host_routes(PROTOCOL) == []
    with pytest.raises(TuningError, match="needs a loaded algorithm"):
        InitialWindow(None, SERVER).set(sock, 40)  # the route would be of no use to it


def test_what_is_loaded_is_named(sock: socket.socket, parameter_map: ParameterMap) -> None:
    with pytest.raises(TuningError, match=f"is this machine.*choose one of .*{min(ALGORITHMS)}"):
        InitialWindow(parameter_map, CLIENT).set(sock, 40)
    with unprivileged(), pytest.raises(TuningError, match="reno takes no initial window"):
        InitialWindow(parameter_map, SERVER).set(sock, 40)
