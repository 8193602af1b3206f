"""TLS: AUTH, PBSZ, PROT, CCC (RFC 4217, RFC 2228)."""

from __future__ import annotations

from xftp.errors import ArgumentError, ParameterError, PolicyError, ProtectionError
from xftp.protocol.replies import Reply
from xftp.server.registry import Argument, Handler, Row
from xftp.server.session import Session, require

_MECHANISMS = ("TLS", "TLS-C")
"""RFC 4217 section 2, and its older name. TLS-P and SSL would mean PROT P as well."""

_LARGEST_BUFFER = 2**32 - 1
"""RFC 2228 section 3, PBSZ."""


async def authenticate(session: Session, argument: str) -> Reply:
    if argument.upper() not in _MECHANISMS:
        raise ParameterError("AUTH takes TLS.")
    require(session.control.tls is None, "The connection is protected already.")
    await session.control.stop_reading()
    if session.control.has_unread:
        session.close_after_reply()
        return Reply(421, ("Something came in the clear where TLS was to begin, closing.",))
    session.reset()  # RFC 2228 section 3, AUTH: a login before it does not count
    session.begins_tls = True
    return Reply(234, ("TLS begins.",))


async def set_buffer_size(session: Session, argument: str) -> Reply:
    require(session.control.tls is not None, "Use AUTH TLS first.")
    if not (argument.isascii() and argument.isdigit()) or len(argument) > 10:
        raise ArgumentError("PBSZ takes a number.")
    if int(argument) > _LARGEST_BUFFER:
        raise ArgumentError("PBSZ takes a number of 32 bits.")
    session.buffer_size_is_set = True
    return Reply(200, ("PBSZ=0",))  # RFC 4217 section 9: TLS has no use for another


async def protect(session: Session, argument: str) -> Reply:
    require(session.control.tls is not None, "Use AUTH TLS first.")
    require(session.buffer_size_is_set, "Use PBSZ 0 first.")
    level, tls = argument.upper(), session.settings.tls
    if level in ("S", "E"):
        raise ProtectionError(f"PROT {level} is nothing that TLS has.")
    if level not in ("C", "P"):
        raise ParameterError("PROT takes C or P.")
    if level == "C" and tls is not None and tls.policy.requires_data:
        raise PolicyError("Data connections have to be protected here.")
    if session.protects_data != (level == "P"):
        session.data.drop()  # what was prepared is not what is wanted now
    session.protects_data = level == "P"
    return Reply(200, (f"Data connections are {'protected' if level == 'P' else 'clear'}.",))


async def clear_commands(session: Session, argument: str) -> Reply:
    require(session.control.tls is not None, "The connection is not protected.")
    raise PolicyError("The control connection stays protected.")


def _row(verb: str, handler: Handler, syntax: str, feature: str | None = None) -> Row:
    """Make the row of a command that is there if there is a certificate."""

    async def checked(session: Session, argument: str) -> Reply:
        if session.settings.tls is None:
            return Reply(502, ("The server has no certificate, so there is no TLS.",))
        if not argument and " " in syntax:
            raise ArgumentError(f"{verb} needs an argument: {syntax}")
        return await handler(session, argument)

    return Row(
        verb,
        checked,
        syntax,
        Argument.OPTIONAL,
        needs_login=False,
        feature=feature,
        keeps_restart=True,
        needs_tls=True,
    )


ROWS = (
    _row("AUTH", authenticate, "AUTH TLS", "AUTH TLS"),
    _row("PBSZ", set_buffer_size, "PBSZ 0", "PBSZ"),
    _row("PROT", protect, "PROT C | PROT P", "PROT"),
    _row("CCC", clear_commands, "CCC"),
)
