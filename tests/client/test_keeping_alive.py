"""The control connection while data moves for long, and what is asked in the last flight."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import xftp
from tests.support import running_server
from xftp.client import moving
from xftp.server import Server
from xftp.transport.sockets import CONTROL_IDLE_S

from .scripted import epsv, scripted, sends, session_with

DATA = os.urandom(400_000)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(DATA)
    async with running_server(tmp_path / "root") as running:
        yield running


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "KEEP_ALIVE_S", 0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="the intervals are set on Linux only")
async def test_idle_control_connections_are_probed(server: Server) -> None:
    async with xftp.connect(f"ftp://127.0.0.1:{server.server_port}/") as session:
        sock = session._dialogue.control._ends[1].get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == CONTROL_IDLE_S


@pytest.mark.parametrize("way", ["down", "up"])
async def test_something_is_said_while_data_moves(
    server: Server, tmp_path: Path, often: None, way: str
) -> None:
    said: list[str] = []
    options = xftp.Options(limit_rate=400_000, trace=said.append)
    url = f"ftp://127.0.0.1:{server.server_port}/"
    async with xftp.connect(url, options=options) as session:
        if way == "down":
            await session.get("file", tmp_path / "here")
        else:
            (tmp_path / "here").write_bytes(DATA)
            await session.put(tmp_path / "here", "there")
        await session.pwd()  # replies and commands still belong together
    begun = next(index for index, line in enumerate(said) if line.startswith("< 150"))
    ended = next(index for index, line in enumerate(said) if line.startswith("< 226"))
    assert said[begun:ended].count("> STAT") >= 3
    assert any(line.startswith("< 211 Moving data: ") for line in said[begun:ended])
    assert (tmp_path / "here").read_bytes() == DATA


async def test_an_ordinary_server_is_left_in_peace(tmp_path: Path, often: None) -> None:
    """Many take whatever comes during a transfer for the wish to abort it."""
    script = {"EPSV": epsv, "RETR": sends(DATA)}
    async with scripted(script) as server, session_with(server, limit_rate=800_000) as session:
        await session.get("a", tmp_path / "a")
        assert not {"STAT", "NOOP"} & set(server.verbs())
    assert (tmp_path / "a").read_bytes() == DATA


async def test_hash_and_report_are_asked_in_one_flight(server: Server, tmp_path: Path) -> None:
    said: list[str] = []
    options = xftp.Options(report_sender=True, trace=said.append)
    url = f"ftp://127.0.0.1:{server.server_port}/"
    async with xftp.connect(url, options=options) as session:
        for name in ("one", "two"):
            report = await session.get("file", tmp_path / name)
            assert report is not None
            assert report.sender is not None
    asked = [line for line in said if line.startswith(("> HASH", "> SITE REPORT"))]
    assert asked == ["> HASH file", "> SITE REPORT"] * 2
    assert said.count("> SITE REPORT") == 2
    hashes = [index for index, line in enumerate(said) if line.endswith(" file") and "213" in line]
    assert said.index("> SITE REPORT") < min(hashes), "both left before an answer came"
