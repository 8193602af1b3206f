"""The one setting of the host that the lab must touch, for a moment, and puts back."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet_topos.errors import TopologyError
from mininet_topos.lifecycle import undisturbed

_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_MUTEX = Path("/sys/fs")
"""Locked while the setting is changed: a directory that is always there, so that no lock file is
left behind. `tuning` locks it while it loads or unloads algorithms, which changes the list too."""


def available_congestion_control() -> list[str]:
    """Name the algorithms that the kernel has."""
    return _AVAILABLE.read_text().split()


@contextmanager
def allowed_congestion_control(name: str) -> Iterator[None]:
    """Put an algorithm on the host's list of those that everyone may choose, during the block.

    Only these can be a namespace's default, which then stays when the list is as before. The block
    must be short: Ctrl-C waits for its end, and so do other labs. Raises TopologyError.
    """
    descriptor = os.open(_MUTEX, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if name in _allowed():
            yield
            return
        with undisturbed():
            _write([*_allowed(), name])
            try:
                yield
            finally:
                # Read again: somebody else may have changed it meanwhile.
                _write([other for other in _allowed() if other != name])
    finally:
        os.close(descriptor)


def _allowed() -> list[str]:
    return _ALLOWED.read_text().split()


def _write(names: list[str]) -> None:
    try:
        _ALLOWED.write_text(" ".join(names))
    except OSError as error:
        raise TopologyError(f"{_ALLOWED} cannot be written: {error.strerror}") from error
