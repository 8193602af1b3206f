"""Network and PID namespaces of other processes: enter, leave, and speak netlink inside."""

from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from mininet_topos.errors import MissingToolError, TopologyError

_LIBC = ctypes.CDLL(None, use_errno=True)


class Kind(enum.IntEnum):
    """What a thread can move to: CLONE_NEW* of linux/sched.h."""

    NETWORK = 0x40000000
    PID = 0x20000000
    """Of the children that the thread starts from now on; the thread itself stays."""


_FILES = {Kind.NETWORK: "net", Kind.PID: "pid_for_children"}


def require_root() -> None:
    """Raise MissingToolError unless this process may make namespaces."""
    if os.geteuid() != 0:
        raise MissingToolError("the lab makes network namespaces, which needs root: use sudo")


@contextmanager
def new_pid_namespace() -> Iterator[None]:
    """Give a new PID namespace to the children that this thread starts in the block.

    The first of them is its process 1: when that ends, the kernel kills all others.
    Raises MissingToolError where the kernel or a container forbids it.
    """
    with _returning(Kind.PID):
        if _LIBC.unshare(int(Kind.PID)) != 0:
            raise MissingToolError(f"a PID namespace cannot be made here: {_reason()}")
        yield


@contextmanager
def inside(pid: int, kind: Kind) -> Iterator[None]:
    """Put this thread, and only it, into a namespace of a process while the block runs.

    Sockets opened in the block stay in that namespace. Raises TopologyError if the process or its
    namespace is gone.
    """
    with _returning(kind):
        _enter(f"/proc/{pid}/ns/{_FILES[kind]}", kind)
        yield


@contextmanager
def netlink(pid: int, doing: str) -> Iterator[IPRoute]:
    """Give a netlink socket in a process's network namespace.

    doing: what the block is for, the start of the sentence of the TopologyError into which
    whatever the kernel refuses is turned.
    """
    with inside(pid, Kind.NETWORK):
        socket = IPRoute()
    try:
        yield socket
    except NetlinkError as error:
        raise TopologyError(f"{doing}: {error.args[1]} (netlink error {error.code})") from error
    finally:
        socket.close()


def write_sysctls(pid: int, values: Mapping[str, str]) -> None:
    """Write settings under /proc/sys in a process's network namespace, in the order given.

    values: such as {"net.ipv4.tcp_sack": "0"}. Raises TopologyError naming the one refused.
    """
    with inside(pid, Kind.NETWORK):
        for name, value in values.items():
            try:
                _path(name).write_text(value)
            except FileNotFoundError as error:
                raise TopologyError(f"this kernel has no {name}") from error
            except OSError as error:
                raise TopologyError(f"{name} cannot be {value!r}: {error.strerror}") from error


def read_sysctls(pid: int, names: tuple[str, ...]) -> dict[str, str]:
    """Read settings in a process's network namespace; those the kernel lacks are left out."""
    found: dict[str, str] = {}
    with inside(pid, Kind.NETWORK):
        for name in names:
            try:
                found[name] = " ".join(_path(name).read_text().split())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise TopologyError(f"{name} cannot be read: {error.strerror}") from error
    return found


def _path(sysctl: str) -> Path:
    return Path("/proc/sys", *sysctl.split("."))


@contextmanager
def _returning(kind: Kind) -> Iterator[None]:
    """Bring the thread back to its own namespace after the block."""
    own = f"/proc/thread-self/ns/{_FILES[kind]}"
    try:
        descriptor = os.open(own, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise MissingToolError(f"{own} cannot be opened: {error.strerror}") from error
    try:
        try:
            yield
        finally:
            if _LIBC.setns(descriptor, int(kind)) != 0:
                raise TopologyError(f"this thread cannot return to its namespace: {_reason()}")
    finally:
        os.close(descriptor)


def _enter(path: str, kind: Kind) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TopologyError(f"the namespace {path} is gone: {error.strerror}") from error
    try:
        if _LIBC.setns(descriptor, int(kind)) != 0:
            raise TopologyError(f"the namespace {path} cannot be entered: {_reason()}")
    finally:
        os.close(descriptor)


def _reason() -> str:
    return os.strerror(ctypes.get_errno())
