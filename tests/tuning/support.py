"""What the tests of sockets share."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tuning.sockopts import SocketTuning

NOBODY = 65534


@dataclass
class Pair:
    """A connection over loopback, and the listener it came from."""

    listener: socket.socket
    client: socket.socket
    server: socket.socket


@contextlib.contextmanager
def connected(
    client: SocketTuning | None = None, server: SocketTuning | None = None
) -> Iterator[Pair]:
    """Connect two sockets, each side tuned before connect and listen."""
    with socket.socket() as listener, socket.socket() as connecting:
        if server:
            server.apply(listener)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        if client:
            client.apply(connecting)
        connecting.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            yield Pair(listener, connecting, accepted)


def payload_bps(rate_bps: float) -> int:
    """Give what SO_MAX_PACING_RATE has for a link over IPv4: 1448 of 1500 bytes are payload."""
    return int(rate_bps / 8 * 1448 / 1500) * 8


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Be nobody for a while, without any capability; who is not root already is."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def needs_net_admin() -> None:
    """Skip a test that only a process with CAP_NET_ADMIN can pass."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, 32, 65536)  # SO_SNDBUFFORCE
        except PermissionError:
            pytest.skip("needs CAP_NET_ADMIN")


def available_algorithms() -> list[str]:
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as file:
        return file.read().split()


def ceiling(name: str) -> int:
    with open(f"/proc/sys/net/core/{name}") as file:
        return int(file.read())
