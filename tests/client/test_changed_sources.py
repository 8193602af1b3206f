"""Files that others write while they are sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import running_server
from xftp.client.options import Options
from xftp.client.session import connect
from xftp.client.verify import Verification
from xftp.errors import LocalFileError, VerifyError
from xftp.transport.hashing import Follower

CONTENT = bytes(range(256)) * 4000
OTHER = CONTENT[::-1]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    os.utime(path, (1e9, 1e9))  # so that no change is within the grain of the clock
    return path


@pytest.fixture
def once_hashed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something happen when what was sent is hashed, and not compared yet."""

    def install(happen: Callable[[], object]) -> None:
        finish = Follower.finish

        async def and_then(self: Follower, end: int) -> str:
            digest = await finish(self, end)
            happen()
            return digest

        monkeypatch.setattr(Follower, "finish", and_then)

    return install


class Writing:
    """A display of progress, during which the file is written."""

    def __init__(self, source: Path) -> None:
        self._source = source

    def started(self, total_bytes: int | None, offset: int) -> None:
        pass

    def moved(self, connection: int, size: int) -> None:
        self._source.write_bytes(OTHER)


class Cutting(Writing):
    """The same, and the file becomes shorter once all of it was given out."""

    def __init__(self, source: Path) -> None:
        super().__init__(source)
        self._left = source.stat().st_size

    def moved(self, connection: int, size: int) -> None:
        self._left -= size
        if not self._left:
            os.truncate(self._source, 1000)


async def put(
    root: Path, source: Path, connections: int = 1, progress: Writing | None = None, **more: object
) -> list[str]:
    """Store the source as `copy`; give what the user was told."""
    told: list[str] = []
    options = Options(connections=connections, notice=told.append, **more)  # type: ignore[arg-type]
    async with (
        running_server(root) as server,
        connect(f"ftp://127.0.0.1:{server.server_port}/", options=options) as session,
    ):
        await session.put(source, "copy", progress=progress)
    return told


@pytest.mark.parametrize("connections", [1, 4])
async def test_rewritten(
    root: Path, source: Path, once_hashed: Callable[..., None], connections: int
) -> None:
    """The server gets what the file is now, though the hashes were the same."""
    once_hashed(lambda: source.write_bytes(OTHER))
    told = await put(root, source, connections)
    assert (root / "copy").read_bytes() == OTHER
    assert told[-2:] == [
        f"{source}: mended",
        f"{source}: was changed while it was sent; the server has the first {len(CONTENT)} bytes"
        " of what it is now",
    ]


async def test_grown(root: Path, source: Path, once_hashed: Callable[..., None]) -> None:
    def grow() -> None:
        with source.open("ab") as file:
            file.write(b"more")

    once_hashed(grow)
    (told,) = await put(root, source)
    assert (root / "copy").read_bytes() == CONTENT
    assert f"the server has the first {len(CONTENT)} bytes" in told


async def test_written_again_and_again(
    root: Path, source: Path, once_hashed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    digests, written = Verification._own_digests, [0]

    def write() -> None:
        written[0] += 1
        source.write_bytes(bytes([written[0]]) * len(CONTENT))
        os.utime(source, (written[0], written[0]))

    async def while_written(self: Verification, parts: object) -> list[str]:
        write()
        return await digests(self, parts)  # type: ignore[arg-type]

    monkeypatch.setattr(Verification, "_own_digests", while_written)
    once_hashed(lambda: source.write_bytes(OTHER))
    with pytest.raises(VerifyError, match="is being changed, again and again"):
        await put(root, source)


async def test_shortened(root: Path, source: Path) -> None:
    """What was sent has its name already, and cannot be made right by what is left."""
    with pytest.raises(LocalFileError, match=r"became shorter.*wrong file is still .* as copy"):
        await put(root, source, progress=Cutting(source))


async def test_without_a_comparison(root: Path, source: Path) -> None:
    with pytest.raises(
        LocalFileError, match=r"was changed .*; maybe a wrong file is still .* as copy"
    ):
        await put(root, source, progress=Writing(source), verify="never")
