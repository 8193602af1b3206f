"""One file over several sessions, as with a server that has no MULT."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xftp
from tests.support import running_server
from xftp.client.ranges import SMALLEST_BYTES, divided
from xftp.client.session import Session
from xftp.errors import TransferAborted
from xftp.server import Server
from xftp.server.limits import Limit, Limits

DATA = os.urandom(4_500_001)


@pytest.fixture
def root(root: Path) -> Path:
    (root / "a").write_bytes(DATA)
    (root / "d").mkdir()
    (root / "d" / "b").write_bytes(DATA[::-1])
    return root


class Log:
    """The commands of all sessions."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def count(self, begin: str) -> int:
        return sum(line.startswith(begin) for line in self.lines)


async def open_plain(server: Server, log: Log, **options: Any) -> Session:
    """Give a session that knows nothing of MULT."""
    chosen = xftp.Options(connections=4, splits=True, trace=log.lines.append, **options)
    session = await xftp.open_session(f"ftp://127.0.0.1:{server.server_port}/", options=chosen)
    session._dialogue.give_up_multiple("not known here")
    return session


@given(size=st.integers(0, 40 * SMALLEST_BYTES), count=st.integers(1, 16))
def test_ranges_follow_each_other(size: int, count: int) -> None:
    ranges = divided(size, count)
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == size
    assert len(ranges) <= count
    assert len(ranges) == 1 or all(end - start >= SMALLEST_BYTES for start, end in ranges)


async def test_several_sessions(root: Path, tmp_path: Path) -> None:
    log = Log()
    async with running_server(root) as server:
        session = await open_plain(server, log)
        await session.cwd("d")
        report = await session.get("b", tmp_path / "b")
        assert await session.size("b") == len(DATA)  # the session goes on
        await session.quit()
    assert (tmp_path / "b").read_bytes() == DATA[::-1]
    assert report is not None
    assert (report.bytes, len(report.connections)) == (len(DATA), 4)
    assert (log.count("> RETR"), log.count("> USER"), log.count("> CWD d")) == (4, 4, 4)
    assert log.count("> HASH") == 1


async def test_a_server_that_takes_one_session_only(root: Path, tmp_path: Path) -> None:
    log = Log()
    async with running_server(root, limits=Limits(sessions=Limit(per_user=1))) as server:
        session = await open_plain(server, log)
        await session.get("a", tmp_path / "a")
        await session.quit()
    assert (tmp_path / "a").read_bytes() == DATA
    assert log.count("> RETR") == 4
    assert log.count("* Too many") + log.count("* the server") >= 1


async def test_a_file_that_changes_gets_no_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    async with running_server(root) as server:
        session = await open_plain(server, log)

        class Change:
            def started(self, total_bytes: int | None, offset: int) -> None:
                os.utime(root / "a", (1e9, 1e9))

            def moved(self, connection: int, size: int) -> None:
                pass

        with pytest.raises(TransferAborted):
            await session.get("a", tmp_path / "a", progress=Change())
        await session.quit()
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("existing", ["fail", "skip"])
async def test_what_is_there_is_left_to_the_usual_way(
    root: Path, tmp_path: Path, existing: Any
) -> None:
    (tmp_path / "a").write_text("mine")
    log = Log()
    async with running_server(root) as server:
        session = await open_plain(server, log)
        if existing == "fail":
            with pytest.raises(xftp.ExistsError):
                await session.get("a", tmp_path / "a", existing=existing)
        else:
            assert await session.get("a", tmp_path / "a", existing=existing) is None
        await session.quit()
    assert log.count("> USER") == 1
    assert (tmp_path / "a").read_text() == "mine"
