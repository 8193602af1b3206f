"""Where the command `xftp` starts: the connection first, then the program. And where it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from xftp.client import ahead

from . import descriptors


def main() -> None:
    """Run `xftp` with the arguments of the process and end it."""
    descriptors.occupy()
    ahead.begin(sys.argv[1:])
    # What is loaded stays to the end: to look through it for garbage is a tenth of a second.
    gc.disable()
    from .client import run_program

    gc.freeze()
    gc.enable()
    _leave(run_program())


def _leave(status: int) -> None:
    """End the process. Nothing waits any more, and to take the program apart takes a while."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # what there is to tell was told
            stream.flush()
    os._exit(status)
