"""An initial window by a route: initcwnd on a host route to the peer, for as long as it is used.

Where no BPF program can be had, a route is the other way to set the initial window (ip-route(8),
Linux 2.6.30). It holds for all of this machine's connections to that host, needs CAP_NET_ADMIN,
and has to be put back:

    window = RouteWindow("192.0.2.7")
    try:
        window.set(40)                # before connect or listen; adds the route
        …                             # connections to and from 192.0.2.7 begin with 40
    finally:
        window.close()                # the last user in the network namespace removes it

The route is a copy of the one in force, with initcwnd, in the same table. It is known as ours by
its protocol number. Who uses it is noted in the names of abstract Unix sockets (unix(7)): they
belong to the network namespace, as routes do, and the kernel takes them away from a process that
is killed. A route whose users are all gone is removed by the next one to set or close a window,
and by `remove_leftovers`.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from . import rtnetlink
from .errors import TuningError
from .readback import LINUX

PROTOCOL = 207
"""rtm_protocol of our routes: none of /etc/iproute2/rt_protos, and no routing daemon's."""

_PRIORITY = {4: 0, 6: 1}
"""Better than, or before, whatever else leads to a single host; IPv6 takes 0 for 1024."""

_CAP_NET_ADMIN = 12
"""linux/capability.h."""

_NAMES = "xftp/initcwnd"
_MUTEX = f"\0{_NAMES}/mutex".encode()
_MUTEX_TIMEOUT_S = 0.5
"""It is held for about a millisecond; who waits for it may be an event loop."""

_MUTEX_RETRY_S = 0.002
_USER = re.compile(rf"@{_NAMES}/user/([0-9a-f.:]+)/")

_counter = itertools.count()


def may_change_routes() -> bool:
    """Tell whether this process has CAP_NET_ADMIN now."""
    if not LINUX:
        return False
    status = Path("/proc/thread-self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.M)
    return found is not None and bool(int(found[1], 16) >> _CAP_NET_ADMIN & 1)


class RouteWindow:
    """The initial window of all connections with one host, while this is open.

    host: literal address, as the peer of a connection has it.
    """

    def __init__(self, host: str) -> None:
        address = ipaddress.ip_address(host.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        self._host: rtnetlink.Address = mapped or address
        self._user: socket.socket | None = None
        self._segments = 0

    def check(self, segments: int) -> None:
        """Say, without a change, whether `set` would be refused.

        Raises TuningError.
        """
        if not may_change_routes():
            raise TuningError("a route's initcwnd needs CAP_NET_ADMIN")
        self._check_way(_way_to(self._host))
        others = self._window_of_others()
        if others not in (None, segments):
            raise self._conflict(others)

    def set(self, segments: int) -> None:
        """Let connections with the host that are made from now on begin with `segments`.

        Raises TuningError.
        """
        if self._user is not None:
            if segments != self._segments:
                raise self._conflict(self._segments)
            return
        self.check(segments)
        with _mutex():
            _sweep()
            others = self._window_of_others()
            if others is None:
                self._add(segments)
            elif others != segments:
                raise self._conflict(others)
            self._user, self._segments = _note_user(self._host), segments

    def close(self) -> None:
        """Use the route no more; the last user removes it. May be called again.

        Raises OSError only if the kernel does not let it be removed any more.
        """
        user, self._user = self._user, None
        if user is None:
            return
        user.close()
        with _mutex():
            _sweep()

    def _window_of_others(self) -> int | None:
        """Give what a route of ours that is in use says; None where there is none."""
        if self._host not in _hosts_in_use():
            return None
        return _way_to(self._host).initial_window_segments

    def _add(self, segments: int) -> None:
        way = _way_to(self._host)
        self._check_way(way)
        route = replace(
            way.with_initial_window(segments),
            protocol=PROTOCOL,
            priority=_PRIORITY[self._host.version],
        )
        try:
            rtnetlink.add(route)
        except OSError as error:
            raise TuningError(
                f"the route to {self._host} could not be set ({error.strerror})"
            ) from error
        got = _way_to(self._host).initial_window_segments
        if got != segments:
            rtnetlink.remove(route)
            raise TuningError(f"another route to {self._host} goes before one with initcwnd")

    def _check_way(self, way: rtnetlink.Route) -> None:
        if way.kind != rtnetlink.RTN_UNICAST:
            raise TuningError(f"{self._host} is this machine: its route cannot have an initcwnd")

    def _conflict(self, segments: int | None) -> TuningError:
        return TuningError(f"another transfer with {self._host} has initcwnd {segments} in force")


def remove_leftovers() -> tuple[str, ...]:
    """Remove the routes that killed processes left in this network namespace; name the hosts.

    Raises TuningError.
    """
    with _mutex():
        return tuple(str(host) for host in _sweep())


def leftovers() -> tuple[str, ...]:
    """Name the hosts that killed processes left a route to; nothing is changed.

    Raises TuningError.
    """
    return tuple(str(route.host) for route in _unused())


def _unused() -> list[rtnetlink.Route]:
    try:
        routes = rtnetlink.host_routes(PROTOCOL)
    except OSError as error:
        raise TuningError(f"the routes cannot be read ({error.strerror})") from error
    in_use = _hosts_in_use() if routes else set()
    return [route for route in routes if route.host not in in_use]


def _sweep() -> list[rtnetlink.Address]:
    """Remove our routes that nobody uses."""
    gone = []
    for route in _unused():
        try:
            rtnetlink.remove(route)
        except OSError as error:
            raise TuningError(
                f"the route to {route.host} could not be put back ({error.strerror}): as root, "
                f"ip route del {route.host} proto {PROTOCOL}"
            ) from error
        gone.append(route.host)
    return gone


def _way_to(host: rtnetlink.Address) -> rtnetlink.Route:
    try:
        return rtnetlink.look_up(host)
    except OSError as error:
        raise TuningError(f"there is no route to {host} ({error.strerror})") from error


# -- who uses them ----------------------------------------------------------------------------


def _hosts_in_use() -> set[rtnetlink.Address]:
    """Read the hosts from the names of the Unix sockets of this network namespace."""
    listed = Path("/proc/thread-self/net/unix").read_text(errors="replace")
    hosts: set[rtnetlink.Address] = set()
    for found in _USER.findall(listed):
        with suppress(ValueError):  # anybody may give a socket such a name
            hosts.add(ipaddress.ip_address(found))
    return hosts


def _note_user(host: rtnetlink.Address) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(f"\0{_NAMES}/user/{host}/{os.getpid()}.{next(_counter)}".encode())
    return sock


@contextmanager
def _mutex() -> Iterator[None]:
    """Keep others of this network namespace from changing routes meanwhile."""
    deadline = time.monotonic() + _MUTEX_TIMEOUT_S
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        while True:
            try:
                holder.bind(_MUTEX)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if time.monotonic() > deadline:
                    raise TuningError(
                        f"another process has been changing routes for {_MUTEX_TIMEOUT_S:g} s"
                    ) from error
                time.sleep(_MUTEX_RETRY_S)
        yield
