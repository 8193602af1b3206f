"""Ctrl-C and SIGTERM in the middle: what arrived is kept, and can be gone on with."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from .conftest import Client, Place, wait_until

CONTENT = os.urandom(1_500_000)
SLOWLY = ("-n", "4", "--limit-rate", "500k")


def allocated(path: os.PathLike[str]) -> int:
    """Give the bytes that were written to a file, 0 if it is not there."""
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_download_is_kept_and_resumed(
    xftp: Client, place: Place, number: signal.Signals, status: int
) -> None:
    (place.path / "file").write_bytes(CONTENT)
    part = xftp.here / "file.xftp.part"
    process = xftp.start("get", *SLOWLY, place.url_of("file"))
    wait_until(lambda: allocated(part) > 200_000)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == status
    assert said == b"xftp: partial file kept: file.xftp.part; run again with --resume\n"
    assert part.exists()
    assert not (xftp.here / "file").exists()
    xftp("get", "--resume", place.url_of("file"))
    assert (xftp.here / "file").read_bytes() == CONTENT
    assert not part.exists()


@pytest.mark.parametrize("wish", ["--resume", "-q", ""])
def test_an_upload_is_resumed(xftp: Client, place: Place, wish: str) -> None:
    """Asked to or not; then it is said."""
    (xftp.here / "file").write_bytes(CONTENT)
    process = xftp.start("put", *SLOWLY, "file", place.url)
    part = place.path / "file.xftp.part"
    wait_until(lambda: allocated(part) > 200_000)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == b"xftp: file: run again with --resume\n"
    assert not (place.path / "file").exists()
    done = xftp("put", *([wish] if wish else []), "file", place.url)
    assert (place.path / "file").read_bytes() == CONTENT
    assert (b"that an earlier transfer left" in done.stderr) is (not wish)


def test_reading_standard_input_can_be_interrupted(xftp: Client, place: Place) -> None:
    process = xftp.start("put", "-", place.url_of("stream"), stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
    part = place.path / "stream.xftp.part"
    wait_until(lambda: allocated(part) > 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not (place.path / "stream").exists()
    process.communicate()


def test_a_reader_that_stalls_does_not_hold_ctrl_c_up(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(bytes(50_000_000))
    process = xftp.start("get", "-o", "-", place.url_of("file"))
    assert process.stdout is not None
    process.stdout.read(10)  # and nothing more
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
