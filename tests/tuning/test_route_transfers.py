"""The initial window by a route, in transfers of the real programs between two hosts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.emulated_path import SERVER, Link, path
from bench.knobs import download
from bench.peers import Place, find, xftpd
from bench.runner import workplace, write_random
from bench.wire import segments
from mininet_topos.links import Way
from tuning import granted
from tuning.routes import PROTOCOL
from tuning.rtnetlink import host_routes

from .route_support import needs_routes

pytestmark = [*needs_routes, pytest.mark.slow]

RTT_S = 0.2
WAIT_S = 30.0
SEGMENT_BYTES = 1448


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with workplace(tmp_path, 1 << 24) as made:
        write_random(made.root / "file", 300_000)
        yield made


def routes_left(link: Link) -> list[object]:
    """Give the routes of ours in both hosts."""
    left: list[object] = []
    for namespace in (link.client, link.server):
        with namespace.entered():
            left += host_routes(PROTOCOL)
    return left


@pytest.mark.parametrize("algorithm", ["cubic", "reno"])
def test_the_first_flight_of_a_download(place: Place, tmp_path: Path, algorithm: str) -> None:
    """The daemon, asked with OPTS MULT, changes its route; nothing is missing if strict."""
    capture = tmp_path / "capture"
    asked = ("-n1", "--cc", algorithm, "--initial-window", "33", "--strict-tuning")
    ways = Way(delay_s=RTT_S / 2), Way(delay_s=RTT_S / 2)
    with path(*ways, acknowledge_all=True, capture=capture) as link:
        run = download(link, place, place.root / "file", asked)
        assert routes_left(link) == []
    sent = [s for s in segments(capture) if s.source[0] == SERVER]
    carried: dict[int, int] = {}
    for segment in sent:
        port = segment.source[1]
        carried[port] = carried.get(port, 0) + segment.payload_bytes
    port = max(carried, key=lambda each: carried[each])
    data = [s for s in sent if s.source[1] == port and s.payload_bytes]
    first_flight = [s.payload_bytes for s in data if s.at_s < data[0].at_s + 0.9 * RTT_S]
    assert first_flight == [SEGMENT_BYTES] * 33
    server = run.report["sender"]["connections"][0]["socket"]
    assert (server["congestion"], server["initial_window_segments"]) == (algorithm, 33)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, None])
def test_an_upload_that_is_cut_puts_the_route_back(
    place: Place, ending: signal.Signals | None
) -> None:
    """By a signal, or by a server that is gone."""
    slow = Way(delay_s=0.05, rate_bps=400_000)
    with (
        path(slow, Way(delay_s=0.05)) as link,
        link.server.entered(),
        xftpd(place, SERVER) as server,
        link.client.entered(),
    ):
        url = f"ftp://{SERVER}:{server.port}/new"
        asked = ["--cc", "cubic", "--initial-window", "25"]
        client = subprocess.Popen(
            [find("xftp"), "put", "-n2", *asked, str(place.root / "file"), url],
            env=dict(place.environment),
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        try:
            wait_for_route(SERVER, 25)
            with socket.create_connection((SERVER, server.port), WAIT_S) as other:
                assert granted(other).initial_window_segments == 25
            if ending is None:
                os.kill(server.pid, signal.SIGKILL)
            else:
                client.send_signal(ending)
            client.communicate(timeout=WAIT_S)
        finally:
            client.kill()
            client.communicate()
        assert client.returncode != 0
        assert host_routes(PROTOCOL) == []


def wait_for_route(host: str, segments_: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while [(str(r.host), r.initial_window_segments) for r in host_routes(PROTOCOL)] != [
        (host, segments_)
    ]:
        assert time.monotonic() < deadline_s, "no route was set"
        time.sleep(0.01)
