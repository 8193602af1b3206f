"""How often what arrives is noted."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from xftp.errors import LocalFileError
from xftp.transport.checkpoints import CHECKPOINT_BYTES, CHECKPOINT_S, Checkpoints
from xftp.transport.kept import find_kept
from xftp.transport.plain import PlainReceiver
from xftp.transport.receiver import RecordReceiver

from .support import content, dial, listening, opened, partial, record

DATA = content(100 * 8192)


def test_by_bytes_or_time_and_one_at_a_time() -> None:
    checkpoints = Checkpoints(100.0)
    assert not checkpoints.begins(100.0 + CHECKPOINT_S - 0.1, CHECKPOINT_BYTES - 1)
    assert checkpoints.begins(101.0, CHECKPOINT_BYTES)
    assert not checkpoints.begins(200.0, 10 * CHECKPOINT_BYTES), "the first is not done"
    checkpoints.ended()
    assert checkpoints.begins(101.0 + CHECKPOINT_S, CHECKPOINT_BYTES)
    checkpoints.ended()
    assert not checkpoints.begins(102.0 + CHECKPOINT_S, 2 * CHECKPOINT_BYTES - 1)
    assert checkpoints.begins(102.0 + CHECKPOINT_S, 2 * CHECKPOINT_BYTES)


async def until_held(path: Path, size: int) -> None:
    async with asyncio.timeout(30):
        with opened(path.parent) as directory:
            while (kept := find_kept(directory, path.name)) is None or (  # noqa: ASYNC110
                kept.byte_count < size
            ):
                await asyncio.sleep(0.005)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xftp.transport.checkpoints.CHECKPOINT_BYTES", 10 * 8192)


@pytest.mark.usefixtures("often")
async def test_records_are_noted_while_they_come(tmp_path: Path) -> None:
    channel, path = listening(1), tmp_path / "file"
    target = partial(path)
    running = asyncio.create_task(RecordReceiver(channel, target, len(DATA)).run())
    sock = await dial(channel)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, b"".join(record(n, DATA) for n in range(50, 80)))
    await until_held(path, 10 * 8192)
    with opened(tmp_path) as directory:
        kept = find_kept(directory, "file")
    assert kept is not None
    assert kept.size == len(DATA)
    assert all(50 * 8192 <= start < end <= 80 * 8192 for start, end in kept.held)
    rest = [*range(50), *range(80, 100)]
    await loop.sock_sendall(sock, b"".join(record(n, DATA) for n in rest))
    sock.close()
    await asyncio.wait_for(running, 30)
    target.commit(len(DATA))
    assert path.read_bytes() == DATA


@pytest.mark.usefixtures("often")
async def test_a_stream_is_noted_while_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xftp.transport.journal.boot_id", lambda: None)
    channel, path = listening(1), tmp_path / "file"
    target = partial(path)
    target.begin_growing()
    end = 0

    def consume(piece: memoryview, at: int) -> None:
        nonlocal end
        end += target.write([piece], at)

    receiver = PlainReceiver(
        channel, consume, len(DATA), checkpoint=lambda: target.checkpoint([(0, end)], len(DATA))
    )
    running = asyncio.create_task(receiver.run())
    sock = await dial(channel)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, DATA[:400_000])
    await until_held(path, 10 * 8192)
    await loop.sock_sendall(sock, DATA[400_000:])
    sock.close()
    await asyncio.wait_for(running, 30)
    target.commit(len(DATA))
    assert path.read_bytes() == DATA


@pytest.mark.usefixtures("often")
async def test_a_disk_that_fails_to_sync_ends_the_transfer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = listening(1)
    target = partial(tmp_path / "file")

    def fails(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fails)
    receiver = RecordReceiver(channel, target, len(DATA))
    running = asyncio.create_task(receiver.run())
    sock = await dial(channel)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, b"".join(record(n, DATA) for n in range(30)))
    with pytest.raises(LocalFileError, match="Input/output error"):
        await asyncio.wait_for(running, 30)
    sock.close()
    assert target.keep(receiver.held_bytes(), len(DATA)) == 0, "what was lost is not trusted"
    assert os.listdir(tmp_path) == []
