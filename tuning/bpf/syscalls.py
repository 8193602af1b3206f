"""The few commands of bpf(2) that work on maps that exist already, by ctypes.

Nothing here needs libbpf or, once a descriptor is open, privileges: an unprivileged process with
an open map descriptor may use it (Linux 5.19; before that only where
kernel.unprivileged_bpf_disabled is 0).
"""

from __future__ import annotations

import ctypes
import enum
import os
import struct
from pathlib import Path

_SYSCALL_NUMBERS = {
    "x86_64": 321,
    "i686": 357,
    "aarch64": 280,
    "riscv64": 280,
    "loongarch64": 280,
    "armv7l": 386,
    "ppc64le": 361,
    "s390x": 351,
}
"""__NR_bpf of asm/unistd.h."""

BPF_MAP_TYPE_SK_STORAGE = 24
"""linux/bpf.h, enum bpf_map_type."""

_MAP_INFO_BYTES = 88
_ATTRIBUTE_BYTES = 128
"""Room for union bpf_attr; the kernel wants what it does not know to be zero."""


class _Command(enum.IntEnum):
    """linux/bpf.h, enum bpf_cmd."""

    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    OBJ_GET = 7
    OBJ_GET_INFO_BY_FD = 15


_libc = ctypes.CDLL(None, use_errno=True)


def open_pinned(path: Path) -> int:
    """Open a pinned map; give its descriptor. Raises OSError."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return _bpf(_Command.OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def map_type_and_sizes(descriptor: int) -> tuple[int, int, int]:
    """Give a map's type, and the bytes of a key and of a value. Raises OSError."""
    info = ctypes.create_string_buffer(_MAP_INFO_BYTES)
    request = struct.pack("=IIQ", descriptor, len(info), ctypes.addressof(info))
    _bpf(_Command.OBJ_GET_INFO_BY_FD, request)
    kind, _, key_bytes, value_bytes = struct.unpack_from("=IIII", info)
    return kind, key_bytes, value_bytes


def update(descriptor: int, key: int, value: bytes) -> None:
    """Set the value of an integer key. Raises OSError."""
    content = ctypes.create_string_buffer(value, len(value))
    _with_key(_Command.MAP_UPDATE_ELEM, descriptor, key, ctypes.addressof(content))


def lookup(descriptor: int, key: int, value_bytes: int) -> bytes | None:
    """Give the value of an integer key, or None where there is none. Raises OSError."""
    content = ctypes.create_string_buffer(value_bytes)
    try:
        _with_key(_Command.MAP_LOOKUP_ELEM, descriptor, key, ctypes.addressof(content))
    except FileNotFoundError:
        return None
    return content.raw


def delete(descriptor: int, key: int) -> bool:
    """Remove an integer key; tell whether there was one. Raises OSError."""
    try:
        _with_key(_Command.MAP_DELETE_ELEM, descriptor, key, 0)
    except FileNotFoundError:
        return False
    return True


def _with_key(command: _Command, descriptor: int, key: int, value_address: int) -> None:
    number = ctypes.c_int(key)
    request = struct.pack("=IIQQQ", descriptor, 0, ctypes.addressof(number), value_address, 0)
    _bpf(command, request)


def _bpf(command: _Command, request: bytes) -> int:
    try:
        number = _SYSCALL_NUMBERS[os.uname().machine]
    except KeyError:
        raise OSError(f"the number of bpf(2) on {os.uname().machine} is not known here") from None
    attributes = ctypes.create_string_buffer(request, _ATTRIBUTE_BYTES)
    result: int = _libc.syscall(
        ctypes.c_long(number),
        ctypes.c_long(command),
        attributes,
        ctypes.c_ulong(_ATTRIBUTE_BYTES),
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
