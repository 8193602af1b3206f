"""The real programs over an emulated path on which connections break, fall silent and come back."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import peers
from bench.emulated_path import SERVER, Host, Link, path
from mininet_topos.links import Queue, Way

SIZE = 4_000_000
RATE_BPS = 10e6
WAIT_S = 60.0


def missing() -> str | None:
    if os.geteuid() != 0:
        return "needs root: makes network namespaces"
    if not Path("/dev/net/tun").exists() or shutil.which("ss") is None:
        return "needs /dev/net/tun and iproute2"
    return None


pytestmark = [pytest.mark.root, pytest.mark.skipif(missing() is not None, reason=missing() or "")]


@contextmanager
def long_path() -> Iterator[Link]:
    way = Way(delay_s=0.02, rate_bps=RATE_BPS, queue=Queue(bytes=100_000))
    with path(way, way) as link:
        yield link


def output(host: Host, *command: str) -> str:
    with host.entered():
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def busiest(link: Link, control_port: int) -> tuple[str, str]:
    """Give the ports of the data connection that moved most, the client's and the server's."""
    found = []
    lines = output(link.client, "ss", "-tniH", "state", "established").splitlines()
    for connection, details in zip(lines[::2], lines[1::2], strict=True):
        local, peer = (int(place.rpartition(":")[2]) for place in connection.split()[2:4])
        if control_port not in (local, peer):
            moved = re.findall(r"bytes_(?:sent|received):(\d+)", details)
            found.append((sum(map(int, moved)), str(local), str(peer)))
    _, ours, theirs = max(found)
    return ours, theirs


def reset_one(link: Link, control_port: int) -> None:
    ours, theirs = busiest(link, control_port)
    output(link.client, "ss", "-K", "-tn", f"sport = :{ours} and dport = :{theirs}")


def silence_one(link: Link, control_port: int) -> None:
    """Let nothing of one connection pass any more."""
    ours, theirs = busiest(link, control_port)
    rule = ("ip", "rule", "add", "pref", "5", "ipproto", "tcp")
    output(link.client, *rule, "sport", ours, "dport", theirs, "blackhole")
    output(link.server, *rule, "sport", theirs, "dport", ours, "blackhole")


def silence_all_for_a_while(link: Link, control_port: int) -> None:
    rule = ("pref", "5", "ipproto", "tcp", "blackhole")
    for host in (link.client, link.server):
        output(host, "ip", "rule", "add", *rule)
    time.sleep(4.0)
    for host in (link.client, link.server):
        output(host, "ip", "rule", "del", *rule)


@pytest.mark.parametrize(
    ("fault", "command", "mode"),
    [
        (reset_one, "get", "--passive"),
        (reset_one, "put", "--active"),
        (silence_one, "get", "--passive"),
        (silence_one, "put", "--active"),
        (silence_all_for_a_while, "get", "--passive"),
    ],
)
def test_the_transfer_goes_on(
    tmp_path: Path, fault: Callable[[Link, int], None], command: str, mode: str
) -> None:
    served, home = tmp_path / "served", tmp_path / "home"
    served.mkdir()
    home.mkdir()
    source, target = (served, home) if command == "get" else (home, served)
    data = random.Random(7).randbytes(SIZE)
    (source / "file").write_bytes(data)
    environment = dict(os.environ) | {"HOME": str(home)}
    place = peers.Place(served, home, environment)
    with (
        long_path() as link,
        link.server.entered(),
        peers.xftpd(place, SERVER) as server,
        link.client.entered(),
    ):
        url = f"ftp://{SERVER}:{server.port}/file"
        ends = [url] if command == "get" else ["file", url]
        process = subprocess.Popen(
            [peers.find("xftp"), command, "--json", "-n", "4", mode, *ends],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            part = target / "file.xftp.part"
            deadline_s = time.monotonic() + WAIT_S
            while not (part.exists() and part.stat().st_blocks * 512 > SIZE / 5):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            fault(link, server.port)
            out, said = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0, said.decode()
    assert hashlib.sha256((target / "file").read_bytes()).digest() == hashlib.sha256(data).digest()
    report = json.loads(out)
    if fault is reset_one:
        assert report["lost_connections"] >= 1
        assert len(report["connections"]) > 4, "it was replaced"
