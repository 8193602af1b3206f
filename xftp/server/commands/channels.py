"""Where data connections are: PORT, PASV, EPRT, EPSV (RFC 959, 2428), MPRT, MPSV (B.2.2, B.2.3).

Data connections go to, and are accepted from, the address of the control connection only, and
never to a port below 1024 (RFC 2577 sections 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xftp.errors import DataConnectionError, NetworkProtocolError, ParameterError, SequenceError
from xftp.protocol.addresses import (
    Endpoint,
    format_epsv_reply,
    format_mpsv_reply,
    format_pasv_reply,
    parse_eprt,
    parse_epsv_argument,
    parse_mprt,
    parse_port,
)
from xftp.protocol.replies import Reply
from xftp.protocol.standing import parse_token
from xftp.server.proxies import ProxiedChannel
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.server.standing import StandingChannel, StandingPort
from xftp.transport.accepting import AcceptingChannel
from xftp.transport.sockets import is_ipv6, plain_address

_FIRST_UNPRIVILEGED_PORT = 1024

_UNSPECIFIED = ("0.0.0.0", "::")
"""No address in particular: the client's own."""


async def port(session: Session, argument: str) -> Reply:
    return _dial_later(session, [parse_port(argument)], framed=False)


async def extended_port(session: Session, argument: str) -> Reply:
    return _dial_later(session, [parse_eprt(argument)], framed=False)


async def multiple_ports(session: Session, argument: str) -> Reply:
    endpoints = parse_mprt(argument)[: session.most_connections]
    return _dial_later(session, endpoints, framed=True)


def _dial_later(session: Session, endpoints: Sequence[Endpoint], *, framed: bool) -> Reply:
    """Note where to dial; it is done when the transfer begins."""
    _check_not_only_epsv(session)
    peer = session.control.peer_host
    # Active over IPv6 lftp tells the address that its socket is bound to, which is `::`.
    endpoints = [
        Endpoint(peer, endpoint.port) if endpoint.host in _UNSPECIFIED else endpoint
        for endpoint in endpoints
    ]
    for endpoint in endpoints:
        if plain_address(endpoint.host) != peer:
            raise ParameterError("Data connections go to your own address only.")
        if endpoint.port < _FIRST_UNPRIVILEGED_PORT:
            raise ParameterError(f"Data connections do not go to ports below 1024: {endpoint.port}")
    endpoints = endpoints[: _reserve(session, len(endpoints), listens=False)]
    session.data.dial_later(tuple(endpoints), framed=framed)
    return Reply(200, (f"Will open {len(endpoints)} data connection(s).",))


async def passive(session: Session, argument: str) -> Reply:
    _check_not_only_epsv(session)
    if is_ipv6(session.control.local_host):
        raise DataConnectionError("PASV knows no IPv6 address; use EPSV or MPSV.")
    channel = _listen(session, 1)
    session.data.offer(channel, framed=False)
    return Reply(227, (format_pasv_reply(_public(session, channel)),))


async def extended_passive(session: Session, argument: str) -> Reply:
    wanted = parse_epsv_argument(argument)
    if wanted == "all":
        session.extended_passive_only = True
        return Reply(200, ("Only EPSV from now on.",))
    here = "ipv6" if is_ipv6(session.control.local_host) else "ipv4"
    if wanted not in ("any", here):
        number = 2 if here == "ipv6" else 1
        raise NetworkProtocolError(f"Network protocol not supported, use ({number})")
    channel = _listen(session, 1)
    session.data.offer(channel, framed=False)
    return Reply(229, (format_epsv_reply(channel.endpoint.port),))


async def multiple_passive(session: Session, argument: str) -> Reply:
    _check_not_only_epsv(session)
    token = parse_token(argument) if argument else None
    expected = session.mult_options.connections
    channel: AcceptingChannel
    if token is None or session.shared.standing_port is None:
        channel = _listen(session, session.connection_limit, expected)
    else:
        channel = _await(session, session.shared.standing_port, token, expected)
    channel.replaces = session.replaces
    session.data.offer(channel, framed=True)
    # One port, listed once for every connection: one hole in the firewall.
    endpoints = [_public(session, channel)] * channel.limit
    return Reply(229, (format_mpsv_reply(endpoints),))


def _await(
    session: Session, port: StandingPort, token: str, expected: int | None
) -> StandingChannel:
    """Wait for the connections that come to the standing port with a token."""
    limit = _reserve(session, session.connection_limit, listens=False)
    try:
        return StandingChannel(
            port,
            token,
            local_host=session.control.local_host,
            peer_host=session.control.peer_host,
            expected=None if expected is None else min(expected, limit),
            limit=limit,
            tuning=session.tuning(limit),
            tls=session.data_tls,
        )
    except DataConnectionError:
        session.data.drop()
        raise


def _listen(session: Session, limit: int, expected: int | None = None) -> ProxiedChannel:
    limit = _reserve(session, limit, listens=True)
    expected = None if expected is None else min(expected, limit)
    ports = session.shared.ports
    try:
        channel = ProxiedChannel.listen(
            session.control.bound_host,
            session.control.peer_host,
            expected=1 if limit == 1 else expected,
            limit=limit,
            tuning=session.tuning(limit),
            ports=ports.candidates(),
            tls=session.data_tls,
        )
    except DataConnectionError:
        session.data.drop()
        raise
    channel.networks = session.settings.proxies
    ports.used(channel.endpoint.port)
    return channel


def _reserve(session: Session, wanted: int, *, listens: bool) -> int:
    return session.data.reserve(wanted, session.user_name, listens=listens)


def _public(session: Session, channel: AcceptingChannel) -> Endpoint:
    """Give the address that the client is to dial."""
    endpoint = channel.endpoint
    public = session.settings.public_host or session.control.dialled_host
    if public is None or is_ipv6(public) or is_ipv6(endpoint.host):
        return endpoint
    return Endpoint(public, endpoint.port)


def _check_not_only_epsv(session: Session) -> None:
    """Refuse other ways after EPSV ALL (RFC 2428 section 4)."""
    if session.extended_passive_only:
        raise SequenceError("After EPSV ALL only EPSV opens data connections.")


# Clients put REST and ALLO before the address as well as behind it.
_row = partial(Row, keeps_restart=True)

ROWS = (
    _row("PORT", port, "PORT <h1,h2,h3,h4,p1,p2>", Argument.REQUIRED),
    _row("EPRT", extended_port, "EPRT |1|<address>|<port>|", Argument.REQUIRED, feature="EPRT"),
    _row("MPRT", multiple_ports, "MPRT IP4|TCP|<address>|<port>,<port>...", Argument.REQUIRED),
    _row("PASV", passive, "PASV"),
    _row("EPSV", extended_passive, "EPSV [1 | 2 | ALL]", Argument.OPTIONAL, feature="EPSV"),
    _row("MPSV", multiple_passive, "MPSV [<token>]", Argument.OPTIONAL),
)
