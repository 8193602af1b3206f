"""Log in: USER, PASS (RFC 959 section 4.1.1), and within TLS PBSZ, PROT (RFC 4217 section 9)."""

from __future__ import annotations

from collections.abc import Sequence

from xftp.errors import LoginError
from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

from .dialogue import Dialogue
from .flights import Pace
from .text import printable
from .tls import TlsError

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
    for command in _protection(dialogue):
        _check_protection(dialogue, command, await dialogue.ask(command.verb, command.argument))
    await dialogue.discover()


def _defer(dialogue: Dialogue, user: str, password: str, *, with_type: bool) -> None:
    """Let the login, and the questions after it, leave with the next flight."""
    login = [Command("USER", user), Command("PASS", password)]
    protection = _protection(dialogue)
    questions = dialogue.discovery()
    if with_type:
        questions.append(Command("TYPE", "I"))

    def take(replies: Sequence[Reply]) -> None:
        name, word, *rest = replies
        asks = name.is_intermediate and name.code != _NEEDS_ACCOUNT
        _check(word if asks else name)  # some log in at the name, and have no use for a password
        for command, reply in zip(protection, rest, strict=False):
            _check_protection(dialogue, command, reply)
        dialogue.take_discovery(questions, rest[len(protection) :])

    dialogue.defer([*login, *protection, *questions], take)


def _check(reply: Reply) -> None:
    if reply.code == _NEEDS_ACCOUNT:
        raise LoginError(reply.code, "an account beside user and password is not supported")
    if not reply.is_positive:
        raise LoginError(reply.code, printable(reply.text), "login")


def _protection(dialogue: Dialogue) -> list[Command]:
    """Give the commands that say whether data connections are protected; none without TLS.

    They go behind the login, as with most clients: not every server takes them ahead of it. PROT C
    is said too, as servers differ in what holds from the beginning with implicit TLS.
    """
    tls = dialogue.control.tls
    if tls is None:
        return []
    return [Command("PBSZ", "0"), Command("PROT", "C" if tls.for_data() is None else "P")]


def _check_protection(dialogue: Dialogue, command: Command, reply: Reply) -> None:
    """Close the session and raise TlsError if data would move otherwise than the user wants."""
    if command.verb == "PROT" and not reply.is_positive:
        dialogue.control.close()
        said = f"{reply.code} {printable(reply.text)}".rstrip()
        wanted = "protected" if command.argument == "P" else "unprotected"
        raise TlsError(f"the server takes no {wanted} data connections: PROT was answered {said}")
