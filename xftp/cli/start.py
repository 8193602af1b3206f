"""Where the command `xftp` starts: the connection first, then the program."""

from __future__ import annotations

import gc
import sys

from xftp.client import ahead


def main() -> None:
    """Run `xftp` with the arguments of the process and end it."""
    ahead.begin(sys.argv[1:])
    # What is loaded stays to the end: to look through it for garbage is a tenth of a second.
    gc.disable()
    from .client import main as run

    gc.freeze()
    gc.enable()
    try:
        run()
    finally:
        gc.freeze()
