"""Servers that run as long as the tests do, and a place in one for each test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .programs import IPV4, Daemon, Site
from .servers import Server, has_ipv6, xftpd

Daemons = Callable[[Server, str], Daemon]


@pytest.fixture(scope="session")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    """Give a server on a host, started when it is first asked for."""
    known: dict[tuple[Server, str], Daemon] = {}
    with contextlib.ExitStack() as stack:

        def on(server: Server, host: str) -> Daemon:
            if (server, host) not in known:
                if ":" in host and not has_ipv6():
                    pytest.skip("this machine has no IPv6")
                folder = tmp_path_factory.mktemp("server")
                known[server, host] = stack.enter_context(server(host, folder))
            return known[server, host]

        yield on


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path, daemons: Daemons) -> Iterator[Site]:
    """Give a place on our daemon; `both_families` chooses its host."""
    site = _place(daemons(xftpd, getattr(request, "param", IPV4)), tmp_path)
    yield site
    site.wait_until_left()
    log = site.log()
    print(log)  # pytest shows it if the test failed
    assert "Traceback" not in log, "the daemon met something it did not expect"


@pytest.fixture
def foreign_site(request: pytest.FixtureRequest, tmp_path: Path, daemons: Daemons) -> Site:
    """Give a place on a server of somebody else; its parameter is (server, host)."""
    server, host = request.param
    return _place(daemons(server, host), tmp_path)


def _place(daemon: Daemon, folder: Path) -> Site:
    there = daemon.root / folder.name
    there.mkdir()
    there.chmod(0o777)  # vsftpd serves as a user of its own
    here = folder / "here"
    here.mkdir()
    return Site(daemon, there, here, daemon.log.stat().st_size)
