"""Process 1 of a lab: waits until its standard input ends, that is, until the lab's owner does.

When it ends, however it ends, the kernel kills every process of the lab, and with the last process
of a network namespace goes the namespace with its interfaces. Run by `lifecycle`.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Wait for the end of standard input; orphans of the lab are reaped by the kernel meanwhile."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
