"""One upload: its data arrives in a partial file, which becomes the target or is kept."""

from __future__ import annotations

import logging

from xftp.errors import FileError, TransferAborted
from xftp.protocol.ascii import FromNetwork
from xftp.server.session import Session
from xftp.transport.channels import DataChannel
from xftp.transport.partial import PartialFile
from xftp.transport.plain import PlainReceiver
from xftp.transport.receiver import RecordReceiver
from xftp.transport.transfer import Transfer

from .moving import run_transfer

logger = logging.getLogger(__name__)


class Upload:
    """One upload into a partial file, which becomes the target or is kept for a restart."""

    def __init__(
        self,
        session: Session,
        channel: DataChannel,
        target: PartialFile,
        announced: int | None,
        *,
        extend: bool,
    ) -> None:
        self._session = session
        self._target = target
        self._extend = extend
        self._end = target.offset
        self._converter = FromNetwork() if session.is_ascii else None
        self._left = self._to_come(announced)
        self._transfer: RecordReceiver | PlainReceiver
        if session.data.framed:
            self._transfer = RecordReceiver(channel, target, self._left, limit=session.rate_limit)
        else:
            self._transfer = PlainReceiver(
                channel,
                self._consume,
                self._left,
                patience=target.patience,
                limit=session.rate_limit,
                checkpoint=lambda: target.checkpoint([(0, self._end)], None),
            )
            self._transfer.linger = session.linger

    def _to_come(self, announced: int | None) -> int | None:
        """Give the bytes on their way: ALLO tells the whole file, or with APPE what is added."""
        if announced is None or self._session.is_ascii:
            return None  # line ends change the count
        if self._extend:
            return announced
        left = announced - self._target.offset
        return left if left >= 0 else None  # it told something else than the size of the file

    async def run(self, opening: str) -> Transfer:
        """Receive. What arrived is in the target afterwards, or kept, never both."""
        try:
            if isinstance(self._transfer, PlainReceiver):  # before 150: it may find the disk full
                await self._session.in_thread(self._target.begin_growing)
            self._session.begin(opening)
            await run_transfer(self._session, self._transfer)
            if not self._size_is_proof() and not await self._session.control.is_alive():
                raise TransferAborted("The client is gone, so the end of the data proves nothing.")
            await self._session.in_thread(self._append_rest)
        except BaseException:
            await self._keep_safely()
            raise
        size = self._end
        if isinstance(self._transfer, RecordReceiver):
            size = self._target.offset + (self._transfer.size or 0)
        sync = self._session.settings.sync_uploads
        self._session.running.forbid_abort()
        await self._session.in_thread(lambda: self._target.commit(size, sync=sync))
        return self._transfer

    def _size_is_proof(self) -> bool:
        """Tell whether exactly the announced bytes came, or those that were missing of them."""
        if self._left is None:
            return False
        is_counted = isinstance(self._transfer, RecordReceiver)
        return is_counted or self._transfer.file_bytes == self._left

    def _consume(self, data: memoryview, offset: int) -> None:
        self._append(data if self._converter is None else self._converter.convert(bytes(data)))

    def _append(self, data: memoryview | bytes) -> None:
        self._end += self._target.write([memoryview(data)], self._end)

    def _append_rest(self) -> None:
        if self._converter is not None:
            self._append(self._converter.finish())

    async def _keep_safely(self) -> None:
        """Keep what arrived; if that fails too, the first failure is the one to report."""
        try:
            await self._session.in_thread(self._keep)
        except FileError as error:
            logger.warning("the rest of a cut upload could not be kept: %s", error)

    def _keep(self) -> None:
        """Keep what arrived. A failed APPE keeps nothing: the file stays as long as it was."""
        if self._extend and self._target.replaces_file:
            self._target.discard()
        elif isinstance(self._transfer, RecordReceiver):
            size = None if self._left is None else self._target.offset + self._left
            self._target.keep(self._transfer.held_bytes(), size)
        else:
            self._target.keep([(0, self._end)] if self._end else [], None)
