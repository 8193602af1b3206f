"""Two hosts joined by an emulated link, without Mininet, for tests and benchmarks.

Their network namespaces have no names: they exist as long as somebody holds a descriptor of them
or a socket in them, so that a killed test leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET, SocketKind, socket

from mininet_topos.emulator.link import EmulatedLink, End
from mininet_topos.emulator.tun import namespace
from mininet_topos.errors import EmulatorError
from mininet_topos.links import LinkSpec

LEFT, RIGHT = "10.77.0.1", "10.77.0.2"
INTERFACE = "long0"

COMMAND_S = 20.0
"""Longest that a command of `Host.run` may take."""

_CLONE_NEWNET = 0x40000000  # linux/sched.h
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """A network namespace with one end of the link."""

    netns_fd: int
    address: str = ""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and what it starts, be in the namespace."""
        with namespace(self.netns_fd):
            yield

    def run(self, *command: str) -> str:
        """Run a command there that must succeed, and give what it prints."""
        with self.entered():
            return subprocess.run(
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                timeout=COMMAND_S,
            ).stdout

    def socket(self, kind: SocketKind, protocol: int = 0) -> socket:
        """Open an IPv4 socket there."""
        with self.entered():
            return socket(AF_INET, kind, protocol)


@dataclass(frozen=True)
class Pair:
    """Both hosts and the link between them."""

    left: Host
    right: Host
    link: EmulatedLink


@contextmanager
def two_namespaces() -> Iterator[tuple[int, int]]:
    """Give descriptors of two new network namespaces. Raises EmulatorError."""
    with ExitStack() as stack:
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, home)
        made = []
        with namespace(home):  # where this thread returns to, as the new ones are entered
            for _ in range(2):
                if _libc.unshare(_CLONE_NEWNET) != 0:
                    reason = os.strerror(ctypes.get_errno())
                    raise EmulatorError(f"a network namespace cannot be made: {reason}")
                made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
                stack.callback(os.close, made[-1])
        yield made[0], made[1]


@contextmanager
def joined(
    spec: LinkSpec,
    *,
    acknowledge_all: bool = False,
    sample_s: float | None = None,
    capture: Path | None = None,
) -> Iterator[Pair]:
    """Join two new hosts by a link that is there until the end of the block.

    acknowledge_all: receivers acknowledge every segment, whatever their sockets are told; sample_s,
    capture: as EmulatedLink.start has them. Raises EmulatorError.
    """
    with two_namespaces() as (left_fd, right_fd):
        left, right = Host(left_fd, LEFT), Host(right_fd, RIGHT)
        ends = [End(interface=INTERFACE, netns_fd=host.netns_fd) for host in (left, right)]
        with EmulatedLink.start(spec, *ends, sample_s=sample_s, capture=capture) as link:
            for own, other in ((left, right), (right, left)):
                _address(own, other, acknowledge_all)
            yield Pair(left, right, link)


def _address(own: Host, other: Host, acknowledge_all: bool) -> None:
    own.run("ip", "link", "set", "lo", "up")
    own.run("ip", "address", "add", own.address, "peer", other.address, "dev", INTERFACE)
    if acknowledge_all:
        route = (other.address, "dev", INTERFACE, "src", own.address)
        own.run("ip", "route", "change", *route, "quickack", "1")
