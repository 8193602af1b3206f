"""Standard streams that are closed: their numbers are taken before a connection gets one.

What is meant for a person or a pipe would go to a server otherwise, which may take it for commands.
Next to nothing is imported here: it is the first that a program does.
"""

from __future__ import annotations

import os
import sys

_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))

_WRONG_WAY = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_RDWR}
"""So that reading the one and writing the other is an error that can be told (EBADF)."""

closed: set[int] = set()
"""Those that were closed when the program began."""


def occupy(*, leads_nowhere: bool = False) -> None:
    """Open what is closed of 0, 1 and 2; standard error always leads nowhere.

    leads_nowhere: the others too; otherwise it is an error to use them.
    """
    for descriptor, _, _ in _STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            closed.add(descriptor)
            flags = os.O_RDWR if leads_nowhere else _WRONG_WAY[descriptor]
            os.open(os.devnull, flags)  # the lowest that is free: this one


def make_streams() -> None:
    """Give `sys` its streams, where Python found none; none fails over a character."""
    for descriptor, name, mode in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape" if mode == "r" else "replace")
