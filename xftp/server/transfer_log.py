"""The transfer log in the form of xferlog(5) of WU-FTPD, which log analysers read.

time seconds host bytes file type action direction access user service method id status
"""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import TextIO

from xftp.errors import file_error

from .watch import FinishedTransfer

logger = logging.getLogger(__name__)

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def format_transfer(finished: FinishedTransfer, ended_at: float) -> str:
    """Write one line, without its end. ended_at: Unix time in seconds; shown as local time.

    Fields are separated by single spaces, so those in a name become underscores.
    """
    fields = (
        time.asctime(time.localtime(ended_at)),
        str(max(1, round(finished.seconds))),
        finished.peer_host,
        str(finished.bytes),
        _one_word(finished.path),
        "a" if finished.is_ascii else "b",
        "_",  # neither compressed nor packed
        "i" if finished.direction == "upload" else "o",
        "a" if finished.is_anonymous else "r",
        _one_word(finished.user),
        "ftps" if finished.is_protected else "ftp",
        "0",  # no RFC 931 authentication
        "*",
        "i" if finished.error is not None else "c",
    )
    return " ".join(fields)


def _one_word(text: str) -> str:
    return _UNPRINTABLE.sub("?", text).replace(" ", "_")


class TransferLog:
    """A file that every transfer of a file, complete or not, adds a line to."""

    def __init__(self, path: Path) -> None:
        """Open the file at its end. Raises FileError."""
        self._path = path
        self._is_broken = False
        self._file = self._open()

    def note(self, finished: FinishedTransfer) -> None:
        """Add a line; a disk that is full costs the line and not the session."""
        if finished.direction == "listing":
            return
        try:
            self._file.write(format_transfer(finished, time.time()) + "\n")
        except OSError as error:
            if not self._is_broken:
                logger.error("%s: %s; transfers are not noted", self._path, error.strerror)
            self._is_broken = True
        else:
            self._is_broken = False

    def reopen(self) -> None:
        """Go on in a new file of the same name: the old one was moved away. Raises FileError."""
        fresh = self._open()
        self.close()
        self._file = fresh

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self) -> TextIO:
        try:
            return self._path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise file_error(error, str(self._path)) from error
