"""Sockets that hear nothing: their kernel drops every segment unseen, as a dead link does.

A socket filter that accepts no byte makes Linux drop what comes in for a TCP socket before TCP sees
it (tcp_filter in net/ipv4/tcp_ipv4.c): nothing is acknowledged, probes are not answered, and a
listener answers no SYN. It needs no privilege. See socket(7) and
Documentation/networking/filter.rst of the kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
_BPF_RET_K = 0x06
_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RET_K, 0, 0, 0), 8)
_PROGRAM = struct.pack("HP", 1, ctypes.addressof(_NOTHING))


def deafen(sock: socket.socket) -> None:
    """Let a socket hear nothing any more."""
    if sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM)


def undeafen(sock: socket.socket) -> None:
    """Let it hear again."""
    if sock.fileno() >= 0:
        with contextlib.suppress(FileNotFoundError):  # it had no filter
            sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
