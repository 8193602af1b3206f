"""The programs in the hosts, tried on loopback."""

from __future__ import annotations

import json
import random
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyroute2", reason="the lab's extra is not installed")

from mininet_topos.running.hosts import module
from mininet_topos.running.inside import recorder, web

PROJECT = Path(__file__).parents[3]
TIMEOUT_S = 30


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended whatever happens."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(
    started: list[subprocess.Popen[str]], name: str, *arguments: str, ready: bool = True
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        module(name, *arguments), stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    started.append(process)
    assert process.stdout is not None
    if ready:
        assert select.select([process.stdout], [], [], TIMEOUT_S)[0]
        assert process.stdout.readline() == "ready\n"
    return process


def report_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    report: dict[str, Any] = json.loads(output.splitlines()[-1])
    return report


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def told(**more: object) -> str:
    return json.dumps({"address": "127.0.0.1", **more})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bulk", {"size_bytes": 300_000}),
        ("stripes", {"size_bytes": 300_000, "connections": 3, "chunk_bytes": 8192}),
        ("stripes", {"size_bytes": 100, "connections": 4, "chunk_bytes": 8192}),
    ],
)
def test_everything_that_is_sent_arrives(
    started: list[subprocess.Popen[str]], name: str, settings: dict[str, int]
) -> None:
    arguments = told(port=free_port(), congestion="reno", receive_buffer_bytes=32_768, **settings)
    receiver = start(started, name, "receive", arguments)
    sender = start(started, name, "send", arguments, ready=False)
    assert report_of(sender)["bytes"] == settings["size_bytes"]
    assert report_of(receiver)["bytes"] == settings["size_bytes"]


def test_bulk_for_a_time(started: list[subprocess.Popen[str]]) -> None:
    arguments = told(port=free_port(), duration_s=0.3)
    receiver = start(started, "bulk", "receive", arguments)
    sent = report_of(start(started, "bulk", "send", arguments))
    assert sent["seconds"] >= 0.3
    assert report_of(receiver)["bytes"] == sent["bytes"] > 0


def test_a_flow_without_end_tells_what_it_has_when_ended(
    started: list[subprocess.Popen[str]],
) -> None:
    arguments = told(port=free_port())
    receiver = start(started, "bulk", "receive", arguments)
    sender = start(started, "bulk", "send", arguments)
    sender.send_signal(signal.SIGTERM)
    assert report_of(sender)["bytes"] >= 0
    assert report_of(receiver)["bytes"] >= 0


def test_the_cut_pareto_has_the_mean_that_is_asked_for() -> None:
    smallest = web.scale_for_mean(12_000)
    assert web.cut_mean(smallest) == pytest.approx(12_000, rel=1e-6)
    dice = random.Random(7)
    sizes = [
        min(web.LARGEST_BYTES, smallest * dice.paretovariate(web.SHAPE)) for _ in range(200_000)
    ]
    assert sum(sizes) / len(sizes) == pytest.approx(12_000, rel=0.05)


def test_web_load(started: list[subprocess.Popen[str]]) -> None:
    arguments = told(
        port=free_port(), load_bps=8e6, mean_response_bytes=5_000, duration_s=0.5, seed=1
    )
    server = start(started, "web", "serve", arguments)
    browsed = report_of(start(started, "web", "browse", arguments))
    server.send_signal(signal.SIGTERM)
    served = report_of(server)
    assert browsed["responses"] == served["responses"] > 20
    assert browsed["bytes"] == served["bytes"]
    assert browsed["failed"] == 0


def test_the_recorder_sees_the_connections_of_its_ports(
    started: list[subprocess.Popen[str]],
) -> None:
    port = free_port()
    recording = start(started, "recorder", "0.02", f"mine={port}-{port}", "other=1-2")
    assert recording.stdout is not None
    rows: list[list[Any]] = []
    with (
        socket.create_server(("127.0.0.1", port)) as listener,
        socket.create_connection(("127.0.0.1", port)) as connection,
        listener.accept()[0] as accepted,
    ):
        connection.sendall(bytes(50_000))
        while not rows or rows[-1][2] < 50_000:
            assert select.select([recording.stdout], [], [], TIMEOUT_S)[0]
            rows.append(json.loads(recording.stdout.readline()))
            if select.select([accepted], [], [], 0)[0]:
                accepted.recv(100_000)
    recording.send_signal(signal.SIGTERM)
    assert report_of(recording)["samples"] >= 1
    assert {row[0] for row in rows} == {"mine"}
    assert rows[-1][1] <= time.monotonic()
    assert rows[-1][5] == 2  # both ends are on this host


def test_sums_remember_connections_that_closed() -> None:
    def one(cookie: int, port: int, acked: int) -> dict[str, Any]:
        info = {"tcpi_bytes_acked": acked, "tcpi_total_retrans": 1, "tcpi_snd_cwnd": 10}
        return {
            "idiag_sport": port,
            "idiag_dport": 9,
            "idiag_cookie": cookie,
            "attrs": [("INET_DIAG_INFO", info)],
        }

    flows = recorder.parse(["a=100-199", "b=200-299"])
    sums = {name: recorder.Sums() for name in flows}
    recorder.sample(flows, sums, [one(1, 100, 50), one(2, 199, 70), one(3, 200, 5)])
    recorder.sample(flows, sums, [one(1, 100, 60), one(4, 99, 1)])
    assert sums["a"].row(1.5) == [1.5, 130, 10, 2, 1]
    assert sums["b"].row(1.5) == [1.5, 5, 0, 1, 0]
