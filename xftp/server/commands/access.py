"""Who is there: USER, PASS, REIN, QUIT (RFC 959 section 4.1.1)."""

from __future__ import annotations

import asyncio
import logging

from xftp.errors import ConnectError, FileError
from xftp.protocol.replies import Reply
from xftp.server.registry import Argument, Row
from xftp.server.session import Session, require

logger = logging.getLogger(__name__)


async def user(session: Session, argument: str) -> Reply:
    session.reset()
    tls = session.settings.tls
    if tls is not None and tls.policy.requires_control and session.control.tls is None:
        return Reply(530, ("Use AUTH TLS first: nobody logs in here in the clear.",))
    session.user_name = argument
    _, _, info = await session.accounts.get_user(argument)
    return Reply(331, (info,))


async def password(session: Session, argument: str) -> Reply:
    name = session.user_name
    require(name is not None, "Give a name with USER first.")
    assert name is not None
    require(session.user is None, "You are logged in already.")
    began_s = asyncio.get_running_loop().time()
    host = session.control.peer_host
    try:
        found = await session.accounts.check(name, argument, host)
        if found is None:
            return await _refuse(session, began_s)
        session.log_in(found)
    except ConnectError:  # more logins or sessions than there may be
        session.close_after_reply()
        raise
    except FileError as error:
        logger.error("the root of %s cannot be used: %s", name, error)
        session.user_name = None
        return Reply(530, ("Login incorrect: the account's directory cannot be used.",))
    session.shared.watch.logins[True] += 1
    facts = {"event": "login", "peer": host, "user": name}
    logger.info("%s: logged in as %s", host, name, extra=facts)
    return Reply(230, ("Logged in.",))


async def _refuse(session: Session, began_s: float) -> Reply:
    """Answer a wrong password, late: each guess has to take its time, whatever was wrong."""
    session.failed_logins += 1
    session.user_name = None
    session.shared.watch.logins[False] += 1
    peer = session.control.peer_host
    logger.warning("%s: login refused", peer, extra={"event": "login refused", "peer": peer})
    ends_s = began_s + session.settings.wrong_login_s
    await asyncio.sleep(ends_s - asyncio.get_running_loop().time())
    if session.failed_logins >= session.settings.login_tries:
        session.close_after_reply()
        return Reply(421, ("Too many wrong logins.",))
    return Reply(530, ("Login incorrect.",))


async def reinitialize(session: Session, argument: str) -> Reply:
    if session.control.tls is not None:
        # RFC 4217 section 11 wants the connection in the clear then: that is never done here.
        return Reply(502, ("Not within TLS: connect again.",))
    session.reset()
    return Reply(220, ("Ready for a new user.",))


async def leave(session: Session, argument: str) -> Reply:
    session.close_after_reply()
    return Reply(221, ("Goodbye.",))


ROWS = (
    Row("USER", user, "USER <name>", Argument.REQUIRED, needs_login=False),
    Row(
        "PASS",
        password,
        "PASS <password>",
        Argument.OPTIONAL,
        needs_login=False,
        ends_with_session=True,
    ),
    Row("REIN", reinitialize, "REIN", needs_login=False),
    Row("QUIT", leave, "QUIT", needs_login=False),
)
