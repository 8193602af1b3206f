"""Log in: USER, PASS (RFC 959 section 4.1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from xftp.errors import LoginError
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

from .dialogue import Dialogue
from .flights import Pace
from .text import printable

ANONYMOUS = "anonymous"
ANONYMOUS_PASSWORD = "anonymous@"
"""RFC 1635 section 3.3 asks for an address here; no server needs to know ours."""

_NEEDS_ACCOUNT = 332


async def log_in(
    dialogue: Dialogue, user: str | None, password: str | None, *, defer: bool = False
) -> None:
    """Log in, anonymously without `user`, and ask what the server can do.

    defer: leave it to the next flight, where the server takes that; a refusal is raised there.
    Raises LoginError if the server refuses.
    """
    user = user or ANONYMOUS
    if password is None and user == ANONYMOUS:
        password = ANONYMOUS_PASSWORD
    if dialogue.pace is Pace.ALL:
        _defer(dialogue, user, password or "", with_type=not defer)
        if not defer:
            await dialogue.settle()
        return
    reply = await dialogue.ask("USER", user)
    if reply.is_intermediate and reply.code != _NEEDS_ACCOUNT:
        reply = await dialogue.ask("PASS", password or "")
    _check(reply)
    await dialogue.discover()


def _defer(dialogue: Dialogue, user: str, password: str, *, with_type: bool) -> None:
    """Let the login, and the questions after it, leave with the next flight."""
    login = [Command("USER", user), Command("PASS", password)]
    questions = dialogue.discovery()
    if with_type:
        questions.append(Command("TYPE", "I"))

    def take(replies: Sequence[Reply]) -> None:
        name, word, *rest = replies
        asks = name.is_intermediate and name.code != _NEEDS_ACCOUNT
        _check(word if asks else name)  # some log in at the name, and have no use for a password
        dialogue.take_discovery(questions, rest)

    dialogue.defer([*login, *questions], take)


def _check(reply: Reply) -> None:
    if reply.code == _NEEDS_ACCOUNT:
        raise LoginError(reply.code, "an account beside user and password is not supported")
    if not reply.is_positive:
        raise LoginError(reply.code, printable(reply.text), "login")
