"""A disk that is full: one sentence, and nothing tried that cannot work."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Client, Place

pytestmark = pytest.mark.root

FILES = 30
FILE_BYTES = 40_000


@pytest.fixture
def small_disks(place: Place, xftp: Client) -> Iterator[None]:
    """Let both ends have a directory `small` on a file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    mounted: list[Path] = []
    try:
        for path in (place.path / "small", xftp.here / "small"):
            path.mkdir()
            made = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", path],
                capture_output=True,
                text=True,
            )
            if made.returncode:
                pytest.skip(f"a tmpfs cannot be mounted here: {made.stderr.strip()}")
            mounted.append(path)
        yield
    finally:
        for path in mounted:
            subprocess.run(["umount", "-l", path], check=True)


def fill(root: Path) -> list[str]:
    root.mkdir()
    names = [f"f{number:02}" for number in range(FILES)]
    for name in names:
        (root / name).write_bytes(os.urandom(FILE_BYTES))
    return names


@pytest.mark.parametrize("word", ["mirror", "get"])
def test_here(xftp: Client, place: Place, small_disks: None, word: str) -> None:
    names = fill(place.path / "many")
    small = xftp.here / "small"
    if word == "mirror":
        done = xftp("mirror", place.url_of("many"), "small", expect=4)
    else:
        done = xftp("get", "-o", "small", place.url_of("many/*"), expect=4)
    said = done.stderr.decode()
    assert said.count("No space left on device") <= 2
    assert "files to go: make room " in said
    arrived = [name for name in names if (small / name).exists()]
    assert 0 < len(arrived) < FILES
    for name in arrived:
        assert (small / name).read_bytes() == (place.path / "many" / name).read_bytes()
    assert not [path for path in small.glob("*.part") if not path.stat().st_size]
    assert "kept" not in said or list(small.glob("*.part"))


@pytest.mark.parametrize("word", ["mirror", "put"])
def test_there(xftp: Client, place: Place, small_disks: None, word: str) -> None:
    names = fill(xftp.here / "many")
    files = [f"many/{name}" for name in names]
    if word == "mirror":
        done = xftp("mirror", "many", place.url_of("small"), expect=1)
    else:
        done = xftp("put", "--overwrite", *files, place.url_of("small/"), expect=1)
    said = done.stderr.decode()
    assert said.count(" 452 ") <= 2
    assert "make room on the server and run again" in said
    assert 0 < len([name for name in names if (place.path / "small" / name).exists()]) < FILES


def test_curl_is_told_why(xftp: Client, place: Place, small_disks: None) -> None:
    """An ordinary client looks at the reply only when it got rid of its data."""
    (xftp.here / "large").write_bytes(os.urandom(4_000_000))
    done = subprocess.run(
        ["curl", "-sS", "-T", xftp.here / "large", place.url_of("small/")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "452" in done.stderr, done.stderr
