"""The files of one command: what became of each, and the exit status of all."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable

from xftp.client.space import is_no_space
from xftp.errors import XftpError
from xftp.transport.report import TransferReport

from .screen import Screen
from .terminal import Interrupted, complain

RESUME_HINT = "run again with --resume"


class Outcome:
    """Collects results: a summary and a JSON line per file, and the exit status of all."""

    def __init__(self, screen: Screen, *, as_json: bool = False) -> None:
        self.status = 0
        """That of the first failure, 0 if there is none."""
        self.is_full = False
        """Whether there was no space for a file, so that the others need not be tried."""
        self._screen = screen
        self._as_json = as_json

    async def of(
        self,
        name: str,
        url: str,
        transfer: Callable[[], Awaitable[TransferReport | None]],
        hint: Callable[[BaseException], str | None],
    ) -> None:
        """Run one transfer and note how it ends; only an interruption is raised.

        name: for the person; url: where on the server; hint: given what cut the transfer, says
        how to go on, or None.
        """
        try:
            report = await transfer()
        except XftpError as error:
            self.failed(name, url, error, hint(error))
        except Interrupted:
            raise
        except BaseException as error:
            self._notice(hint(error))
            raise
        else:
            self._tell(name, url, report)

    def failed(self, name: str, url: str, error: XftpError, hint: str | None = None) -> None:
        """Note what failed; hint: how to go on."""
        self.status = self.status or error.exit_code
        self.is_full = self.is_full or is_no_space(error)
        complain(error)
        self._notice(hint)
        self._print({"file": name, "url": url, "status": "failed", "error": str(error)})

    def stopped(self, count: int, place: str) -> None:
        """Say that files were not tried, as there is no space left; place: where."""
        if count:
            files = "1 file" if count == 1 else f"{count} files"
            complain(f"stopped with {files} to go: make room {place} and run again")

    def note(self, name: str, url: str, report: TransferReport) -> None:
        """Note a file that moved well."""
        self._tell(name, url, report)

    def sum_up(self, report: TransferReport) -> None:
        """Tell of files that moved together, after each was noted."""
        self._screen.together(report)

    def _tell(self, name: str, url: str, report: TransferReport | None) -> None:
        if report is None:
            self._screen.notice(f"{name}: left as it is")
            self._print({"file": name, "url": url, "status": "skipped"})
        else:
            self._screen.done(name, report)
            self._print({"file": name, "url": url, "status": "done", **report.as_json()})

    def _notice(self, sentence: str | None) -> None:
        if sentence is not None:
            self._screen.notice(sentence)

    def _print(self, values: dict[str, object]) -> None:
        if self._as_json:
            sys.stdout.write(json.dumps(values) + "\n")
            sys.stdout.flush()
