"""What the server is: FEAT (RFC 2389), HELP, SYST, NOOP (RFC 959 section 4.1.3)."""

from __future__ import annotations

from functools import partial

from xftp.protocol.hashes import format_hash_feature
from xftp.protocol.options import FEED_KEY, REPLACE_KEY, format_feat
from xftp.protocol.replies import Reply
from xftp.protocol.standing import format_feature
from xftp.server.registry import Argument, Row
from xftp.server.session import Session
from xftp.transport.hashing import algorithms

_VERBS_PER_LINE = 8
_FEATURES_OF_ALL = ("TVFS", "UTF8")
"""Features that are not a command's: RFC 3659 section 6, RFC 2640."""

_NOT_HERE = (
    ("ACCT", "ACCT <account>"),
    ("SMNT", "SMNT <path>"),
)
"""Commands that are known and not implemented: 502 instead of 500 (RFC 959 section 4.2.1)."""


async def features(session: Session, argument: str) -> Reply:
    lines = [row.feature for row in _rows(session) if row.feature is not None]
    tuner = session.settings.tuner
    keys = ("Connections", REPLACE_KEY, FEED_KEY, *(tuner.keys if tuner is not None else ()))
    lines[lines.index("MULT")] = "MULT " + "".join(f"{key};" for key in keys)
    if session.shared.standing_port is not None:
        lines.append(format_feature(session.shared.standing_port.number))
    hashes = session.commands["HASH"].feature
    lines[lines.index(str(hashes))] = format_hash_feature(algorithms(), session.hash_algorithm)
    named = [tuple(line.partition(" ")[::2]) for line in sorted([*lines, *_FEATURES_OF_ALL])]
    return Reply(211, format_feat([(name, parameters) for name, parameters in named]))


async def give_help(session: Session, argument: str) -> Reply:
    if argument:
        row = session.commands.get(argument.upper())
        if row is None or row not in _rows(session):
            return Reply(501, (f"There is no command {argument}.",))
        return Reply(214, (f"Syntax: {row.syntax}",))
    verbs = sorted(row.verb for row in _rows(session))
    lines = [
        " ".join(f"{verb:<5}" for verb in verbs[at : at + _VERBS_PER_LINE]).rstrip()
        for at in range(0, len(verbs), _VERBS_PER_LINE)
    ]
    return Reply(214, ("These commands are understood:", *lines, "HELP <command> tells more."))


def _rows(session: Session) -> list[Row]:
    """Give the commands that this server implements."""
    has_tls = session.settings.tls is not None
    return [
        row
        for row in session.commands.values()
        if row.handler is not not_implemented and (has_tls or not row.needs_tls)
    ]


async def system(session: Session, argument: str) -> Reply:
    return Reply(215, ("UNIX Type: L8",))


async def nothing(session: Session, argument: str) -> Reply:
    return Reply(200, ("Still here.",))


async def not_implemented(session: Session, argument: str) -> Reply:
    return Reply(502, ("The command is not implemented.",))


_row = partial(Row, needs_login=False, keeps_restart=True)

ROWS = (
    _row("FEAT", features, "FEAT"),
    _row("HELP", give_help, "HELP [<command>]", Argument.OPTIONAL),
    _row("SYST", system, "SYST"),
    _row("NOOP", nothing, "NOOP"),
    *(_row(verb, not_implemented, syntax, Argument.OPTIONAL) for verb, syntax in _NOT_HERE),
)
