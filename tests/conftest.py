"""What holds for all tests."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import running_server
from xftp.server import Server

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their children too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no bug: what generated tests show does not depend on how long they take.
settings.register_profile("xftp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xftp")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give an empty directory for a server."""
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Give an empty directory for a client."""
    path = tmp_path / "here"
    path.mkdir()
    return path


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    """Run a server of `root` in this event loop."""
    async with running_server(root) as running:
        yield running
