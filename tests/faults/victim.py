"""What is done to a program from inside: its disk fails or is small, or its clock jumps.

The program is what it always is, in a process of its own; only what it asks of the system is
answered as a failing disk would. The faults last until the file `healed` is there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CLONE_NEWNS = 0x20000
"""A mount namespace of one's own (unshare(2))."""

_DESCRIPTOR_PLACE = {"sendfile": 1}
"""Which argument is the file's descriptor or name, where that is not the first."""


@dataclass(frozen=True, slots=True)
class Harm:
    """What is done to a program. Nothing by default."""

    happened: str = ""
    """Path of a file that is made when it happens first."""

    healed: str = ""
    """Path of a file that, once it is there, ends it."""

    operations: tuple[str, ...] = ()
    """Functions of `os` that fail."""

    errno_name: str = "EIO"

    after_bytes: int = 0
    """What these functions still move before they fail."""

    suffix: str = ""
    """How the names of the files end for which they fail."""

    clock_s: float = 0.0
    """How far the wall clock jumps at SIGUSR1."""

    small_disk: str = ""
    """Path of a directory on which a file system of `small_disk_bytes` is mounted (root)."""

    small_disk_bytes: int = 0


class _Breaker:
    """Makes functions of `os` fail once they have moved enough."""

    def __init__(self, harm: Harm) -> None:
        self._harm = harm
        self._left = harm.after_bytes

    def broken(self, name: str) -> Callable[..., Any]:
        """Give what takes the place of a function."""
        real = getattr(os, name)
        place = _DESCRIPTOR_PLACE.get(name, 0)

        def function(*arguments: Any, **named: Any) -> Any:
            concerned = self._is_concerned(arguments[place])
            if concerned and self._left <= 0 and not os.path.exists(self._harm.healed):
                Path(self._harm.happened).touch()
                number = getattr(errno, self._harm.errno_name)
                raise OSError(number, os.strerror(number))
            moved = real(*arguments, **named)
            if concerned and isinstance(moved, int) and name != "open":
                self._left -= moved
            return moved

        return function

    def _is_concerned(self, file: int | str | bytes | os.PathLike[str]) -> bool:
        if isinstance(file, int):
            try:
                file = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                return False
        return os.fsdecode(file).endswith(self._harm.suffix)


def _break_disk(harm: Harm) -> None:
    breaker = _Breaker(harm)
    for name in harm.operations:
        setattr(os, name, breaker.broken(name))


def _let_clock_jump(harm: Harm) -> None:
    real, jumped_s = time.time, 0.0

    def jump(*_: object) -> None:
        nonlocal jumped_s
        jumped_s = harm.clock_s
        Path(harm.happened).touch()

    signal.signal(signal.SIGUSR1, jump)
    time.time = lambda: real() + jumped_s


def _mount_small_disk(harm: Harm) -> None:
    """Mount it in a namespace of this process's own, so that it ends with the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={harm.small_disk_bytes}", "tmpfs"]
    subprocess.run([*mount, harm.small_disk], check=True)


def read_harm(values: dict[str, Any]) -> Harm:
    """Make a harm of its fields."""
    return Harm(**{**values, "operations": tuple(values["operations"])})


def apply(harm: Harm) -> None:
    """Do it to this process."""
    if harm.small_disk:
        _mount_small_disk(harm)
    _break_disk(harm)
    if harm.clock_s:
        _let_clock_jump(harm)
