"""The daemon's log: text for people, or one JSON object a line for machines."""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys
from datetime import UTC, datetime
from pathlib import Path

from xftp.errors import file_error

from .text import printable

_LEVELS = {0: logging.WARNING, 1: logging.INFO}
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """A line for people: what clients send cannot write escape sequences on their terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One object a line: time (ISO 8601, UTC), level, logger, message, and what the record adds."""

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        values |= {k: v for k, v in vars(record).items() if k not in _OF_EVERY_RECORD}
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


def start_logging(verbosity: int, form: str, path: Path | None) -> None:
    """Log to a file, or to standard error. form: text or json. Raises FileError.

    A file that was moved away is followed by a new one of its name (logrotate).
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path is not None:
        try:
            handler = logging.handlers.WatchedFileHandler(path, encoding="utf-8", errors="replace")
        except OSError as error:
            raise file_error(error, str(path)) from error
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    level = _LEVELS.get(verbosity, logging.DEBUG)
    logging.basicConfig(level=level, handlers=[handler])
