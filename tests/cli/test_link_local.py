"""Hosts that have no other address than a link-local one, as two laptops and a cable have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.emulated_path import path
from mininet_topos.links import Way
from tests.cli.conftest import Client, running_daemon

DEVICE, ADDRESS = "near", "fe80::1"
DATA = os.urandom(1_000_000)

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="needs /dev/net/tun"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs the ip command (iproute2)"),
]


@pytest.fixture
def cable() -> Iterator[None]:
    """Be in a network namespace with a link-local address."""
    with path(Way(), Way()) as link, link.client.entered():
        for command in (
            f"link add {DEVICE} type veth peer name far",
            f"link set {DEVICE} up",
            "link set far up",
            f"address add {ADDRESS}/64 dev {DEVICE} nodad",
        ):
            subprocess.run(["ip", *command.split()], check=True)
        yield


@pytest.mark.parametrize("way", ["--passive", "--active", "--assume-xftpd"])
@pytest.mark.parametrize("connections", ["1", "4"])
def test_files_move_both_ways(
    cable: None, xftp: Client, tmp_path: Path, way: str, connections: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(DATA)
    with running_daemon(root, "--host", "::") as address:
        port = address.rpartition(":")[2]
        url = f"ftp://[{ADDRESS}%25{DEVICE}]:{port}/"
        xftp("get", "-n", connections, way, url + "there")
        assert (xftp.here / "there").read_bytes() == DATA
        xftp("put", "-n", connections, way, "there", url + "back")
    assert (root / "back").read_bytes() == DATA
