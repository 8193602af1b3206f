"""URLs on the command line: which argument is wrong, and wildcards in the path.

`*`, `?` and `[...]` in the path stand for names on the server, as they do in a shell; written as
%2A, %3F and %5B they are meant literally, and so is everything with --literal.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

import click

from xftp.client.url import FtpUrl, parse_url
from xftp.errors import ArgumentError

_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SCHEME = re.compile(r"[A-Za-z]+://")
_TYPE = re.compile(r";type=[aid]\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one URL on the command line means."""

    url: FtpUrl
    """Its path is taken as it stands."""

    pattern: str | None = None
    """Its path as a pattern for `matching`; None: it has no wildcards."""

    def taken(self, literally: bool) -> Wanted:
        """Give this, without the pattern if everything is meant literally."""
        return replace(self, pattern=None) if literally else self


def read_url(text: str, context: click.Context, param: click.Parameter) -> FtpUrl:
    """Read a URL. Raises click.BadParameter, which names the argument and shows no password."""
    try:
        return parse_url(text)
    except ArgumentError as error:
        raise click.BadParameter(f"{shown(text)}: {error}", context, param) from error


def read_wanted(text: str, context: click.Context, param: click.Parameter) -> Wanted:
    """Read a URL whose path may have wildcards. Raises as `read_url`."""
    url = read_url(text, context, param)
    path = _TYPE.sub("", text.partition("://")[2].partition("/")[2])
    # Bytes that are not UTF-8 go the way that `parse_url` lets them go.
    pattern = _ESCAPES.sub(
        lambda found: glob.escape(unquote(found[0], errors="surrogateescape")), path
    )
    return Wanted(url, pattern if glob.has_magic(path) else None)


def shown(text: str) -> str:
    """Give what was typed in place of a URL, without whatever may be a password."""
    scheme = _SCHEME.match(text)
    head = scheme[0] if scheme else ""
    _, at, place = text.removeprefix(head).rpartition("@")
    return f"{head}{'…' if at else ''}{at}{place}"


literal_option = click.option(
    "-g", "--literal", is_flag=True, help="Take *, ? and [ in a URL as they are, not as wildcards."
)


# -- for click ------------------------------------------------------------------------------------


def one_url(context: click.Context, param: click.Parameter, text: str | None) -> FtpUrl | None:
    """Read one URL. Raises click.BadParameter."""
    return None if text is None else read_url(text, context, param)


def several_urls(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> tuple[FtpUrl, ...]:
    """Read URLs. Raises click.BadParameter."""
    return tuple(read_url(text, context, param) for text in texts)


def one_wanted(context: click.Context, param: click.Parameter, text: str) -> Wanted:
    """Read one URL that may have wildcards. Raises click.BadParameter."""
    return read_wanted(text, context, param)


def several_wanted(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> tuple[Wanted, ...]:
    """Read URLs that may have wildcards. Raises click.BadParameter."""
    return tuple(read_wanted(text, context, param) for text in texts)
