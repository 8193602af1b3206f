"""Hashes of files, against hashlib and known values; and on the heels of a transfer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.support import until
from xftp.errors import LocalFileError, ParameterError
from xftp.transport import hashing
from xftp.transport.hashing import FileHash, Follower, algorithms, digest_of

CONTENT = os.urandom(3_000_001)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    opened = os.open(path, os.O_RDWR)
    yield opened
    os.close(opened)


def test_known_values(descriptor: int) -> None:
    os.pwrite(descriptor, b"123456789", 0)
    known = {
        "CRC32": "cbf43926",
        "MD5": "25f9e794323b453885f5181f1b624d0b",
        "SHA-1": "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
        "SHA-256": "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
    }
    for name, digest in known.items():
        assert name in algorithms()
        assert digest_of(descriptor, "file", name, 0, 9) == digest


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 3_000_001), (5, 6), (1 << 20, 2_999_999)])
def test_ranges(descriptor: int, start: int, end: int) -> None:
    expected = hashlib.sha512(CONTENT[start:end]).hexdigest()
    assert digest_of(descriptor, "file", "SHA-512", start, end) == expected


@pytest.mark.skipif("BLAKE3" not in algorithms(), reason="the blake3 library is not installed")
def test_blake3(descriptor: int) -> None:
    empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert digest_of(descriptor, "file", "BLAKE3", 0, 0) == empty
    assert algorithms()[0] == "BLAKE3"


def test_errors(descriptor: int) -> None:
    with pytest.raises(ParameterError):
        digest_of(descriptor, "file", "SHA-3", 0, 1)
    with pytest.raises(LocalFileError, match="shorter"):
        digest_of(descriptor, "file", "MD5", 0, len(CONTENT) + 1)


async def test_a_follower_hashes_what_is_there_already(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "FOLLOW_BYTES", 1000)
    monkeypatch.setattr(hashing, "FOLLOW_S", 0.001)
    frontier = 0
    content = FileHash(descriptor, "file", "SHA-256")
    follower = Follower(content, lambda: frontier)
    for frontier in (500, 1_000_000, 2_000_000):
        await until(lambda wanted=frontier if frontier > 1000 else 0: content.end == wanted)
    assert await follower.finish(len(CONTENT)) == hashlib.sha256(CONTENT).hexdigest()


async def test_a_follower_that_is_stopped_leaves_the_file_alone(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "FOLLOW_BYTES", 1)
    monkeypatch.setattr(hashing, "FOLLOW_S", 0.0)
    begun, may_end = threading.Event(), threading.Event()
    content = FileHash(descriptor, "file", "SHA-256")

    def slowly(end: int) -> None:
        begun.set()
        assert may_end.wait(10)

    monkeypatch.setattr(content, "advance", slowly)
    follower = Follower(content, lambda: 1000)
    assert await asyncio.to_thread(begun.wait, 10)
    stopping = asyncio.create_task(follower.stop())
    for _ in range(10):  # whatever it could do without the thread, it does
        await asyncio.sleep(0)
    assert not stopping.done()
    may_end.set()
    await stopping


async def test_a_follower_tells_what_went_wrong_at_the_end(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "FOLLOW_BYTES", 1)
    follower = Follower(FileHash(descriptor, "file", "MD5"), lambda: len(CONTENT))
    os.ftruncate(descriptor, 10)
    with pytest.raises(LocalFileError):
        await follower.finish(len(CONTENT))
