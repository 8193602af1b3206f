"""What a person sees on standard error while files move; nothing but sentences in a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from xftp.transport.report import TransferReport

from .terminal import say
from .text import connection_summary, printable, summary

if TYPE_CHECKING:
    from xftp.client.progress import Progress

    from .bars import Bars


class Screen:
    """The person's side of standard error: notices, the transcript, bars, summaries."""

    def __init__(
        self, *, verbose: bool = False, quiet: bool = False, in_dialogue: bool = False
    ) -> None:
        """Choose what is said; in_dialogue: success is an answer that is waited for."""
        self.verbose = verbose
        self.quiet = quiet
        self._says_success = verbose or in_dialogue or sys.stderr.isatty()
        self._bars: Bars | None = None

    def notice(self, sentence: str) -> None:
        """Say what the person should know although nothing failed."""
        if not self.quiet:
            self._say(f"xftp: {sentence}")

    def detail(self, sentence: str) -> None:
        """Say what only -v shows."""
        if self.verbose:
            self._say(f"* {sentence}")

    def trace(self, line: str) -> None:
        """Show a line of the control connection, with -v."""
        if self.verbose:
            self._say(line)

    @contextlib.contextmanager
    def watch(self, name: str) -> Iterator[Progress | None]:
        """Show a bar for the transfer of `name`; gives None where nobody would see it."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from .bars import Bars  # rich takes a while to import

        with Bars(printable(name), per_connection=self.verbose) as self._bars:
            try:
                yield self._bars
            finally:
                self._bars = None

    def done(self, name: str, report: TransferReport) -> None:
        """Say what a finished transfer achieved; with -v also each connection.

        In a pipe nothing is said: who runs this from a script or cron wants to hear of trouble.
        """
        if self.quiet or not self._says_success:
            return
        self._say(summary(name, report))
        if report.files == 1:
            self._connections(report)

    def together(self, report: TransferReport) -> None:
        """Say what files achieved that moved together, each of which `done` was told of."""
        if self.quiet or not self._says_success:
            return
        self._say(summary(f"{report.files} files", replace(report, files=1)))
        self._connections(report)

    def _connections(self, report: TransferReport) -> None:
        if not self.verbose:
            return
        for each in report.connections:
            self._say(f"  {connection_summary(each, report.seconds)}")
        sender = report.sender
        for each in sender.connections if sender is not None else ():
            self._say(f"  server's {connection_summary(each, report.seconds)}")

    def summary(self, sentence: str) -> None:
        """Say what a command came to, where a person looks on."""
        if self._says_success:
            self._say(sentence)

    def _say(self, line: str) -> None:
        line = printable(line)
        if self._bars is not None:
            self._bars.say(line)
        else:
            say(line)
