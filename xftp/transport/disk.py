"""Whether a file operation is done here and now, or in a thread.

A thread costs two wake-ups an operation, more than the operation itself while the data only goes
to or comes from memory; but a disk that makes us wait must not make every other connection wait.
So: reads are tried without waiting; writes are done at once as long as the disk takes them at
once, and go to threads when it does not. Only on file systems that are known to be local: network
and FUSE file systems, which may hang for good, and any other always go to threads.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

SLOW_S = 0.005
"""A write that takes longer than this sends the following ones to threads."""

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
"""How long they stay there before one is tried at once again: twice as long each time."""

MEMORY_KINDS = frozenset({"tmpfs", "ramfs"})
_KIND_GOOD_S = 10.0
_MOST_KINDS = 64
_kinds: dict[int, tuple[str, float]] = {}
"""Kinds of file systems by their device, and until when that is believed."""

LOCAL_KINDS = MEMORY_KINDS | {"ext2", "ext3", "ext4", "xfs", "f2fs", "overlay"}
"""What is written in an overlay, as containers have it, is on a local file system: the kernel takes
no other there."""


def filesystem_kind(descriptor: int) -> str:
    """Name the file system of an open file; "" where that cannot be told (proc(5), mountinfo).

    What was found out is good for a while: with many small files it would cost more than they do.
    """
    device, now_s = os.fstat(descriptor).st_dev, time.monotonic()
    kind, until_s = _kinds.get(device, ("", 0.0))
    if now_s >= until_s:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        kind = _look_up(device)
        _kinds[device] = (kind, now_s + _KIND_GOOD_S)
    return kind


def _look_up(device: int) -> str:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0]
    return ""


class Patience:
    """Decides for one file whether the next write may be done at once."""

    def __init__(self, kind: str) -> None:
        """Take the kind of the file system that the file is on."""
        self._is_local = kind in LOCAL_KINDS
        self._is_memory = kind in MEMORY_KINDS
        self._retry_s = FIRST_RETRY_S
        self._threads_until = 0.0

    def allows(self, now: float) -> bool:
        """Tell whether a write may be done at once."""
        return self._is_local and now >= self._threads_until

    def took(self, seconds: float, now: float) -> None:
        """Note how long a write at once took; in memory, a slow one waited for the processor."""
        if seconds > SLOW_S and not self._is_memory:
            self._threads_until = now + self._retry_s
            self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)
