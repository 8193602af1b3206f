"""Two hosts whose routes a test may change."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.emulated_path import Link, path
from mininet_topos.links import Way


def missing() -> str | None:
    """Say what this machine lacks for these tests."""
    if os.geteuid() != 0:
        return "needs root: makes network namespaces and routes"
    if not Path("/dev/net/tun").exists() or shutil.which("ip") is None:
        return "needs /dev/net/tun and the ip command"
    return None


needs_routes = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@contextmanager
def inside_client() -> Iterator[Link]:
    """Be in a network namespace with a route to another, 20 ms away."""
    with path(Way(delay_s=0.01), Way(delay_s=0.01)) as link, link.client.entered():
        yield link


def routes_of(version: int = 4) -> str:
    """Give what the ip command says of this thread's namespace."""
    command = ["ip", f"-{version}", "route", "show"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
