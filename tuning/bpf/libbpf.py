"""Put one object into the kernel, by calls of libbpf.so.1.

libbpf and not bpf(2) itself, because fitting a program to the running kernel's structures
(CO-RE) is most of what it does; libbpf and not bpftool, because it is a library that iproute2
brings along on most machines, tells its errors as values and prints nothing to parse.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LIBRARY = "libbpf.so.1"

_LEVEL_WARN = 0
"""enum libbpf_print_level: what went wrong; the others are information and debugging."""

_PrintFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
"""Its last argument is a va_list, a pointer wherever this package runs; only vsnprintf uses it."""


class LoadError(OSError):
    """The kernel or libbpf refused an object; `log` is what libbpf said about it."""

    def __init__(self, code: int, what: str, log: list[str]) -> None:
        super().__init__(code, os.strerror(code), what)
        self.what = what
        self.log = log


class LibraryMissing(Exception):
    """This machine has no libbpf.so.1."""


def register(path: Path, name: str, pin: Path, shared_maps: dict[str, Path]) -> None:
    """Load an object and register the struct_ops `name` that it holds.

    The map behind it is pinned at `pin`; the registration lasts until its key 0 is deleted.
    Maps named in `shared_maps` are taken from there, or pinned there if they are new.
    Raises LibraryMissing, LoadError.
    """
    library = _open_library()
    with _collected_messages(library) as log:
        object_ = library.bpf_object__open_file(os.fsencode(path), None)
        if not object_:
            raise LoadError(ctypes.get_errno(), "reading the object", log)
        try:
            _register(library, object_, name, pin, shared_maps, log)
        finally:
            library.bpf_object__close(object_)


def _register(
    library: ctypes.CDLL,
    object_: int,
    name: str,
    pin: Path,
    shared_maps: dict[str, Path],
    log: list[str],
) -> None:
    def check(result: int, what: str) -> None:
        if result < 0:
            raise LoadError(-result, what, log)

    def find(map_name: str) -> int:
        found: int | None = library.bpf_object__find_map_by_name(object_, map_name.encode())
        if not found:
            raise LoadError(ctypes.get_errno(), f"looking for the map {map_name}", log)
        return found

    for map_name, map_pin in shared_maps.items():
        check(
            library.bpf_map__set_pin_path(find(map_name), os.fsencode(map_pin)),
            f"sharing the map {map_name}",
        )
    operations = find(name)
    check(library.bpf_object__load(object_), "loading the programs")
    # Pinned before it is registered: whatever happens in between, unload() finds it.
    check(library.bpf_map__pin(operations, os.fsencode(pin)), f"pinning at {pin}")
    link = library.bpf_map__attach_struct_ops(operations)
    if not link:
        code = ctypes.get_errno()
        pin.unlink()
        raise LoadError(code, "registering the algorithm", log)
    # Destroying the link would take the registration back; it is to outlive this process.
    library.bpf_link__disconnect(link)
    library.bpf_link__destroy(link)


def _open_library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError as error:
        raise LibraryMissing(str(error)) from error
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "libbpf_set_print": (pointer, [pointer]),
        "bpf_object__open_file": (pointer, [text, pointer]),
        "bpf_object__load": (ctypes.c_int, [pointer]),
        "bpf_object__close": (None, [pointer]),
        "bpf_object__find_map_by_name": (pointer, [pointer, text]),
        "bpf_map__set_pin_path": (ctypes.c_int, [pointer, text]),
        "bpf_map__pin": (ctypes.c_int, [pointer, text]),
        "bpf_map__attach_struct_ops": (pointer, [pointer]),
        "bpf_link__disconnect": (None, [pointer]),
        "bpf_link__destroy": (ctypes.c_int, [pointer]),
    }
    for function, (result, arguments) in signatures.items():
        bound = getattr(library, function)  # library[function] would be another one each time
        bound.restype = result
        bound.argtypes = arguments
    return library


@contextmanager
def _collected_messages(library: ctypes.CDLL) -> Iterator[list[str]]:
    """Collect what libbpf would print on standard error."""
    messages: list[str] = []
    libc = ctypes.CDLL(None)

    def collect(level: int, text: bytes, arguments: int) -> int:
        if level == _LEVEL_WARN:
            room = ctypes.create_string_buffer(1 << 16)
            libc.vsnprintf(room, ctypes.c_size_t(len(room)), text, ctypes.c_void_p(arguments))
            messages.extend(room.value.decode(errors="replace").splitlines())
        return 0

    callback = _PrintFunction(collect)  # kept alive until the end of this function
    before = library.libbpf_set_print(ctypes.cast(callback, ctypes.c_void_p))
    try:
        yield messages
    finally:
        library.libbpf_set_print(before)
