"""Series between our client and our server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import xftp
from xftp.client.series import Pair, SeriesResult
from xftp.errors import ReplyError, VerifyError
from xftp.server import Server
from xftp.transport import series as transport_series
from xftp.transport.files import SourceFile

WHEN = 1_600_000_000
FILES = {f"f{number}": os.urandom(number * 7919 % 60_000) for number in range(60)}


def connect(server: Server, **options: Any) -> Any:
    url = f"ftp://127.0.0.1:{server.server_port}/"
    return xftp.connect(url, options=xftp.Options(**options))


def fill(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
        os.utime(folder / name, (WHEN, WHEN))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pairs(here: Path, *names: str) -> list[Pair]:
    return [Pair(here / name, name) for name in names]


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("direction", ["download", "upload"])
async def test_there(
    server: Server, root: Path, here: Path, direction: str, count: int, passive: bool
) -> None:
    source, target = (root, here) if direction == "download" else (here, root)
    fill(source)
    completed: list[int] = []
    async with connect(server, connections=count, passive=passive) as session:
        result: SeriesResult = await session.move_series(
            direction, pairs(here, *FILES), completed=completed.append
        )
        again = await session.get("f1", here / "again")  # the session goes on
    assert result.failures == {}
    assert sorted(completed) == list(range(len(FILES)))
    assert (here / "again").read_bytes() == FILES["f1"]
    (here / "again").unlink()
    assert contents(target) == FILES
    assert {path.stat().st_mtime for path in target.iterdir()} == {WHEN}
    assert result.report is not None and result.report.framed
    assert len(result.report.connections) == count
    assert again is not None


async def test_what_is_missing_is_told(server: Server, root: Path, here: Path) -> None:
    fill(root)
    async with connect(server) as session:
        down = await session.move_series("download", pairs(here, "f1", "missing", "f2"))
        up = await session.move_series("upload", pairs(here, "f1", "missing", "f2"))
        none = await session.move_series("download", pairs(here, "missing"))
    assert list(down.failures) == list(up.failures) == [1]
    assert isinstance(down.failures[1], ReplyError)
    assert sorted(contents(here)) == ["f1", "f2"]
    assert none.report is None


async def test_a_file_that_changes_is_not_taken(
    server: Server, root: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives is held against the hash that was told before; the others are good."""
    fill(root)
    read = SourceFile.read

    def other(self: SourceFile, places: Any, offset: int, size: int) -> None:
        read(self, places, offset, size)
        if self.name.endswith("f3"):
            places[0][0] ^= 1

    monkeypatch.setattr(SourceFile, "read", other)
    async with connect(server) as session:
        result = await session.move_series("download", pairs(here, "f2", "f3", "f4"))
    assert isinstance(result.failures.pop(1), VerifyError)
    assert result.failures == {}
    assert sorted(contents(here)) == ["f2", "f4"]


async def test_what_the_server_could_not_store(server: Server, root: Path, here: Path) -> None:
    fill(here)
    (root / "f2").mkdir()
    completed: list[int] = []
    async with connect(server) as session:
        result = await session.move_series(
            "upload", pairs(here, "f1", "f2", "f3"), completed=completed.append
        )
    assert list(result.failures) == [1]
    assert completed == [0, 2]
    assert (root / "f3").read_bytes() == FILES["f3"]


async def test_empty_files_only(server: Server, root: Path, here: Path) -> None:
    for name in ("a", "b"):
        (root / name).touch()
    async with connect(server) as session:
        result = await session.move_series("download", pairs(here, "a", "b"))
    assert result.failures == {}
    assert contents(here) == {"a": b"", "b": b""}


async def test_a_server_without_it(server: Server, root: Path, here: Path) -> None:
    fill(root)
    async with connect(server) as session:
        session._dialogue.features.pop("SERI")
        assert await session.move_series("download", pairs(here, "f1")) is None
    assert contents(here) == {}


async def test_a_cut_series_keeps_what_was_complete(
    server: Server, root: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root)
    completed: list[int] = []
    async with connect(server, connections=2, limit_rate=200_000) as session:

        def one_is_there(index: int) -> None:
            completed.append(index)
            session.close()

        with pytest.raises(xftp.XftpError):
            await session.move_series("download", pairs(here, *FILES), completed=one_is_there)
    found = contents(here)
    assert 0 < len(found) < len(FILES)
    assert found.items() <= FILES.items()
    assert max(map(len, FILES.values())) < transport_series.KEPT_FROM_BYTES
