"""Standard output as the end of a transfer, without blocking Ctrl-C for long."""

from __future__ import annotations

import os
import select
import stat

from xftp.errors import FileError, file_error

BLOCK_BYTES = 256 * 1024
WAIT_S = 0.2
"""How long a write may wait: then the transfer can see that it was cancelled."""


class OutputStream:
    """Writes the pieces that `Session.get_stream` gives to a descriptor."""

    def __init__(self, descriptor: int, name: str = "standard output") -> None:
        self._descriptor = descriptor
        self._name = name
        self._is_closed = False
        self.error: FileError | BrokenPipeError | None = None
        """Why writing failed, if it did; it goes before what the server says about the end."""
        # A pipe that select calls writable has room for PIPE_BUF bytes, so these never block.
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._block_bytes = BLOCK_BYTES if regular else select.PIPE_BUF

    def __call__(self, piece: memoryview) -> None:
        """Write all of `piece`. Raises FileError, BrokenPipeError when nobody reads any more."""
        rest = piece
        try:
            while rest and not self._is_closed:
                if select.select([], [self._descriptor], [], WAIT_S)[1]:
                    rest = rest[os.write(self._descriptor, rest[: self._block_bytes]) :]
        except BrokenPipeError as error:
            self.error = error
            raise
        except OSError as error:
            self.error = file_error(error, self._name)
            raise self.error from error

    def close(self) -> None:
        """Let a write that waits for a reader give up; the descriptor stays open."""
        self._is_closed = True
