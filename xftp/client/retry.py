"""Try again what a bad moment of the network, or of the server, has cut."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from xftp.errors import (
    ConnectError,
    DataConnectionError,
    LoginError,
    ReplyError,
    TransferAborted,
    XftpError,
)

from .moving import TransferStopped
from .options import Options
from .tls import TlsError

LONGEST_WAIT_S = 60.0

_Result = TypeVar("_Result")


def is_worth_a_retry(error: XftpError) -> bool:
    """Tell whether the same may succeed later: lost connections and 4yz replies."""
    if isinstance(error, (LoginError, TlsError, TransferStopped)):
        return False
    if isinstance(error, ReplyError):
        return error.code // 100 == 4
    return isinstance(error, (ConnectError, DataConnectionError, TransferAborted))


async def persist(
    attempt: Callable[[bool], Awaitable[_Result]],
    options: Options,
) -> _Result:
    """Await `attempt(is_retry)`, and again after a failure, as often as `options` say.

    Raises the last failure, and at once one that is not worth a retry.
    """
    wait_s = options.retry_wait_s
    for left in range(options.retries, -1, -1):
        try:
            return await attempt(left < options.retries)
        except XftpError as error:
            if not left or not is_worth_a_retry(error):
                raise
            if options.notice is not None:
                options.notice(f"{error}; trying again in {wait_s:g} s")
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)
    raise AssertionError("unreachable")
