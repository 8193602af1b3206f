"""The command of a session that runs: a task of its own, so that an ABOR or the end reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from xftp.errors import TransferAborted
from xftp.protocol.replies import Reply

from .control import ControlConnection
from .watch import RunningTransfer, Watch

if TYPE_CHECKING:
    from .registry import Row


class RunningCommand:
    """At most one at a time; between two commands nothing runs."""

    def __init__(self, control: ControlConnection, watch: Watch) -> None:
        self.aborts = 0
        """ABORs that came while it ran."""
        self.has_begun = False
        """Whether its preliminary reply was given."""
        self.watched: RunningTransfer | None = None
        """What the operator sees of it, if it moves data."""
        self._control = control
        self._watch = watch
        self._task: asyncio.Task[Reply] | None = None
        self._may_be_aborted = False
        self._ends_with_session = False
        self._is_ending = False

    @property
    def is_there(self) -> bool:
        """Whether a command runs."""
        return self._task is not None

    @property
    def may_be_aborted(self) -> bool:
        """Whether one runs that ABOR ends: everything that moves data, until all is there."""
        return self._task is not None and self._may_be_aborted

    @property
    def bytes_moved(self) -> int:
        """Bytes of the file that it moved so far."""
        return self.watched.bytes if self.watched is not None else 0

    async def run(
        self, row: Row, work: Coroutine[Any, Any, Reply], watched: RunningTransfer | None
    ) -> Reply:
        """Run a handler; give its reply. Raises what it raises, and TransferAborted.

        It is given up when the client is gone, unless that said QUIT and waits for the end.
        """
        self._begin_watching(watched)
        self._may_be_aborted = row.may_be_aborted
        self._ends_with_session = row.ends_with_session
        self._is_ending = self.has_begun = False
        self._task = task = asyncio.create_task(work)
        lost = asyncio.create_task(self._control.ended.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not self._control.quit_seen:
                self._give_up()
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            self._give_up()
            await asyncio.wait((task,))
            raise
        finally:
            lost.cancel()
            self._task = None
            self._end_watching(task)
        if task.cancelled():
            raise TransferAborted("Transfer aborted.")
        return task.result()

    def abort(self) -> None:
        """End it for an ABOR, which gets a reply of its own in the end."""
        self.aborts += 1
        self._end()

    def forbid_abort(self) -> None:
        """Do what is left of it whatever comes: an ABOR waits for its turn."""
        self._may_be_aborted = False

    def abort_replies(self) -> list[Reply]:
        """Give the reply to every ABOR that came while it ran, however it ended."""
        return [Reply(226, ("Abort successful.",))] * self.aborts

    def _give_up(self) -> None:
        """Cancel it because nobody waits for its reply any more."""
        if self._ends_with_session and self._task is not None:
            self._task.cancel()
        self._end()

    def _end(self) -> None:
        """Cancel it if it may be; once, so that it can clean up in peace."""
        if self._task is not None and self._may_be_aborted and not self._is_ending:
            self._is_ending = True
            self._task.cancel()

    def _begin_watching(self, watched: RunningTransfer | None) -> None:
        self.watched = watched
        if watched is not None:
            self._watch.begin(watched)

    def _end_watching(self, task: asyncio.Task[Reply]) -> None:
        """Tell how it ended."""
        watched, self.watched = self.watched, None
        if watched is None:
            return
        error = None
        if task.cancelled() or not task.done():
            error = "aborted"
        elif (failure := task.exception()) is not None:
            error = str(failure)
        self._watch.end(watched, error)
