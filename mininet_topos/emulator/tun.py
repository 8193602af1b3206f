"""TUN devices in network namespaces: the only place where packets come from and go to.

TUN carries IP packets without Ethernet, so that no ARP costs a round trip of the long link.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mininet_topos.errors import EmulatorError

UNREAD_PACKETS = 10_000
"""How many packets the device keeps until they are read; what is beyond is dropped, and counted."""

_CLONE_NEWNET = 0x40000000  # linux/sched.h
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI, _IFF_TUN_EXCL = 0x0001, 0x1000, 0x8000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914  # linux/sockios.h
_SIOCSIFMTU, _SIOCSIFTXQLEN = 0x8922, 0x8943
_IFF_UP = 0x1  # linux/if.h
_NO_LINK_LOCAL_ADDRESS = "1"  # addr_gen_mode, linux/if_link.h
_MOST_NAME_BYTES = 15  # IFNAMSIZ with its end
_SENT_DROPS_COLUMN = 11  # of /proc/net/dev, after the name

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def namespace(descriptor: int) -> Iterator[None]:
    """Let this thread be in a network namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(descriptor)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class TunDevice:
    """A TUN device; it exists as long as its descriptor is open."""

    def __init__(self, netns_fd: int, interface: str, mtu: int) -> None:
        """Create it in a namespace, and bring it up without any address.

        Raises EmulatorError.
        """
        name = interface.encode()
        if not 0 < len(name) <= _MOST_NAME_BYTES:
            raise EmulatorError(f"{interface!r} is no name of an interface: 1 to 15 bytes")
        self.interface = interface
        try:
            with namespace(netns_fd):
                self.descriptor = _create(name)
                try:
                    _configure(name, mtu)
                    # It shows the namespace it was opened in, wherever it is read.
                    self._statistics: BinaryIO = open("/proc/thread-self/net/dev", "rb", 0)  # noqa: SIM115
                except OSError:
                    os.close(self.descriptor)
                    raise
        except OSError as error:
            raise EmulatorError(f"TUN device {interface}: {_reason(error)}") from error

    def drops(self) -> int:
        """Give how many packets the device dropped because nobody read them in time."""
        self._statistics.seek(0)
        for line in self._statistics.read().decode().splitlines():
            name, colon, numbers = line.partition(":")
            if colon and name.strip() == self.interface:
                return int(numbers.split()[_SENT_DROPS_COLUMN])
        raise EmulatorError(f"TUN device {self.interface} is gone")

    def discard(self, most_bytes: int) -> None:
        """Drop what the device has to read."""
        try:
            while True:
                os.read(self.descriptor, most_bytes)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Let the device vanish."""
        self._statistics.close()
        os.close(self.descriptor)


def _create(name: bytes) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        flags = _IFF_TUN | _IFF_NO_PI | _IFF_TUN_EXCL
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name, flags))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _configure(name: bytes, mtu: int) -> None:
    # Without an address of its own the device sends nothing by itself into the link.
    generation = Path("/proc/sys/net/ipv6/conf", name.decode(), "addr_gen_mode")
    if generation.exists():
        generation.write_text(_NO_LINK_LOCAL_ADDRESS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFMTU, struct.pack("16si20x", name, mtu))
        fcntl.ioctl(control, _SIOCSIFTXQLEN, struct.pack("16si20x", name, UNREAD_PACKETS))
        request = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sh22x", name, 0))
        flags = struct.unpack_from("16xh", request)[0] | _IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", name, flags))


def _reason(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "one of that name exists already"
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return "this kernel has no TUN devices (/dev/net/tun)"
    if error.errno in (errno.EPERM, errno.EACCES):
        return "only root may create it"
    return error.strerror or str(error)
