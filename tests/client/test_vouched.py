"""Downloads whose hash the server tells while they move: their final reply is not waited for."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from xftp.client import hashes, receiving
from xftp.client.options import Options
from xftp.client.series import Pair
from xftp.client.session import Session, connect
from xftp.errors import ConnectError
from xftp.protocol.replies import Reply
from xftp.server import Server
from xftp.server.control import ControlConnection

CONTENT = os.urandom(3_000_000)
WAIT_S = 20.0


@pytest.fixture
def root(root: Path) -> Path:
    (root / "file").write_bytes(CONTENT)
    return root


@pytest.fixture
def long_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every path count as a long one."""
    for module in (hashes, receiving):
        monkeypatch.setattr(module, "LONG_RTT_S", 0.0)


@pytest.fixture
def no_226(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let the server keep its 226 to itself; the event tells that it had one."""
    kept = asyncio.Event()
    reply = ControlConnection.reply

    def keep(self: ControlConnection, said: Reply) -> None:
        if said.code == 226:
            kept.set()
        else:
            reply(self, said)

    monkeypatch.setattr(ControlConnection, "reply", keep)
    return kept


def session_with(server: Server, trace: list[str], reply_timeout_s: float = 2.0) -> Session:
    options = Options(connections=4, trace=trace.append, reply_timeout_s=reply_timeout_s)
    return connect(f"ftp://127.0.0.1:{server.server_port}/", options=options)  # type: ignore[return-value]


@pytest.mark.usefixtures("long_path")
async def test_the_hash_stands_for_the_final_reply(
    server: Server, tmp_path: Path, no_226: asyncio.Event
) -> None:
    trace: list[str] = []
    async with asyncio.timeout(WAIT_S), session_with(server, trace) as session:
        report = await session.get("file", tmp_path / "copy")
        assert report is not None and report.framed
        assert (tmp_path / "copy").read_bytes() == CONTENT
        assert not any(line.startswith("< 226") for line in trace)
        await no_226.wait()  # by its receipts the server knows that all has arrived
    assert any(line.startswith("> HASB") for line in trace)


@pytest.mark.usefixtures("long_path")
async def test_the_session_goes_on(server: Server, tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), session_with(server, [], 10.0) as session:
        for name in ("a", "b", "c"):
            await session.get("file", tmp_path / name)
            assert (tmp_path / name).read_bytes() == CONTENT
        assert [entry.name for entry in await session.list()] == ["file"]


@pytest.mark.usefixtures("no_226")
async def test_on_a_short_path_the_final_reply_is_waited_for(
    server: Server, tmp_path: Path
) -> None:
    trace: list[str] = []
    async with asyncio.timeout(WAIT_S), session_with(server, trace, 0.5) as session:
        with pytest.raises(ConnectError):  # what was asked behind it has no answer either
            await session.get("file", tmp_path / "copy")
    assert not any(line.startswith("> HASB") for line in trace)


@pytest.mark.usefixtures("long_path")
async def test_a_file_that_grew_is_asked_for_again(
    server: Server, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of all of it says nothing of what moved: then the size that was told counts."""
    ask = hashes.RemoteFile.ask_beside

    def grown(self: hashes.RemoteFile) -> None:
        with (root / "file").open("ab") as file:
            file.write(b"more")
        ask(self)

    monkeypatch.setattr(hashes.RemoteFile, "ask_beside", grown)
    trace: list[str] = []
    async with asyncio.timeout(WAIT_S), session_with(server, trace, 10.0) as session:
        await session.get("file", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == CONTENT
    assert any(line.startswith("< 226") for line in trace)
    assert any(line.startswith(f"> RANG 0 {len(CONTENT) - 1}") for line in trace)


async def test_the_hashes_of_a_series_stand_for_its_final_reply(
    server: Server, root: Path, tmp_path: Path, no_226: asyncio.Event
) -> None:
    pairs = []
    for number in range(10):
        (root / f"small{number}").write_bytes(CONTENT[: 10_000 * number])
        pairs.append(Pair(tmp_path / f"small{number}", f"small{number}"))
    trace: list[str] = []
    async with asyncio.timeout(WAIT_S), session_with(server, trace) as session:
        result = await session.move_series("download", pairs)
        await no_226.wait()
    assert result is not None and not result.failures
    for number in range(10):
        assert (tmp_path / f"small{number}").read_bytes() == CONTENT[: 10_000 * number]
    assert not any(line.startswith("< 226") for line in trace)
