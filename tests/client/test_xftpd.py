"""Our client and our server: records over several connections, both ways."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import xftp
from xftp.client.session import Session
from xftp.errors import FileError, ReplyError, TransferAborted
from xftp.server import Server
from xftp.transport.kept import working_names

from ..support import running_server
from .scripted import names
from .test_download import Watch

DATA = os.urandom(3_000_001)


def connect(server: Server, **options: object) -> object:
    url = f"ftp://127.0.0.1:{server.server_port}/"
    return xftp.connect(url, options=xftp.Options(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
async def test_there_and_back(
    server: Server, root: Path, tmp_path: Path, count: int, passive: bool
) -> None:
    (tmp_path / "a").write_bytes(DATA)
    os.utime(tmp_path / "a", (1577836800, 1577836800))
    async with connect(server, connections=count, passive=passive) as session:  # type: ignore[attr-defined]
        up = await session.put(tmp_path / "a", "there")
        down = await session.get("there", tmp_path / "b")
        assert [entry.name for entry in await session.list()] == ["there"]
    assert (root / "there").read_bytes() == DATA
    assert (tmp_path / "b").read_bytes() == DATA
    assert (tmp_path / "b").stat().st_mtime == 1577836800
    assert up.framed is down.framed is (count > 1)
    assert len(up.connections) == len(down.connections) == count


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193, 81920])
async def test_sizes(server: Server, root: Path, tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(DATA[:size])
    async with connect(server, connections=4) as session:  # type: ignore[attr-defined]
        await session.put(tmp_path / "a", "there")
        await session.get("there", tmp_path / "b")
    assert (root / "there").read_bytes() == DATA[:size]
    assert (tmp_path / "b").read_bytes() == DATA[:size]


async def test_a_wish_over_the_limits_is_cut(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    notices: list[str] = []
    async with connect(  # type: ignore[attr-defined]
        server, connections=12, connection_limit=12, notice=notices.append
    ) as session:
        report = await session.get("a", tmp_path / "b")
    assert len(report.connections) == 8
    assert notices == ["12 data connections asked, 8 granted"]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("start", [1, 8192, 1_000_000, len(DATA)])
async def test_both_ways_go_on(
    server: Server, root: Path, tmp_path: Path, count: int, start: int
) -> None:
    (tmp_path / "a").write_bytes(DATA)
    (tmp_path / working_names("b")[0]).write_bytes(DATA[:start])
    (root / working_names("there")[0]).write_bytes(DATA[:start])
    async with connect(server, connections=count) as session:  # type: ignore[attr-defined]
        up = await session.put(tmp_path / "a", "there", existing="resume")
        assert up.offset == start
        assert (root / "there").read_bytes() == DATA
        down = await session.get("there", tmp_path / "b", existing="resume")
        assert down.offset == start
    assert (tmp_path / "b").read_bytes() == DATA
    assert names(root) == ["there"]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("direction", ["down", "up"])
async def test_a_cut_transfer_goes_on_in_the_same_session(
    server: Server, root: Path, tmp_path: Path, direction: str, count: int
) -> None:
    source, target = (root, tmp_path) if direction == "down" else (tmp_path, root)
    (source / "a").write_bytes(DATA)
    watch = Watch()

    async def move(session: Session, progress: Watch | None = None) -> object:
        if direction == "down":
            return await session.get("a", tmp_path / "b", existing="resume", progress=progress)
        return await session.put(tmp_path / "a", "b", existing="resume", progress=progress)

    async with connect(server, connections=count, limit_rate=2e6) as session:  # type: ignore[attr-defined]
        task = asyncio.create_task(move(session, watch))
        while watch.size < 500_000:
            watch.changed.clear()
            await watch.changed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not (target / "b").exists()
        await session.noop()
    async with connect(server, connections=count) as session:  # type: ignore[attr-defined]
        report = await move(session)
    assert (target / "b").read_bytes() == DATA
    assert report.offset > 0  # type: ignore[attr-defined]
    assert not (target / working_names("b")[0]).exists()


async def test_a_transfer_is_stopped_on_request(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    watch = Watch()
    async with connect(server, connections=4, limit_rate=1e6) as session:  # type: ignore[attr-defined]
        task = asyncio.create_task(session.get("a", tmp_path / "b", progress=watch))
        await watch.changed.wait()
        assert await session.status()
        await session.abort()
        with pytest.raises(TransferAborted):
            await task
        await session.noop()


async def test_what_the_server_refuses(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "dir").mkdir()
    (tmp_path / "a").write_bytes(DATA)
    async with connect(server, connections=4) as session:  # type: ignore[attr-defined]
        for name in ("missing", "dir"):
            with pytest.raises(ReplyError):
                await session.get(name, tmp_path / "b")
        with pytest.raises((ReplyError, FileError)):
            await session.put(tmp_path / "a", "dir", existing="overwrite")
        assert [entry.name for entry in await session.list()] == ["dir"]
    assert not (tmp_path / "b").exists()


async def test_a_server_that_dies_leaves_a_partial_file(root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    watch = Watch()
    async with running_server(root) as server:
        session = await xftp.open_session(
            f"ftp://127.0.0.1:{server.server_port}/", options=xftp.Options(limit_rate=1e6)
        )
        task = asyncio.create_task(session.get("a", tmp_path / "b", progress=watch))
        while watch.size < 100_000:
            watch.changed.clear()
            await watch.changed.wait()
    with pytest.raises(xftp.XftpError):
        await task
    await session.wait_closed()
    assert not (tmp_path / "b").exists()
    assert (tmp_path / working_names("b")[0]).exists()


async def test_names_that_are_no_utf8(server: Server, root: Path, tmp_path: Path) -> None:
    name = "a\udcff b"
    (root / name).write_bytes(DATA)
    async with connect(server) as session:  # type: ignore[attr-defined]
        (entry,) = await session.list()
        assert entry.name == name
        await session.get(name, tmp_path)
    assert (tmp_path / name).read_bytes() == DATA


async def test_text(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(b"one\ntwo\n")
    async with connect(server, connections=4) as session:  # type: ignore[attr-defined]
        await session.set_type("A")
        await session.get("a", tmp_path / "b")
        await session.put(tmp_path / "b", "c")
        await session.set_type("I")
        await session.get("a", tmp_path / "d")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "d").read_bytes() == b"one\ntwo\n"
    assert (root / "c").read_bytes() == b"one\ntwo\n"
