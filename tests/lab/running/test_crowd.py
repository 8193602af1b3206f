"""Transfers at once, tried on loopback."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyroute2", reason="the lab's extra is not installed")

from mininet_topos.running.hosts import module
from mininet_topos.running.inside import crowd

PROJECT = Path(__file__).parents[3]
TIMEOUT_S = 60


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended whatever happens."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[str]], end: str, told: dict[str, Any]) -> Any:
    process = subprocess.Popen(
        module("crowd", end, json.dumps(told)), stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    started.append(process)
    return process


def receiver_for(started: list[subprocess.Popen[str]], told: dict[str, Any]) -> Any:
    process = start(started, "receive", told)
    assert select.select([process.stdout], [], [], TIMEOUT_S)[0]
    assert process.stdout.readline() == "ready\n"
    return process


def report_of(process: Any) -> dict[str, Any]:
    output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    report: dict[str, Any] = json.loads(output.splitlines()[-1])
    return report


def told(**more: Any) -> dict[str, Any]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"address": "127.0.0.1", "port": probe.getsockname()[1], **more}


def test_every_transfer_arrives_and_has_its_times(started: list[subprocess.Popen[str]]) -> None:
    settings = told(size_bytes=100_000, transfers=5, congestion="reno", window_bytes=20_000)
    receiver = receiver_for(started, settings)
    sent = report_of(start(started, "send", settings))
    received = report_of(receiver)
    assert sent["bytes"] == received["bytes"] == 500_000
    assert len(received["arrived_s"]) == 5
    assert sent["established_s"].keys() == received["arrived_s"].keys()
    for port, established_s in sent["established_s"].items():
        assert received["arrived_s"][port] > established_s


def test_a_receiver_that_is_ended_tells_what_it_has(started: list[subprocess.Popen[str]]) -> None:
    settings = told(size_bytes=1000, transfers=2)
    receiver = receiver_for(started, settings)
    with socket.create_connection((settings["address"], settings["port"])) as only:
        only.sendall(bytes(10))
        receiver.send_signal(signal.SIGTERM)
        assert report_of(receiver)["bytes"] in (0, 10)


def test_a_clamp_is_what_the_kernel_tells_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address), listener.accept()[0] as accepted:
            crowd.clamp_window(accepted, 20_000)
            clamp = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)
    assert clamp == 20_000
