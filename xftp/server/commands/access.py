"""Who is there: USER, PASS, REIN, QUIT (RFC 959 section 4.1.1)."""

from __future__ import annotations

import logging

from xftp.errors import FileError
from xftp.protocol.replies import Reply
from xftp.server.registry import Argument, Row
from xftp.server.session import Session, require

logger = logging.getLogger(__name__)


async def user(session: Session, argument: str) -> Reply:
    session.reset()
    session.user_name = argument
    _, session.candidate, info = await session.accounts.get_user(argument)
    return Reply(331, (info,))


async def password(session: Session, argument: str) -> Reply:
    require(session.user_name is not None, "Give a name with USER first.")
    require(session.user is None, "You are logged in already.")
    candidate = session.candidate
    if not await session.accounts.authenticate(candidate, argument) or candidate is None:
        session.failed_logins += 1
        session.user_name = None
        logger.warning("%s: login refused", session.control.peer_host)
        if session.failed_logins >= session.settings.login_tries:
            session.close_after_reply()
            return Reply(421, ("Too many wrong logins.",))
        return Reply(530, ("Login incorrect.",))
    try:
        session.log_in(candidate)
    except FileError as error:
        logger.error("the root of %s cannot be used: %s", session.user_name, error)
        session.user_name = None
        return Reply(530, ("Login incorrect: the account's directory cannot be used.",))
    logger.info("%s: logged in as %s", session.control.peer_host, session.user_name)
    return Reply(230, ("Logged in.",))


async def reinitialize(session: Session, argument: str) -> Reply:
    session.reset()
    return Reply(220, ("Ready for a new user.",))


async def leave(session: Session, argument: str) -> Reply:
    session.close_after_reply()
    return Reply(221, ("Goodbye.",))


ROWS = (
    Row("USER", user, "USER <name>", Argument.REQUIRED, needs_login=False),
    Row("PASS", password, "PASS <password>", Argument.OPTIONAL, needs_login=False),
    Row("REIN", reinitialize, "REIN", needs_login=False),
    Row("QUIT", leave, "QUIT", needs_login=False),
)
