"""Uploads that the system does not let be: a full disk, one that fails, an end that fails."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Server
from xftp.transport.partial import PartialFile

from .support import (
    WAIT_S,
    codes,
    dealt,
    names,
    outcome,
    pattern,
    plain,
    records,
    until,
    upload,
    upload_records,
)


@pytest.fixture
def small_disk(root: Path) -> Iterator[Path]:
    """A file system of 256 KiB below the root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    path = root / "small"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", path], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {made.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.root
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("framed", [True, False])
async def test_full_disk(client: RawClient, small_disk: Path, framed: bool, told: bool) -> None:
    (small_disk / "file").write_bytes(b"old")
    large = pattern(1_000_000)
    if framed:
        size = len(large) if told else None
        found = await upload_records(client, "STOR small/file", dealt(large, 2), size=size)
    else:
        assert not told or (await client.command(f"ALLO {len(large)}")).code == 200
        found = await upload(client, "STOR small/file", large)
    assert found == [150, 452]
    assert (small_disk / "file").read_bytes() == b"old"
    assert await upload(client, "STOR small/file", b"fits") == [150, 226]
    assert names(small_disk) == ["file"]


@pytest.fixture
def failing_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwritev", fail)


@pytest.mark.usefixtures("failing_write")
async def test_failing_disk(client: RawClient, root: Path) -> None:
    assert await upload(client, "STOR file", b"abc") == [150, 451]
    assert await upload_records(client, "STOR file", records(b"abc")) == [150, 451]
    assert (await client.command("TYPE A")).code == 200
    assert await upload(client, "STOR file", b"abc\r") == [150, 451]
    assert names(root) == []
    assert (await client.command("NOOP")).code == 200


async def test_last_byte_fails_in_ascii(
    client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lone CR at the end is written when all is over; even then a failure is told."""
    assert (await client.command("TYPE A")).code == 200

    def fail_at_cr(descriptor: int, pieces: list[memoryview], offset: int) -> int:
        if bytes(pieces[0]) == b"\r":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(descriptor, pieces[0], offset)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", fail_at_cr)
        assert await upload(client, "STOR file", b"abc\r") == [150, 452]
    assert not (root / "file").exists()
    assert await upload(client, "STOR file", b"abc\r") == [150, 226]
    assert (root / "file").read_bytes() == b"abc\r"


async def test_failing_end(client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be put in its place is no success, and can be tried again."""

    really = os.rename

    def fail(source: str, target: str, **named: int) -> None:
        if target == "file":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(source, target, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fail)
        assert await upload(client, "STOR file", b"abc") == [150, 452]
    assert not (root / "file").exists()
    assert await upload(client, "STOR file", b"abc") == [150, 226]


async def test_abort_while_the_file_is_put_in_its_place(
    client: RawClient, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too late: the upload is done, and the ABOR finds nothing."""
    (session,) = server.sessions
    committing = PartialFile.commit
    loop = asyncio.get_running_loop()
    begun, go_on = asyncio.Event(), threading.Event()

    def slow(*arguments: object, **named: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(WAIT_S)
        committing(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(PartialFile, "commit", slow)
    data = await plain(client)
    client.send("STOR file")
    await data.finish(b"abc")
    await asyncio.wait_for(begun.wait(), 10)
    client.send("ABOR")
    await until(lambda: session.control.has_waiting)
    go_on.set()
    assert await outcome(client) == [150, 226]
    assert await codes(client, 1) == [225]
    assert (root / "file").read_bytes() == b"abc"
