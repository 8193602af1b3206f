"""The few requests of rtnetlink(7) that a host route takes: look one up, add it, remove it, list.

Bytes are those of linux/rtnetlink.h. pyroute2 does all of it and more; this package needs only the
standard library, so that the daemon of an ordinary installation can do it too.
"""

from __future__ import annotations

import enum
import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""

_ROUTE = struct.Struct("=8BI")
"""struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags."""

_ATTRIBUTE = struct.Struct("=HH")
"""struct rtattr: length, type; padded to four bytes."""

_ERROR = struct.Struct("=i")
_TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_GETROUTE = 24, 25, 26
_REQUEST, _ACK, _DUMP, _CREATE = 0x1, 0x4, 0x300, 0x400  # NLM_F_…
_RTM_F_LOOKUP_TABLE = 0x1000
"""Answer with the table that the route was found in (Linux 4.5)."""

_RT_TABLE_COMPAT = 252
"""In the byte of struct rtmsg when the table's number is in RTA_TABLE."""

_RECEIVE_BYTES = 1 << 16
_TIMEOUT_S = 5.0
_UNIVERSE, _LINK = 0, 253  # RT_SCOPE_…
_NOT_FOUND = (errno.ESRCH, errno.ENOENT)

RTN_UNICAST: Final = 1
"""A route to another machine; RTN_LOCAL (2) leads to this one."""


class _Attribute(enum.IntEnum):
    """enum rtattr_type_t."""

    DST = 1
    OIF = 4
    GATEWAY = 5
    PRIORITY = 6
    PREFSRC = 7
    METRICS = 8
    TABLE = 15
    VIA = 18


INITCWND: Final = 11
"""RTAX_INITCWND among the metrics of a route: initial congestion window, segments."""

_PATH_MTU = 2
"""RTAX_MTU: in an answer it may be what path MTU discovery has learnt, which has an end."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one host."""

    host: Address
    """The destination; the prefix is the whole address."""

    interface: int = 0
    """Index of the device."""

    gateway: bytes = b""
    """Address of the next hop; empty: on the link."""

    via: bytes = b""
    """RTA_VIA: a next hop of the other family."""

    source: bytes = b""
    """Address that connections of this machine get."""

    table: int = 254
    """Routing table; 254 is main."""

    protocol: int = 0
    """Who made it (rtm_protocol)."""

    kind: int = RTN_UNICAST
    """rtm_type."""

    priority: int = 0
    """The lower the better; 0 is the default of IPv4, and IPv6 makes 1024 of it."""

    metrics: tuple[tuple[int, int], ...] = field(default=())
    """Numbers and values of RTAX_…; only those of four bytes."""

    @property
    def initial_window_segments(self) -> int | None:
        """What initcwnd says; None: nothing."""
        return dict(self.metrics).get(INITCWND)

    def with_initial_window(self, segments: int) -> Route:
        """Give the same way with another initcwnd."""
        kept = {n: value for n, value in self.metrics if n not in (INITCWND, _PATH_MTU)}
        return replace(self, metrics=tuple(sorted((kept | {INITCWND: segments}).items())))


def look_up(host: Address) -> Route:
    """Ask which way packets to a host go now. Raises OSError, also where there is none."""
    body = _route_message(host, flags=_RTM_F_LOOKUP_TABLE) + _pack(_Attribute.DST, host.packed)
    for kind, payload in _talk(_RTM_GETROUTE, _REQUEST, body):
        if kind == _RTM_NEWROUTE:
            return _parse(payload, host)
    raise OSError(errno.EPROTO, "the kernel did not answer with a route")


def add(route: Route) -> None:
    """Add a route before others of its priority. Raises OSError (EPERM without CAP_NET_ADMIN)."""
    for _ in _talk(_RTM_NEWROUTE, _REQUEST | _ACK | _CREATE, _whole(route)):
        pass


def remove(route: Route) -> bool:
    """Remove a route; tell whether it was there. Raises OSError."""
    try:
        for _ in _talk(_RTM_DELROUTE, _REQUEST | _ACK, _whole(route)):
            pass
    except OSError as error:
        if error.errno not in _NOT_FOUND:
            raise
        return False
    return True


def host_routes(protocol: int) -> list[Route]:
    """List the routes to single hosts that `protocol` made, of IPv4 and IPv6. Raises OSError."""
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        body = _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)
        for kind, payload in _talk(_RTM_GETROUTE, _REQUEST | _DUMP, body):
            answered, length, *_ = _ROUTE.unpack_from(payload)
            bits = 32 if family == socket.AF_INET else 128
            if kind == _RTM_NEWROUTE and answered == family and length == bits:
                route = _parse(payload, None)
                if route.protocol == protocol:
                    found.append(route)
    return found


# -- messages ---------------------------------------------------------------------------------


def _route_message(host: Address, route: Route | None = None, flags: int = 0) -> bytes:
    family = socket.AF_INET if host.version == 4 else socket.AF_INET6
    protocol, kind, scope = 0, 0, _UNIVERSE
    if route is not None:
        protocol, kind = route.protocol, route.kind
        on_link = not (route.gateway or route.via)
        scope = _LINK if on_link and host.version == 4 else _UNIVERSE
    table = _RT_TABLE_COMPAT if route is not None else 0
    return _ROUTE.pack(family, host.max_prefixlen, 0, 0, table, protocol, scope, kind, flags)


def _whole(route: Route) -> bytes:
    metrics = b"".join(_pack(number, _word(value)) for number, value in route.metrics)
    parts = [
        (_Attribute.DST, route.host.packed),
        (_Attribute.OIF, _word(route.interface)),
        (_Attribute.TABLE, _word(route.table)),
        (_Attribute.GATEWAY, route.gateway),
        (_Attribute.VIA, route.via),
        (_Attribute.PREFSRC, route.source),
        (_Attribute.PRIORITY, _word(route.priority) if route.priority else b""),
        (_Attribute.METRICS, metrics),
    ]
    attributes = b"".join(_pack(kind, value) for kind, value in parts if value)
    return _route_message(route.host, route) + attributes


def _parse(payload: bytes, host: Address | None) -> Route:
    fixed = _ROUTE.unpack_from(payload)
    table, protocol, kind = fixed[4], fixed[5], fixed[7]
    found = dict(_attributes(payload[_ROUTE.size :]))
    if host is None:
        host = ipaddress.ip_address(found[_Attribute.DST])
    metrics = _attributes(found.get(_Attribute.METRICS, b""))
    return Route(
        host=host,
        interface=_number(found.get(_Attribute.OIF)),
        gateway=found.get(_Attribute.GATEWAY, b""),
        via=found.get(_Attribute.VIA, b""),
        source=found.get(_Attribute.PREFSRC, b""),
        table=_number(found.get(_Attribute.TABLE)) or table,
        protocol=protocol,
        kind=kind,
        priority=_number(found.get(_Attribute.PRIORITY)),
        metrics=tuple((n, _number(value)) for n, value in metrics if len(value) == 4),
    )


def _pack(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            raise OSError(errno.EPROTO, "the kernel's answer cannot be read")
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]
        at += length + (-length % 4)


def _word(value: int) -> bytes:
    return struct.pack("=I", value)


def _number(value: bytes | None) -> int:
    return struct.unpack("=I", value)[0] if value is not None and len(value) == 4 else 0


# -- the kernel -------------------------------------------------------------------------------


def _talk(kind: int, flags: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    """Send one request; give the types and payloads of its answers. Raises OSError."""
    sequence = 1
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        netlink.bind((0, 0))
        netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, 0) + body)
        expects_end = bool(flags & _ACK) or flags & _DUMP == _DUMP
        while True:
            for answered, payload in _messages(netlink.recv(_RECEIVE_BYTES)):
                if answered == _NLMSG_ERROR:
                    code = -_ERROR.unpack_from(payload)[0]
                    if code:
                        raise OSError(code, os.strerror(code))
                    return
                if answered == _NLMSG_DONE:
                    return
                yield answered, payload
            if not expects_end:
                return


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            raise OSError(errno.EPROTO, "the kernel's answer cannot be read")
        yield kind, data[at + _HEADER.size : at + length]
        at += length + (-length % 4)
