"""Log in: USER, PASS (RFC 959 section 4.1.1)."""

from __future__ import annotations

from xftp.errors import LoginError
from xftp.protocol.replies import Reply

from .dialogue import Dialogue
from .text import printable

ANONYMOUS = "anonymous"
ANONYMOUS_PASSWORD = "anonymous@"
"""RFC 1635 section 3.3 asks for an address here; no server needs to know ours."""

_NEEDS_ACCOUNT = 332


async def log_in(dialogue: Dialogue, user: str | None, password: str | None) -> None:
    """Log in, anonymously without `user`, and ask what the server can do.

    Raises LoginError if the server refuses.
    """
    user = user or ANONYMOUS
    if password is None and user == ANONYMOUS:
        password = ANONYMOUS_PASSWORD
    reply = await dialogue.ask("USER", user)
    if reply.is_intermediate and reply.code != _NEEDS_ACCOUNT:
        reply = await dialogue.ask("PASS", password or "")
    _check(reply)
    await dialogue.discover()


def _check(reply: Reply) -> None:
    if reply.code == _NEEDS_ACCOUNT:
        raise LoginError(reply.code, "an account beside user and password is not supported")
    if not reply.is_positive:
        raise LoginError(reply.code, printable(reply.text), "login")
