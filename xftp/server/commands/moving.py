"""The data of one command, moved as patiently as the settings say."""

from __future__ import annotations

from xftp.errors import DataConnectionError
from xftp.server.session import Session
from xftp.server.slowness import quick_enough
from xftp.transport.transfer import Transfer


async def run_transfer(session: Session, transfer: Transfer) -> None:
    """Move the data, as patiently as the settings say. Raises XftpError."""
    transfer.open_timeout_s = session.settings.open_timeout_s
    transfer.stall_timeout_s = session.stall_timeout_s
    if session.running.watched is not None:
        session.running.watched.transfer = transfer
    try:
        async with quick_enough(
            transfer.arrived_bytes, transfer.stall_timeout_s, session.rate_limit
        ):
            await transfer.run()
    except OSError as error:  # anything else was translated where it happened
        raise DataConnectionError(str(error)) from error
