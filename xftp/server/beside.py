"""A HASB that comes while a download runs: computed beside it, and answered before its end.

It stays in its place among the commands that wait, and gets its turn there if it is not done
before, or cannot be done (docs/protocol.md, Commands before their turn).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

if TYPE_CHECKING:
    from .session import Session

_VERB = "HASB"
_DONE = 213


class HashBeside:
    """At most one such command of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._command: Command | None = None
        self._task: asyncio.Task[Reply] | None = None

    def look_at(self, command: Command) -> None:
        """Begin with a command that was just read, if its turn is next and nothing changes it."""
        session, row = self._session, self._session.commands.get(_VERB)
        watched = session.running.watched
        if command.verb != _VERB or row is None or self._task is not None:
            return
        if watched is None or watched.direction != "download" or session.byte_range is not None:
            return
        if not command.argument or session.control.has_waiting or not session.may(*row.permissions):
            return
        self._command = command
        self._task = asyncio.create_task(row.handler(session, command.argument))
        self._task.add_done_callback(self._done)

    def claim(self, command: Command) -> asyncio.Task[Reply] | None:
        """Give the work on a command whose turn has come; None: nothing was begun."""
        if command is not self._command:
            return None
        task, self._task, self._command = self._task, None, None
        return task

    async def stop(self) -> None:
        """End the work: the session ends."""
        task, self._task, self._command = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _done(self, task: asyncio.Task[Reply]) -> None:
        """Answer at once if that can be told from the reply of the download, which goes on."""
        if task is not self._task or task.cancelled() or self._command is None:
            return
        error = task.exception()  # told in its turn, where nobody takes it for the download's
        running, control = self._session.running, self._session.control
        is_told = error is None and task.result().code == _DONE
        if is_told and running.is_there and running.has_begun and control.withdraw(self._command):
            self._task = self._command = None
            control.reply(task.result())
