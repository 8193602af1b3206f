"""Tests marked `root` need network namespaces and TUN devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not Path("/dev/net/tun").exists():
        return "this machine has no /dev/net/tun"
    return None


@pytest.fixture(autouse=True)
def _root_and_tun(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and (reason := _missing()):
        pytest.skip(reason)
