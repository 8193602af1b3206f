"""openat2(2), which Python does not have: a path is resolved by the kernel and never leaves a root.

Kernels before 5.6 and some sandboxes have none; then, and wherever the kernel cannot decide, the
caller walks the path itself.
"""

from __future__ import annotations

import ctypes
import errno
import os

_NUMBER = 437
"""Of the system call, on every architecture that Python is built for but alpha."""

_BENEATH = 0x08 | 0x02  # RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

_UNDECIDED = frozenset(
    {errno.EXDEV, errno.EAGAIN, errno.ENAMETOOLONG, errno.ENOSYS, errno.EPERM, errno.E2BIG}
)
"""A link leads out or is absolute; something was renamed meanwhile; the path as a whole is too
long; there is no such call."""


class _OpenHow(ctypes.Structure):
    """struct open_how of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)
_how = _OpenHow(_FLAGS, 0, _BENEATH)


def open_directory(root: int, path: str) -> int | None:
    """Open the directory `path` beneath the descriptor `root`, links within followed.

    None if the kernel does not say, as it may lead out, or has no openat2. Raises OSError.
    """
    descriptor = _libc.syscall(
        ctypes.c_long(_NUMBER),
        ctypes.c_int(root),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(_how),
        ctypes.c_size_t(ctypes.sizeof(_how)),
    )
    if descriptor >= 0:
        return int(descriptor)
    code = ctypes.get_errno()
    if code in _UNDECIDED:
        return None
    raise OSError(code, os.strerror(code), path)
