"""What the two ends tell each other they can do: MULT, FEAT and OPTS.

MULT reply    number " data connections available."                  Allman 1997 B.2.1
FEAT line     SP feature [ SP parameters ]                           RFC 2389 section 3.2
OPTS          feature [ SP options ]                                 RFC 2389 section 4
OPTS MULT     *( key "=" value ";" ), keys in any case               docs/protocol.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xftp.errors import ArgumentError

MULT_DEFAULT_CONNECTIONS = 4
"""How many data connections a client asks for by itself (Allman 1997 B.5)."""

MULT_LIMIT = 8
"""How many data connections each end supports unless told otherwise (Allman 1997 B.5)."""

_NUMBER = re.compile(r"[0-9]+")
_MAX_DIGITS = 9
"""Longer numbers of connections are a mistake or an attack, not a number of connections."""

_MAX_AMOUNT_DIGITS = 15
"""The same for rates and buffers: a petabit per second, a petabyte."""

_ALGORITHM = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""TCP_CA_NAME_MAX is 16 with the final NUL (linux/tcp.h)."""

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


# -- MULT -------------------------------------------------------------------------------------


def parse_mult_reply(text: str) -> int | None:
    """Read the server's limit from the text of a 200 reply to MULT.

    The first number counts. Returns None without one: the text is a SHOULD only.
    Allman 1997 B.2.1.
    """
    found = _NUMBER.search(text)
    return int(found[0]) if found and len(found[0]) <= _MAX_DIGITS else None


def format_mult_reply(limit: int) -> str:
    """Write the text of a 200 reply to MULT. Allman 1997 B.2.1."""
    return f"{limit} data connections available."


# -- FEAT -------------------------------------------------------------------------------------


def parse_feat(lines: Sequence[str]) -> dict[str, str]:
    """Read the lines of a 211 reply to FEAT: feature name in upper case → its parameters.

    The first and the last line hold words only. A feature that is listed again (AUTH TLS and
    AUTH SSL on two lines) gets all its parameters, joined by ";". RFC 2389 section 3.2.
    """
    features: dict[str, str] = {}
    for line in lines[1:-1]:
        name, _, parameters = line.strip().partition(" ")
        if name:
            known = features.get(name.upper())
            features[name.upper()] = ";".join(filter(None, (known, parameters.strip())))
    return features


def format_feat(features: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Write the lines of a 211 reply to FEAT, for `format_reply`, which indents the features.

    features: name and parameters, which may be empty. RFC 2389 section 3.2.
    """
    if not features:
        return ("No features",)
    return ("Features:", *(f"{name} {rest}".rstrip(" ") for name, rest in features), "End")


# -- OPTS -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MultOptions:
    """What a client asks of the next transfers over several connections, with OPTS MULT."""

    connections: int | None = None
    """How many data connections will be made, 1 or more; None: not said."""

    congestion: str | None = None
    """The congestion-control algorithm of the other side's data sockets, by the name that its
    kernel knows (TCP_CONGESTION, tcp(7)); None: its own choice, as for everything below."""

    initial_window_segments: int | None = None
    """Segments that a data connection may send before the first acknowledgement."""

    rate_bps: int | None = None
    """The rate of the path in bits per second, for all data connections together."""

    send_buffer_bytes: int | None = None
    """Send buffer of each data connection (SO_SNDBUF, socket(7))."""

    receive_buffer_bytes: int | None = None
    """Receive buffer of each data connection (SO_RCVBUF, socket(7))."""

    replaces: int | None = None
    """1: a data connection that is lost is replaced while the transfer runs; None: its loss is the
    end of the transfer."""

    feeds: int | None = None
    """How many of its connections the sender gives records to at first, and from then on as many
    as pay; None: all, all the time."""


class _Key(NamedTuple):
    """One key of OPTS MULT."""

    name: str
    """As it is written on the wire."""

    field: str
    """The field of `MultOptions` that holds the value."""

    parse: Callable[[str], object]
    """Reads the value; raises ArgumentError."""


def _number(text: str, max_digits: int) -> int:
    if not _NUMBER.fullmatch(text) or len(text) > max_digits or int(text) < 1:
        raise ArgumentError("a number from 1 upward is needed")
    return int(text)


def _count(text: str) -> int:
    return _number(text, _MAX_DIGITS)


def _amount(text: str) -> int:
    return _number(text, _MAX_AMOUNT_DIGITS)


def _one(text: str) -> int:
    if text != "1":
        raise ArgumentError("only 1 can be asked for")
    return 1


def _algorithm(text: str) -> str:
    if not _ALGORITHM.fullmatch(text):
        raise ArgumentError("the name of an algorithm is needed")
    return text


REPLACE_KEY = "Replace"
"""The key with which the two ends agree that lost connections are replaced."""

FEED_KEY = "Feed"
"""The key with which the sender is left to find out how many connections pay."""

_KEYS = (
    _Key("Connections", "connections", _count),
    _Key(REPLACE_KEY, "replaces", _one),
    _Key(FEED_KEY, "feeds", _count),
    _Key("Congestion", "congestion", _algorithm),
    _Key("InitialWindow", "initial_window_segments", _count),
    _Key("Rate", "rate_bps", _amount),
    _Key("SendBuffer", "send_buffer_bytes", _amount),
    _Key("ReceiveBuffer", "receive_buffer_bytes", _amount),
)
MULT_KEYS = tuple((key.name, key.field) for key in _KEYS)
"""The keys of OPTS MULT as they are written, and the fields of `MultOptions`."""

_NOT_OF_SOCKETS = ("Connections", REPLACE_KEY, FEED_KEY)
SOCKET_KEYS = tuple(each for each in MULT_KEYS if each[0] not in _NOT_OF_SOCKETS)
"""Those of them that set the other side's sockets."""

_KEY_BY_NAME = {key.name.lower(): key for key in _KEYS}


def parse_opts(argument: str) -> tuple[str, str]:
    """Split the argument of OPTS into the feature, in upper case, and its options.

    Raises ArgumentError if no feature is named. RFC 2389 section 4.
    """
    feature, _, rest = argument.partition(" ")
    if not _FEATURE.fullmatch(feature):
        raise ArgumentError("expected a feature and its options")
    return feature.upper(), rest


def parse_mult_options(argument: str) -> tuple[MultOptions, tuple[str, ...]]:
    """Read the options of OPTS MULT, `key=value;key=value;`.

    Returns them, and the names of unknown keys, which are ignored so that old servers get
    along with new clients. Raises ArgumentError for what is malformed, a key that is given
    twice, or a value outside its range.
    """
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in _pairs(argument):
        key = _KEY_BY_NAME.get(name.lower())
        if key is None:
            unknown.append(name)
            continue
        try:
            values[key.field] = key.parse(value)
        except ArgumentError as error:
            raise ArgumentError(f"{key.name}: {error}") from error
    return MultOptions(**values), tuple(unknown)


def format_mult_options(options: MultOptions) -> str:
    """Write the options of OPTS MULT; those that are None are left out."""
    values = ((key.name, getattr(options, key.field)) for key in _KEYS)
    return "".join(f"{name}={value};" for name, value in values if value is not None)


def _pairs(argument: str) -> list[tuple[str, str]]:
    """Split `key=value;key=value;` and refuse malformed and repeated keys."""
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    for pair in argument.removesuffix(";").split(";") if argument else ():
        name, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(name):
            raise ArgumentError("expected key=value;key=value;")
        if name.lower() in seen:
            raise ArgumentError(f"{name} is given twice")
        seen.add(name.lower())
        pairs.append((name, value))
    return pairs
