"""Two network namespaces joined by an emulated long path.

The namespaces have no names: they exist as long as somebody holds a descriptor of them or a socket
in them, so that a killed test or benchmark leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.delay_line import Way
from bench.processes import BenchError

CLIENT, SERVER = "10.77.0.1", "10.77.0.2"

_CLONE_NEWNET = 0x40000000  # linux/sched.h
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000

_ROOT = Path(__file__).parents[1]
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Namespace:
    """A network namespace with one TUN device in it."""

    descriptor: int
    tun: int

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and what it starts, be in the namespace."""
        with _returning():
            _check(_libc.setns(self.descriptor, _CLONE_NEWNET))
            yield

    def run(self, *command: str) -> None:
        """Run a command there; it must succeed."""
        with self.entered():
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=20)


@dataclass(frozen=True)
class Link:
    """The two ends."""

    client: Namespace
    server: Namespace


@contextmanager
def long_link(
    delay_s: float,
    *,
    rate_bps: float | None = None,
    queue_bytes: int | None = None,
    loss: float = 0.0,
    delayed_acks: bool = False,
    seed: int = 1,
) -> Iterator[Link]:
    """Join two new namespaces by a link of `delay_s` one way; rate, queue, loss towards the server.

    The server acknowledges every segment, or every second one (`delayed_acks`).
    """
    there = Way(delay_s=delay_s, rate_bps=rate_bps, queue_bytes=queue_bytes, loss=loss, seed=seed)
    back = Way(delay_s=delay_s, delayed_acks=delayed_acks, seed=seed)
    with path(there, back, acknowledge_all=True) as link:
        yield link


@contextmanager
def path(
    to_server: Way,
    to_client: Way,
    *,
    acknowledge_all: bool = False,
    capture: Path | None = None,
) -> Iterator[Link]:
    """Join two new namespaces; each way has its own rate, queue and loss.

    acknowledge_all: receivers acknowledge every segment, whatever their socket is told; capture:
    file for what passes (bench.wire), complete once the path is closed.
    """
    with ExitStack() as stack:
        client = _new_namespace(stack, CLIENT, SERVER, acknowledge_all)
        server = _new_namespace(stack, SERVER, CLIENT, acknowledge_all)
        told = {
            "client": client.tun,
            "server": server.tun,
            "to_server": asdict(to_server),
            "to_client": asdict(to_client),
            "capture": str(capture.absolute()) if capture else None,
        }
        emulator = subprocess.Popen(
            [sys.executable, "-m", "bench.delay_line", json.dumps(told)],
            pass_fds=(client.tun, server.tun),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
        )
        try:
            if emulator.stdout is None or emulator.stdout.readline() != b"ready\n":
                raise BenchError("the emulated path does not start")
            yield Link(client, server)
            if emulator.poll() is not None:
                raise BenchError("the emulated path has ended")
        finally:
            _end(emulator)


def _end(emulator: subprocess.Popen[bytes]) -> None:
    """Close its standard input, at which it ends."""
    try:
        emulator.communicate(timeout=5)
    finally:
        emulator.kill()
        emulator.wait()


def _new_namespace(stack: ExitStack, own: str, other: str, acknowledge_all: bool) -> Namespace:
    with _returning():
        _check(_libc.unshare(_CLONE_NEWNET))
        descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, tun)
        request = struct.pack("16sH22x", b"long0", _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(tun, _TUNSETIFF, request)
    namespace = Namespace(descriptor, tun)
    namespace.run("ip", "link", "set", "lo", "up")
    namespace.run("ip", "link", "set", "long0", "up", "mtu", "1500", "txqueuelen", "20000")
    namespace.run("ip", "address", "add", own, "peer", other, "dev", "long0")
    if acknowledge_all:
        namespace.run("ip", "route", "change", other, "dev", "long0", "src", own, "quickack", "1")
    return namespace


@contextmanager
def _returning() -> Iterator[None]:
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _check(_libc.setns(home, _CLONE_NEWNET))
        finally:
            os.close(home)


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
