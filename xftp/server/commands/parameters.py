"""How to transfer: TYPE, STRU, MODE, REST, ALLO, MULT, OPTS (RFC 959 4.1.2, 2389, 3659; B.2.1)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from xftp.errors import ArgumentError, ParameterError
from xftp.protocol.options import (
    MultOptions,
    format_mult_options,
    format_mult_reply,
    parse_mult_options,
    parse_opts,
)
from xftp.protocol.replies import Reply
from xftp.server.registry import Argument, Row
from xftp.server.session import MLST_FACTS, Session

from .hashes import choose_hash

_TYPES = {"A": True, "A N": True, "I": False, "L 8": False, "L8": False}
"""TYPE arguments, and whether they mean ASCII. L 8 is image on every machine of today."""

_LARGEST_OFFSET = 2**63 - 1


async def set_type(session: Session, argument: str) -> Reply:
    wanted = " ".join(argument.upper().split())
    if wanted not in _TYPES:
        if re.fullmatch(r"[AE]( [NTC])?|L \d+", wanted):
            raise ParameterError(f"TYPE {wanted} is not implemented.")
        raise ArgumentError("TYPE takes A, A N, I or L 8.")
    session.is_ascii = _TYPES[wanted]
    return Reply(200, (f"Type set to {wanted}.",))


async def set_structure(session: Session, argument: str) -> Reply:
    return _only("STRU", argument, "F", "FRP")


async def set_mode(session: Session, argument: str) -> Reply:
    return _only("MODE", argument, "S", "SBCZ")


def _only(verb: str, argument: str, implemented: str, known: str) -> Reply:
    wanted = argument.upper()
    if wanted == implemented:
        return Reply(200, (f"{verb} set to {implemented}.",))
    if len(wanted) == 1 and wanted in known:
        raise ParameterError(f"{verb} {wanted} is not implemented.")
    raise ArgumentError(f"{verb} takes {implemented}.")


async def restart(session: Session, argument: str) -> Reply:
    session.restart_offset = _number(argument, "REST takes a byte offset.")
    session.byte_range = None
    session.forget_part_ranges()
    return Reply(350, (f"Restarting at {session.restart_offset}.",))


async def allocate(session: Session, argument: str) -> Reply:
    size, _, record = argument.upper().partition(" R ")
    session.announced_size = _number(size.strip(), "ALLO takes a number of bytes.")
    if record:
        _number(record.strip(), "ALLO takes a number of bytes and of a record.")
    return Reply(200, (f"Expecting {session.announced_size} bytes.",))


def _number(text: str, sentence: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > _LARGEST_OFFSET:
        raise ArgumentError(sentence)
    return int(text)


async def multiple(session: Session, argument: str) -> Reply:
    return Reply(200, (format_mult_reply(session.most_connections),))


async def options(session: Session, argument: str) -> Reply:
    feature, rest = parse_opts(argument)
    if feature == "UTF8":
        return _utf8(rest)
    if feature == "MLST":
        return _mlst(session, rest)
    if feature == "MULT":
        return _mult(session, rest)
    if feature == "HASH":
        return choose_hash(session, rest.strip())
    raise ArgumentError(f"There are no options for {feature}.")


def _utf8(wanted: str) -> Reply:
    if wanted.upper() in ("", "ON"):
        return Reply(200, ("UTF8 is on.",))
    if wanted.upper() == "OFF":
        raise ParameterError("UTF8 is always on.")
    raise ArgumentError("OPTS UTF8 takes ON.")


def _mlst(session: Session, wanted: str) -> Reply:
    """Choose facts; those that there are not are left out silently (RFC 3659 section 7.9)."""
    asked = {fact.strip().lower() for fact in wanted.split(";")}
    session.mlst_facts = tuple(fact for fact in MLST_FACTS if fact in asked)
    chosen = "".join(f"{fact};" for fact in session.mlst_facts)
    return Reply(200, (f"MLST OPTS {chosen}".rstrip(),))


def _mult(session: Session, wanted: str) -> Reply:
    asked, ignored = parse_mult_options(wanted)
    limit = session.most_connections
    # Without the key nothing is announced: nobody must then be waited for.
    connections = asked.connections and min(asked.connections, limit)
    tuner = session.settings.tuner
    granted = MultOptions()
    if tuner is not None:
        granted = tuner.grant(asked, session.control.peer_host)
    granted = replace(granted, connections=connections, replaces=asked.replaces, feeds=asked.feeds)
    session.mult_options = granted
    said = f"MULT {format_mult_options(granted)}".rstrip()
    if ignored:
        said += f" Ignored: {', '.join(ignored)}."
    return Reply(200, (said,))


# None of these touches a file, so a REST or ALLO before it stays in force.
_row = partial(Row, keeps_restart=True)

ROWS = (
    _row("TYPE", set_type, "TYPE A [N] | I | L 8", Argument.REQUIRED),
    _row("STRU", set_structure, "STRU F", Argument.REQUIRED),
    _row("MODE", set_mode, "MODE S", Argument.REQUIRED),
    _row("REST", restart, "REST <byte>", Argument.REQUIRED, feature="REST STREAM"),
    _row("ALLO", allocate, "ALLO <bytes> [R <bytes>]", Argument.REQUIRED),
    _row(
        "MULT",
        multiple,
        "MULT",
        Argument.FORBIDDEN_500,
        needs_login=False,
        feature="MULT",
    ),
    _row("OPTS", options, "OPTS <feature> [<options>]", Argument.REQUIRED, needs_login=False),
)
