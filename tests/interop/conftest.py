"""Daemons that run as long as the tests do, and a place in one for each test."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .programs import IPV4, PASSWORD, USER, XFTPD, Daemon, Site, running, wait_for

_LISTENING = re.compile(r"^listening on \S+:([0-9]+)$", re.MULTILINE)


@contextlib.contextmanager
def _xftpd(host: str, folder: Path) -> Iterator[Daemon]:
    """Run our daemon; it logs every command and reply."""
    root = folder / "root"
    root.mkdir(parents=True)
    log = folder / "xftpd.log"
    command = [*XFTPD, "--root", str(root), "--host", host, "--port", "0", "-vv"]
    command += ["--anonymous", "--writable", "--user", f"{USER}:{PASSWORD}"]
    with running(command, cwd=folder, log=log) as process:

        def port() -> int | None:
            assert process.poll() is None, f"xftpd did not start:\n{log.read_text()}"
            found = _LISTENING.search(log.read_text())
            return int(found[1]) if found else None

        yield Daemon(host, wait_for(port, "xftpd listens") or 0, root, log)


@pytest.fixture(scope="session")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Daemon]]:
    """Give our daemon on a host, started when it is first asked for."""
    known: dict[str, Daemon] = {}
    with contextlib.ExitStack() as stack:

        def on(host: str) -> Daemon:
            if host not in known:
                folder = tmp_path_factory.mktemp("xftpd")
                known[host] = stack.enter_context(_xftpd(host, folder))
            return known[host]

        yield on


@pytest.fixture
def site(
    request: pytest.FixtureRequest, tmp_path: Path, daemons: Callable[[str], Daemon]
) -> Iterator[Site]:
    """Give a place on our daemon; `both_families` chooses its host."""
    host = getattr(request, "param", IPV4)
    if ":" in host and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    daemon = daemons(host)
    there = daemon.root / tmp_path.name
    there.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    site = Site(daemon, there, here, daemon.log.stat().st_size)
    yield site
    log = site.log()
    print(log)  # pytest shows it if the test failed
    assert "Traceback" not in log, "the daemon met something it did not expect"


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
