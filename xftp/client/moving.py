"""One transfer and the control connection beside it: both are watched, neither outlives the other.

A transfer is good if the data was complete and the final reply is 2yz, in whichever order. A
refusal, or the loss of the control connection, ends the data at once; what ends the data on this
side is told to the server with ABOR (RFC 959 section 4.1.3), so that the session can go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from xftp.errors import ConnectError, DataConnectionError, PeerError, TransferAborted, XftpError
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply
from xftp.transport.channels import DataChannel
from xftp.transport.transfer import Transfer

from .control import Answer
from .dialogue import Dialogue, reply_error
from .flights import Pace
from .options import Direction
from .paths import PathWatch
from .sender_report import ask_sender

GRACE_S = 5.0
"""How long the server may take to say why data connections broke, before ABOR is sent."""

ABORT_WAIT_S = 5.0
"""How long the replies to ABOR are waited for; then the control connection is closed."""

KEEP_ALIVE_S = 60.0
"""How often something is said on the control connection while data moves."""

_STATUS = (211,)
"""The reply to STAT, which may come while the transfer runs and after it."""

_ABORTED = 426
"""Connection closed; transfer aborted (RFC 959 section 4.2): what a reset of ours brings."""

_STORES = frozenset({"STOR", "APPE", "STOU", "MSTR"})

_AnyTransfer = TypeVar("_AnyTransfer", bound=Transfer)


class TransferStopped(TransferAborted):
    """The transfer was ended on request (`Session.abort`)."""


async def move(
    dialogue: Dialogue,
    command: Command,
    channel: DataChannel,
    build: Callable[[Reply], _AnyTransfer],
    answer: Answer | None = None,
    at_end: Callable[[], None] | None = None,
    vouched: Callable[[], Awaitable[None]] | None = None,
) -> _AnyTransfer:
    """Send `command` and run the transfer that `build` makes of its first reply.

    answer: of the command, if it was sent already; at_end: called when all data has moved, ahead of
    the final reply; vouched: waits until that reply is not needed any more, if all data is here:
    whatever it says comes in front of the reply to the next command. `channel` is closed in any
    case. Raises ReplyError if the server refuses, ConnectError if the control connection ends, and
    what the transfer raises.
    """
    try:
        movement = _Movement(dialogue, command, channel, answer, at_end, vouched)
        return await movement.run(build)
    except ConnectError as error:  # what failed is the transfer, not the connecting
        raise TransferAborted(str(error)) from error
    finally:
        channel.close()


async def abandon(dialogue: Dialogue, answer: Answer) -> None:
    """Tell the server to stop the transfer of `answer`, which may be over or refused already."""
    if answer.final.done():
        return
    try:
        (abort,) = dialogue.control.send(Command("ABOR", ""))
    except XftpError:  # the connection is gone, so there is nobody to tell
        return
    await asyncio.wait({answer.final, abort.final}, timeout=ABORT_WAIT_S)
    if not abort.final.done():
        dialogue.control.close()


class _Movement:
    """A transfer under way."""

    def __init__(
        self,
        dialogue: Dialogue,
        command: Command,
        channel: DataChannel,
        answer: Answer | None,
        at_end: Callable[[], None] | None,
        vouched: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._dialogue = dialogue
        self._timeout_s = dialogue.options.reply_timeout_s
        self._verb = command.verb
        self._way: Direction = "upload" if command.verb in _STORES else "download"
        self._channel = channel
        self._at_end = at_end
        self._vouched = vouched
        self._has_ended = False
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer = answer or dialogue.control.send(command)[0]

    async def run(self, build: Callable[[Reply], _AnyTransfer]) -> _AnyTransfer:
        self._dialogue.stop_transfer = self._stop
        data: asyncio.Task[None] | None = None
        watch: PathWatch | None = None
        try:
            transfer = build(await self._begin())
            watch = PathWatch(self._dialogue, self._way, transfer)
            transfer.stall_timeout_s = self._dialogue.options.stall_timeout_s
            transfer.confirmation_timeout_s = self._timeout_s  # the server has the last word
            data = asyncio.create_task(transfer.run())
            watch.start()
            alive = asyncio.create_task(self._keep_alive())
            try:
                await self._watch(data, transfer)
            finally:
                await _cancel(alive)
            await watch.remember()
            return transfer
        except BaseException as error:
            if data is not None:
                await _cancel(data)
            # Those that no transfer took over too: a polite end would look like an empty file.
            for connection in self._channel.connections:
                connection.reset()
            self._channel.close()
            await self._settle(error)
            raise
        finally:
            if watch is not None:
                watch.stop()
            self._dialogue.stop_transfer = None

    async def _begin(self) -> Reply:
        """Wait for the preliminary reply, but not if no data connection can be made."""
        first = asyncio.create_task(self._channel.wait_for_first())
        begun = asyncio.create_task(self._answer.wait_begun(self._timeout_s))
        try:
            await _any_of(first, begun, self._stop)
            if not begun.done() and not self._stop.done():
                problem = first.exception()
                await _any_of(begun, self._stop, timeout_s=GRACE_S if problem else None)
                if problem is not None and not begun.done():
                    raise problem
            self._check_stop()
            reply = begun.result()
        finally:
            await _cancel(first, begun)
        self._check_reply(reply)
        if not reply.is_preliminary:
            raise PeerError(f"{self._verb}: the server answered {reply.code} and moved nothing")
        return reply

    async def _watch(self, data: asyncio.Task[None], transfer: Transfer) -> None:
        """See the data and the final reply through."""
        final = self._answer.final
        enough = asyncio.create_task(self._enough(transfer))
        try:
            await _any_of(data, final, self._stop, enough)
            self._check_stop()
            if transfer.has_failed:  # the cause; a 426 only answers to our reset
                await data
            if final.done():
                self._check_reply(final.result())
            elif enough.done():
                enough.result()
            if final.done() or enough.done():
                # It is early: the data may still be on its way, or the transfer waits for this.
                transfer.confirm()
                await _any_of(data, self._stop)
                self._check_stop()
            data.result()
            self._note_end()
            if not enough.done():
                self._check_reply(await self._answer.wait_final(self._timeout_s))
        finally:
            await _cancel(enough)

    async def _enough(self, transfer: Transfer) -> None:
        """Wait until all is here and vouched for; ask for that as soon as all is here."""
        waiting = None if self._vouched is None else asyncio.ensure_future(self._vouched())
        try:
            await transfer.whole.wait()
            self._note_end()
            await (waiting or asyncio.get_running_loop().create_future())
        finally:
            if waiting is not None:
                await _cancel(waiting)

    def _note_end(self) -> None:
        """Ask, once, what is to be asked when all data has moved."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._at_end is not None:
            self._at_end()
        if self._verb == "RETR":
            ask_sender(self._dialogue)

    async def _keep_alive(self) -> None:
        """Let a balancer or firewall on the way see the control connection in use.

        What only counts packets is satisfied by TCP's keep-alive (`probe_when_idle`), which every
        server bears. A command is only sent to servers of our own kind, which answer STAT at once
        while data moves: others take one for the wish to abort, or answer it out of turn.
        """
        while self._dialogue.pace is Pace.ALL:
            await asyncio.sleep(KEEP_ALIVE_S)
            self._dialogue.control.send(Command("STAT", ""), codes=_STATUS)

    async def _settle(self, error: BaseException) -> None:
        """Bring the control connection to rest after `error`.

        Raises ReplyError if the server says why it broke the data connections.
        """
        final = self._answer.final
        broken = isinstance(error, (TransferAborted, DataConnectionError))
        if broken and not self._stop.done():
            await _any_of(final, timeout_s=GRACE_S)
            if final.done() and final.exception() is None:
                reply = final.result()
                if reply.is_negative and reply.code != _ABORTED:
                    raise reply_error(reply, self._verb) from error
        if not final.done():
            await abandon(self._dialogue, self._answer)

    def _check_stop(self) -> None:
        if self._stop.done():
            raise TransferStopped("the transfer was stopped")

    def _check_reply(self, reply: Reply) -> None:
        if reply.is_negative:
            raise reply_error(reply, self._verb)
        if reply.is_intermediate:
            raise PeerError(f"{self._verb}: the server answered {reply.code} to a transfer")


async def _any_of(*waited: asyncio.Future[Any], timeout_s: float | None = None) -> None:
    """Wait for one of `waited`; none of them is cancelled."""
    await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
