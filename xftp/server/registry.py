"""The table of commands: a row each; FEAT, HELP and the checks before a handler follow from it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xftp.errors import ArgumentError, CommandError, NotLoggedInError
from xftp.protocol.replies import Reply

from .permissions import Permission

if TYPE_CHECKING:
    from .session import Session

Handler = Callable[["Session", str], Coroutine[Any, Any, Reply]]


class Argument(enum.Enum):
    """What follows the verb."""

    NONE = "none"
    """Nothing; what a client sends all the same is ignored (RFC 959 clients do)."""

    FORBIDDEN_500 = "forbidden, 500"
    """Nothing; an argument is a command not understood (Allman 1997 B.2.1)."""

    FORBIDDEN_501 = "forbidden, 501"
    """Nothing; an argument is a syntax error."""

    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Row:
    """One command of the server."""

    verb: str
    """The command's name, upper case."""

    handler: Handler
    """Does it, and gives the final reply; an XftpError that it raises becomes the reply."""

    syntax: str
    """What HELP shows."""

    argument: Argument = Argument.NONE
    """Whether it takes an argument."""

    needs_login: bool = True
    """Whether it is refused with 530 before the login (RFC 959 section 5.4)."""

    feature: str | None = None
    """Its line in FEAT (RFC 2389), if it has one of its own."""

    may_be_aborted: bool = False
    """Whether ABOR ends it while it runs: everything that moves data."""

    keeps_restart: bool = False
    """Whether a REST or ALLO before it stays in force for the next command."""

    permissions: tuple[Permission, ...] = ()
    """One of these the account needs, or it gets 550; none: any account may."""

    needs_tls: bool = False
    """Whether it is only there where the server has a certificate."""

    ends_with_session: bool = False
    """Whether it is given up when the client is gone, although ABOR does not end it."""

    def check(self, argument: str, *, logged_in: bool) -> None:
        """Raise what is wrong with the command before its handler is asked."""
        if self.needs_login and not logged_in:
            raise NotLoggedInError("Log in with USER and PASS first.")
        if argument:
            if self.argument is Argument.FORBIDDEN_500:
                raise CommandError(f"{self.verb} takes no argument.")
            if self.argument is Argument.FORBIDDEN_501:
                raise ArgumentError(f"{self.verb} takes no argument.")
        elif self.argument is Argument.REQUIRED:
            raise ArgumentError(f"{self.verb} needs an argument: {self.syntax}")
