"""SKELETON, being filled: the signatures stay."""
from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from xftp.errors import FileError
from xftp.protocol.listings import Entry
from xftp.protocol.replies import Reply
from xftp.transport.report import TransferReport

from .options import Existing, Options
from .progress import Progress
from .url import FtpUrl


def connect(url: str | FtpUrl, *, user: str | None = None, password: str | None = None,
            options: Options | None = None, connections: int | None = None,
            ) -> AbstractAsyncContextManager[Session]:
    """`async with connect("ftp://host/", connections=8) as session:`; connected and logged in.

    user, password: before those of the URL; neither: anonymous. connections: before that of
    options. Raises ArgumentError (bad URL), ConnectError, LoginError. Leaving says QUIT."""
    raise NotImplementedError

async def open_session(url: str | FtpUrl, *, user: str | None = None, password: str | None = None,
                       options: Options | None = None, login: bool = True) -> Session:
    """The same without `async with` (the shell): call `quit()` or `close()` in the end.

    login=False: only connect; `login()` later."""
    raise NotImplementedError


class ExistsError(FileError):
    """The target exists, here or on the server, and `existing` is "fail"  (in client/existing.py)."""


class Session:
    url: FtpUrl           # .host .port .user .path .type ; str(url) shows no password
    greeting: str
    is_logged_in: bool
    is_closed: bool
    server_limit: int | None      # number in the MULT reply, None: not asked or not told
    supports_multiple: bool | None  # None: not asked yet
    passive: bool                 # may be assigned (shell: `passive`)
    type: str                     # "I" or "A" as the user chose with set_type

    @property
    def connections(self) -> int:
        """The number in force for the next transfer, as far as it is known."""
        raise NotImplementedError

    async def multiple(self, wanted: int | None = None) -> int:
        """Ask MULT and return the number in force (None: the default 4); 1 if the server lacks it.
        Cut ones are told to options.notice. ArgumentError below 1."""
        raise NotImplementedError

    # None when skipped, or when "resume" finds nothing left to do
    async def get(self, remote: str, local: str | os.PathLike[str] | None = None, *,
                  existing: Existing = "fail", progress: Progress | None = None,
                  preserve_times: bool = True) -> TransferReport | None:
        raise NotImplementedError
    async def put(self, local: str | os.PathLike[str], remote: str | None = None, *,
                  existing: Existing = "fail", progress: Progress | None = None,
                  preserve_times: bool = True) -> TransferReport | None:
        """remote: None or "" or "dir/" take the base name of `local`."""
        raise NotImplementedError
    async def get_stream(self, remote: str, consume: Callable[[memoryview], object], *,
                         progress: Progress | None = None) -> TransferReport:
        """consume: called in a worker thread with each piece, in order."""
        raise NotImplementedError
    async def put_stream(self, produce: Callable[[], bytes | None], remote: str, *,
                         existing: Existing = "overwrite",
                         progress: Progress | None = None) -> TransferReport | None:
        """produce: called in a worker thread; the next bytes, b"" at the end, None for "nothing
        yet, ask again": it should not block longer than a fraction of a second, or Ctrl-C waits."""
        raise NotImplementedError

    async def list(self, path: str = "") -> list[Entry]: raise NotImplementedError
    async def list_text(self, path: str = "") -> str: raise NotImplementedError
    async def size(self, path: str) -> int: raise NotImplementedError
    async def modified(self, path: str) -> float: raise NotImplementedError
    async def cwd(self, path: str) -> None: raise NotImplementedError
    async def cdup(self) -> None: raise NotImplementedError
    async def pwd(self) -> str: raise NotImplementedError
    async def make_directory(self, path: str) -> None: raise NotImplementedError
    async def remove_directory(self, path: str) -> None: raise NotImplementedError
    async def remove(self, path: str) -> None: raise NotImplementedError
    async def rename(self, old: str, new: str) -> None: raise NotImplementedError
    async def set_type(self, type: str) -> None: raise NotImplementedError  # "A" or "I"
    async def quote(self, command: str) -> Reply: raise NotImplementedError  # any reply is returned
    async def status(self, path: str = "") -> str: raise NotImplementedError
    async def features(self) -> dict[str, str]: raise NotImplementedError
    async def system(self) -> str: raise NotImplementedError
    async def help(self, topic: str = "") -> str: raise NotImplementedError
    async def noop(self) -> None: raise NotImplementedError
    async def abort(self) -> None:
        """Stop the running get/put (they raise TransferAborted); or say ABOR."""
        raise NotImplementedError
    async def login(self, user: str, password: str = "") -> None: raise NotImplementedError
    async def quit(self) -> None: raise NotImplementedError
    def close(self) -> None: raise NotImplementedError
