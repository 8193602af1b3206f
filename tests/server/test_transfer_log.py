"""Lines of xferlog(5)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from xftp.errors import FileError
from xftp.server.transfer_log import TransferLog, format_transfer
from xftp.server.watch import FinishedTransfer


def finished(**changes: object) -> FinishedTransfer:
    values: dict[str, object] = {
        "direction": "download",
        "path": "/pub/file",
        "peer_host": "192.0.2.1",
        "user": "ann",
        "is_anonymous": False,
        "bytes": 147573,
        "seconds": 1.4,
        "connections": 4,
        "is_ascii": False,
        "is_protected": False,
        "error": None,
    }
    return FinishedTransfer(**(values | changes))  # type: ignore[arg-type]


def fields(line: str) -> str:
    """Leave out the time, which is local: 24 characters and a space."""
    assert line[24] == " "
    return line[25:]


def test_lines() -> None:
    assert fields(format_transfer(finished(), 0.0)) == (
        "1 192.0.2.1 147573 /pub/file b _ o r ann ftp 0 * c"
    )
    line = format_transfer(
        finished(direction="upload", is_ascii=True, is_anonymous=True, error="cut", seconds=61.7), 0
    )
    assert fields(line) == "62 192.0.2.1 147573 /pub/file a _ i a ann ftp 0 * i"
    assert fields(format_transfer(finished(is_protected=True), 0)).split(" ")[-4] == "ftps"


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/a b  c", "/a_b__c"), ("/a\x1b[31m\t", "/a?[31m?"), ("/\udcff\u00fc", "/?\u00fc")],
)
def test_names_are_one_word(path: str, shown: str) -> None:
    assert fields(format_transfer(finished(path=path), 0.0)).split(" ")[3] == shown


def test_listings_are_not_noted(tmp_path: Path) -> None:
    log = TransferLog(tmp_path / "log")
    log.note(finished(direction="listing"))
    log.note(finished())
    log.close()
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_log_goes_on_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        log = TransferLog(tmp_path / "log")
        log.note(finished())
        log.close()
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_full_disk_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    log = TransferLog(Path("/dev/full"))
    with caplog.at_level(logging.ERROR):
        log.note(finished())
        log.note(finished())
    assert len(caplog.records) == 1
    with pytest.raises(OSError, match="space"):
        log.close()


def test_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        TransferLog(tmp_path)
