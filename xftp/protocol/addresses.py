"""The addresses of data connections: arguments of MPRT, EPRT, PORT, replies to MPSV, EPSV, PASV.

The grammars, where `d` is one delimiter and every number is of ASCII digits only:

    MPRT        net-prot "|" "TCP" "|" net-addr "|" port *("," port)     Allman 1997 B.2.2
    MPSV reply  "(" the same ")" text                                    Allman 1997 B.2.3
    EPRT        d net-prt d net-addr d port d                            RFC 2428 section 2
    EPSV reply  text "(" d d d port d ")"                                RFC 2428 section 3
    PORT, PASV  h1,h2,h3,h4,p1,p2                                        RFC 959 section 5.3.2

What comes as a command raises `ArgumentError` or `NetworkProtocolError`; what comes as a reply
raises `PeerError`. Hosts are literal addresses in their canonical form, so that they can be
compared with the address of the control connection. Who may be connected to is not decided here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from xftp.errors import ArgumentError, NetworkProtocolError, PeerError, XftpError

EpsvChoice = Literal["any", "ipv4", "ipv6", "all"]

MAX_PORT = 65535
"""The largest TCP port (RFC 9293 section 3.1); 0 is reserved and names no listener."""

_IPV4 = 4
_IPV6 = 6

_MULTI_FAMILIES = {"IP4": _IPV4, "IP6": _IPV6}
"""net-prot of MPRT and MPSV: IP4 from Allman 1997 B.2.2, IP6 by analogy."""

_EXTENDED_FAMILIES = {1: _IPV4, 2: _IPV6}
"""net-prt of EPRT and EPSV: the address family numbers of RFC 2428 section 2."""

_EPSV_CHOICES: dict[str, EpsvChoice] = {"": "any", "1": "ipv4", "2": "ipv6", "ALL": "all"}
"""Arguments of EPSV (RFC 2428 sections 3 and 4)."""

_DIGITS = re.compile(r"[0-9]+")
_SHORT_NUMBER = re.compile(r"[0-9]{1,5}")
_PROTOCOL_NAME = re.compile(r"[A-Za-z0-9]+")
_DELIMITER = re.compile(r"[!-~]")  # RFC 2428 section 2: ASCII 33 to 126
_MULTI_REPLY = re.compile(r"\(([^()|]*(?:\|[^()|]*){3})\)")
_EPSV_REPLY = re.compile(r"\(([!-~])\1\1([0-9]{1,5})\1\)")
_HOST_PORT = re.compile(r"[0-9]{1,3}(?:,[0-9]{1,3}){5}")
# RFC 1123 section 4.1.2.6: the words and the parentheses differ, so only the numbers count.
_PASV_REPLY = re.compile(rf"(?<![0-9])(?<![0-9],){_HOST_PORT.pattern}(?![0-9]|,[0-9])")


class Endpoint(NamedTuple):
    """One end of a TCP connection."""

    host: str
    """A literal IPv4 or IPv6 address."""

    port: int
    """1 to 65535."""

    @property
    def is_ipv6(self) -> bool:
        """Tell whether the host is an IPv6 address."""
        return ":" in self.host


# -- MPRT and MPSV ----------------------------------------------------------------------------


def parse_mprt(argument: str) -> tuple[Endpoint, ...]:
    """Read the argument of MPRT: one endpoint per listed port, in the order of the list.

    A port may be listed several times. Raises ArgumentError for bad syntax, and
    NetworkProtocolError for other protocols than IP4 or IP6 over TCP. Allman 1997 B.2.2.
    """
    fields = argument.split("|")
    if len(fields) != 4:
        raise ArgumentError("expected net-prot|TCP|address|port,port,...")
    network, transport, host, ports = fields
    if not (_PROTOCOL_NAME.fullmatch(network) and _PROTOCOL_NAME.fullmatch(transport)):
        raise ArgumentError("a protocol name is missing or malformed")
    version = _MULTI_FAMILIES.get(network.upper())
    if version is None:
        # RFC 2428 section 2 wants the protocols that can be used, in parentheses.
        raise NetworkProtocolError("network protocol not supported, use (IP4,IP6)")
    if transport.upper() != "TCP":
        raise NetworkProtocolError("transport protocol not supported, use (TCP)")
    address = _literal(host, version)
    return tuple(Endpoint(address, _port(port)) for port in ports.split(","))


def format_mprt(endpoints: Sequence[Endpoint]) -> str:
    """Write the argument of MPRT for endpoints of one host.

    Raises ArgumentError for no endpoint, several hosts or a port out of range.
    Allman 1997 B.2.2.
    """
    hosts = {_wire_host(endpoint) for endpoint in endpoints}
    if len(hosts) != 1:
        raise ArgumentError("the endpoints must be of exactly one host")
    network = "IP6" if endpoints[0].is_ipv6 else "IP4"
    ports = ",".join(str(_checked_port(endpoint.port)) for endpoint in endpoints)
    return f"{network}|TCP|{hosts.pop()}|{ports}"


def parse_mpsv_reply(text: str) -> tuple[Endpoint, ...]:
    """Read the text of a 229 reply to MPSV; the parenthesis may stand anywhere in it.

    Raises PeerError when it is malformed. Allman 1997 B.2.3.
    """
    found = _MULTI_REPLY.search(text)
    if found is None:
        raise PeerError("the reply to MPSV holds no addresses")
    try:
        return parse_mprt(found[1])
    except XftpError as error:
        raise PeerError(f"the reply to MPSV is malformed: {error}") from error


def format_mpsv_reply(endpoints: Sequence[Endpoint]) -> str:
    """Write the text of a 229 reply to MPSV. Errors as in `format_mprt`. Allman 1997 B.2.3."""
    return f"({format_mprt(endpoints)}) Entering passive mode."


# -- EPRT and EPSV ----------------------------------------------------------------------------


def parse_eprt(argument: str) -> Endpoint:
    """Read the argument of EPRT, with any delimiter of ASCII 33 to 126.

    Raises ArgumentError for bad syntax, NetworkProtocolError for an address family other than
    1 (IPv4) and 2 (IPv6). RFC 2428 section 2.
    """
    delimiter = argument[:1]
    fields = argument[1:].split(delimiter) if _DELIMITER.fullmatch(delimiter) else []
    if len(fields) != 4 or fields[3]:
        raise ArgumentError("expected |net-prt|address|port|")
    family, host, port, _ = fields
    if not _DIGITS.fullmatch(family):
        raise ArgumentError("the address family is not a number")
    version = _EXTENDED_FAMILIES.get(int(family)) if len(family) <= 5 else None
    if version is None:
        raise NetworkProtocolError("network protocol not supported, use (1,2)")
    return Endpoint(_literal(host, version), _port(port))


def format_eprt(endpoint: Endpoint) -> str:
    """Write the argument of EPRT.

    Raises ArgumentError for a host that is no literal address or a port out of range.
    RFC 2428 section 2.
    """
    family = 2 if endpoint.is_ipv6 else 1
    return f"|{family}|{_wire_host(endpoint)}|{_checked_port(endpoint.port)}|"


def parse_epsv_argument(argument: str) -> EpsvChoice:
    """Read the argument of EPSV: nothing, an address family, or ALL.

    Raises NetworkProtocolError for a family other than 1 and 2, ArgumentError for what is not
    a number. RFC 2428 sections 3 and 4.
    """
    choice = _EPSV_CHOICES.get(argument.upper())
    if choice is not None:
        return choice
    if _DIGITS.fullmatch(argument):
        raise NetworkProtocolError("network protocol not supported, use (1,2)")
    raise ArgumentError("expected nothing, 1, 2 or ALL")


def parse_epsv_reply(text: str) -> int:
    """Read the port from the text of a 229 reply to EPSV; the host is that of the control peer.

    Raises PeerError when it is malformed. RFC 2428 section 3.
    """
    found = _EPSV_REPLY.search(text)
    if found is None:
        raise PeerError("the reply to EPSV holds no port")
    try:
        return _port(found[2])
    except ArgumentError as error:
        raise PeerError(f"the reply to EPSV is malformed: {error}") from error


def format_epsv_reply(port: int) -> str:
    """Write the text of a 229 reply to EPSV.

    Raises ArgumentError for a port out of range. RFC 2428 section 3.
    """
    return f"Entering Extended Passive Mode (|||{_checked_port(port)}|)"


# -- PORT and PASV ----------------------------------------------------------------------------


def parse_port(argument: str) -> Endpoint:
    """Read the argument of PORT, h1,h2,h3,h4,p1,p2.

    Raises ArgumentError for bad syntax or port 0. RFC 959 section 5.3.2.
    """
    if not _HOST_PORT.fullmatch(argument):
        raise ArgumentError("expected h1,h2,h3,h4,p1,p2")
    return _host_port(argument)


def format_port(endpoint: Endpoint) -> str:
    """Write the argument of PORT.

    Raises NetworkProtocolError for an IPv6 host, ArgumentError for a host that is no literal
    address or a port out of range. RFC 959 section 5.3.2.
    """
    if endpoint.is_ipv6:
        raise NetworkProtocolError("PORT and PASV cannot carry an IPv6 address")
    host = _wire_host(endpoint).replace(".", ",")
    high, low = divmod(_checked_port(endpoint.port), 256)
    return f"{host},{high},{low}"


def parse_pasv_reply(text: str) -> Endpoint:
    """Read the text of a 227 reply to PASV, whatever its words, with parentheses or without.

    Raises PeerError when it is malformed. RFC 959 section 4.2, RFC 1123 section 4.1.2.6.
    """
    found = _PASV_REPLY.search(text)
    if found is None:
        raise PeerError("the reply to PASV holds no address")
    try:
        return _host_port(found[0])
    except ArgumentError as error:
        raise PeerError(f"the reply to PASV is malformed: {error}") from error


def format_pasv_reply(endpoint: Endpoint) -> str:
    """Write the text of a 227 reply to PASV. Errors as in `format_port`. RFC 959 section 4.2."""
    return f"Entering Passive Mode ({format_port(endpoint)})."


# -- shared -----------------------------------------------------------------------------------


def _literal(host: str, version: int) -> str:
    """Return the canonical form of a literal address, or raise ArgumentError."""
    # A zone ("%eth0") means something on its own node only (RFC 4007 section 11.2).
    if "%" not in host:
        try:
            if version == _IPV4:
                return str(ipaddress.IPv4Address(host))
            return str(ipaddress.IPv6Address(host))
        except ipaddress.AddressValueError:
            pass  # reported below, without the many ways of ipaddress to say it
    raise ArgumentError(f"the host is not a literal IPv{version} address")


def _wire_host(endpoint: Endpoint) -> str:
    """Return the host as the peer may see it: canonical, without a zone (RFC 4007 11.2)."""
    host = endpoint.host.partition("%")[0]
    return _literal(host, _IPV6 if endpoint.is_ipv6 else _IPV4)


def _port(text: str) -> int:
    if not _SHORT_NUMBER.fullmatch(text):
        raise ArgumentError("a port is not a number")
    return _checked_port(int(text))


def _checked_port(port: int) -> int:
    if not 1 <= port <= MAX_PORT:
        raise ArgumentError(f"a port is not in 1 to {MAX_PORT}")
    return port


def _host_port(text: str) -> Endpoint:
    """Read six numbers that already match the grammar of host-port."""
    numbers = [int(number) for number in text.split(",")]
    if max(numbers) > 255:
        raise ArgumentError("a number of the address is larger than 255")
    host = ".".join(map(str, numbers[:4]))
    return Endpoint(host, _checked_port(numbers[4] * 256 + numbers[5]))
