"""A head start: the control connection is begun while the rest of the program is loaded.

Python needs some tenths of a second for that, in which a long path could carry a SYN and its
answer. So this module needs next to nothing. What was begun is taken by `dialling` if it is what it
wants, and is closed otherwise; whatever goes wrong here happens again there, where it is told.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Sequence
from typing import Any

Address = tuple[socket.AddressFamily, Any]

_PORTS = {"ftp://": 21, "ftpes://": 21, "ftps://": 990}
_COMMANDS = frozenset({"get", "put", "ls", "mirror", "rm", "mkdir", "mv"})
_BEGUN = (0, errno.EINPROGRESS)


class HeadStart:
    """One connection on its way, to the first address of a host, whose name is ASCII."""

    def __init__(self, host: str, port: int, family: socket.AddressFamily) -> None:
        self.key = host, port, family
        self._address: Address | None = None
        self._sock: socket.socket | None = None
        self._found: list[Address] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_wanted = True
        try:
            self._connect(_addresses(host, port, family, socket.AI_NUMERICHOST))
        except OSError:  # it is a name
            self._thread = threading.Thread(target=self._look_up, daemon=True)
            self._thread.start()

    def addresses(self) -> list[Address]:
        """Give all addresses of the host, none if they could not be found. Blocks."""
        if self._thread is not None:
            self._thread.join()
        return self._found

    def take(self, address: Address) -> socket.socket | None:
        """Give the socket that connects to an address, or is connected; None: there is none."""
        sock, self._sock = self._sock, None
        if sock is not None and address != self._address:
            sock.close()
            return None
        return sock

    def drop(self) -> None:
        """Close what was begun: nobody wants it."""
        with self._lock:
            self._is_wanted = False
            sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def _look_up(self) -> None:
        try:
            self._connect(_addresses(*self.key))
        except OSError:
            return

    def _connect(self, found: list[Address]) -> None:
        self._found, self._address = found, found[0]
        sock = socket.socket(found[0][0], socket.SOCK_STREAM)
        sock.setblocking(False)
        with self._lock:
            if self._is_wanted and sock.connect_ex(found[0][1]) in _BEGUN:
                self._sock = sock
                return
        sock.close()


_begun: HeadStart | None = None


def begin(arguments: Sequence[str]) -> None:
    """Connect to the server that the arguments of `xftp` name, if they name one."""
    global _begun
    if not arguments or arguments[0] not in _COMMANDS or {"-h", "--help"} & set(arguments):
        return
    place = next((found for each in arguments[1:] if (found := _place(each)) is not None), None)
    if place is not None:
        family = socket.AF_INET if "-4" in arguments else socket.AF_UNSPEC
        _begun = HeadStart(*place, socket.AF_INET6 if "-6" in arguments else family)


def begun(host: str, port: int, family: socket.AddressFamily) -> HeadStart | None:
    """Give what was begun, once, if it is that."""
    global _begun
    found, _begun = _begun, None
    if found is not None and found.key != (host, port, family):
        found.drop()
        return None
    return found


def _addresses(host: str, port: int, family: socket.AddressFamily, flags: int = 0) -> list[Address]:
    # As bytes: for what is ASCII anyway Python would load its codec of international names.
    name = host.encode("ascii")
    found = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM, flags=flags)
    return [(kind, address) for kind, _, _, _, address in found]


def _place(argument: str) -> tuple[str, int] | None:
    """Read host and port of a URL; None: it is none, or has to be read with more care."""
    for scheme, port in _PORTS.items():
        if argument.startswith(scheme):
            place = argument[len(scheme) :].partition("/")[0].rpartition("@")[2]
            host, _, number = place.partition(":")
            if not host.isascii() or not host or "[" in place or "%" in place:
                return None
            if not number:
                return host, port
            is_port = number.isascii() and number.isdigit() and 0 < int(number) < 65536
            return (host, int(number)) if is_port else None
    return None
