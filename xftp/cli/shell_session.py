"""Words of the shell about the session: open, user, multiple, passive, status and the like."""

from __future__ import annotations

import re
from dataclasses import replace

from xftp.client.options import Options
from xftp.client.url import FtpUrl, parse_url
from xftp.errors import ArgumentError, LoginError
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS

from .credentials import Login, find_login
from .shell_state import ShellState
from .terminal import ask_line, can_ask
from .text import connections_text, printable, rate_text

ANONYMOUS = "anonymous"
_SWITCHES = {"on": True, "off": False}


async def open_host(state: ShellState, arguments: list[str]) -> None:
    """Connect to a host or a URL and log in."""
    place, port = arguments[0], arguments[1] if len(arguments) > 1 else None
    asks = "://" not in place
    if asks:
        bare_ipv6 = place.count(":") > 1 and not place.startswith("[")
        place = f"ftp://[{place}]" if bare_ipv6 else f"ftp://{place}"
    url = parse_url(place)
    if port is not None:
        if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
            raise ArgumentError(f"a port is a number from 1 to 65535, not {port!r}")
        url = replace(url, port=int(port))
    await open_url(state, url, asks=asks)


async def open_url(state: ShellState, url: FtpUrl, *, asks: bool = False) -> None:
    """Connect, log in, and go to the directory of the URL.

    asks: ask who logs in, where neither the URL nor netrc tells; otherwise anonymous, as with
    every other command that takes a URL.
    """
    session = await state.connect(url)
    if not state.settings.quiet:
        print(f"connected to {url.host}: {printable(session.greeting)}")
    login = _login_for(state, url, asks=asks)
    await _log_in(state, login)
    if url.path:
        await session.cwd(url.path)


async def user(state: ShellState, arguments: list[str]) -> None:
    """Log in as somebody else, or for the first time."""
    session = state.need_session()
    password = arguments[1] if len(arguments) > 1 else None
    await _log_in(
        state,
        find_login(
            session.url.host,
            user=arguments[0],
            password=password,
            netrc_file=state.settings.netrc_file,
            may_ask=can_ask(),
        ),
    )


async def close(state: ShellState, _: list[str]) -> None:
    """Say goodbye to the server; the shell goes on."""
    await state.disconnect()


async def ascii_(state: ShellState, _: list[str]) -> None:
    """Transfer text."""
    await _set_type(state, "A")


async def binary(state: ShellState, _: list[str]) -> None:
    """Transfer files as they are."""
    await _set_type(state, "I")


async def passive(state: ShellState, arguments: list[str]) -> None:
    """Toggle or set who opens data connections."""
    wanted = _switch(arguments, state.settings.passive)
    state.settings = replace(state.settings, passive=wanted)
    if state.session is not None:
        state.session.passive = wanted
    print(f"passive is {_on_off(wanted)}")


async def prompt(state: ShellState, arguments: list[str]) -> None:
    """Toggle or set whether mget and mput ask."""
    state.confirms = _switch(arguments, state.confirms)
    print(f"prompt is {_on_off(state.confirms)}")


async def verbose(state: ShellState, arguments: list[str]) -> None:
    """Toggle or set the transcript."""
    state.screen.verbose = _switch(arguments, state.screen.verbose)
    print(f"verbose is {_on_off(state.screen.verbose)}")


async def multiple(state: ShellState, arguments: list[str]) -> None:
    """Ask the server for several data connections (Allman 1997 B.3)."""
    session = state.need_session()
    wanted = _connections(arguments)
    in_force = await session.multiple(wanted)
    state.settings = replace(state.settings, connections=wanted)
    if wanted > 1 and session.supports_multiple is False:
        print("the server knows no multiple connections; a file goes over 1 connection")
        return
    print(f"a file goes over {connections_text(in_force)}{_limits(session.server_limit)}")


async def status(state: ShellState, _: list[str]) -> None:
    """Show what is in force."""
    session, settings = state.session, state.settings
    if session is None or session.is_closed:
        print("not connected")
        count = str(settings.connections or "auto")
    else:
        who = "logged in" if session.is_logged_in else "not logged in"
        print(f"connected to {session.url.host}, port {session.url.port}, {who}")
        print(f"protection: {session.protection or 'none, everything goes in clear'}")
        count = str(session.connections)
        if settings.connections is None:
            count = f"auto, up to {count}"
    limit = rate_text(settings.limit_rate) if settings.limit_rate else "no limit"
    print(f"connections for one file: {count}")
    print(f"type: {'ascii' if state.type == 'A' else 'binary'}; rate: {limit}")
    print(f"existing files: {settings.existing or ('ask' if state.interactive else 'refuse')}")
    for name, value in (
        ("passive", settings.passive),
        ("prompt", state.confirms),
        ("verbose", state.screen.verbose),
    ):
        print(f"{name}: {_on_off(value)}")


async def quote(state: ShellState, arguments: list[str]) -> None:
    """Send a command as it is and show the reply."""
    reply = await state.need_session().quote(" ".join(arguments))
    for line in reply.lines:
        print(f"{reply.code} {printable(line)}")


async def _log_in(state: ShellState, login: Login) -> None:
    session = state.need_session()
    name = login.user or ANONYMOUS
    try:
        await session.login(login.user, login.password)
    except LoginError as error:
        raise LoginError(error.code, f"{error.text} (try: user NAME)", "login") from error
    if state.type != "I":
        await session.set_type(state.type)
    if not state.settings.quiet:
        print(f"logged in as {printable(name)}")


def _login_for(state: ShellState, url: FtpUrl, *, asks: bool) -> Login:
    """Find who logs in; where nothing is known ask if `asks`, else it is anonymous."""
    login = find_login(
        url.host,
        user=url.user or state.settings.user,
        password=url.password,
        netrc_file=state.settings.netrc_file,
        may_ask=can_ask(),
    )
    if login.user is not None or not (asks and state.interactive):
        return login
    name = ask_line(f"User at {url.host} [{ANONYMOUS}]: ") or ANONYMOUS
    return find_login(
        url.host,
        user=name,
        password=None,
        netrc_file=state.settings.netrc_file,
        may_ask=can_ask(),
    )


async def _set_type(state: ShellState, code: str) -> None:
    if state.session is not None and state.session.is_logged_in:
        await state.session.set_type(code)
    state.type = code
    how = "binary" if code == "I" else "ascii: over 1 connection, line ends translated"
    print(f"type is {how}")


def _connections(arguments: list[str]) -> int:
    text = arguments[0].lower() if arguments else str(MULT_DEFAULT_CONNECTIONS)
    if text == "off":
        return 1
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise ArgumentError(f"multiple takes a number from 1 upward, or off; not {arguments[0]!r}")
    return int(text)


def _limits(server_limit: int | None) -> str:
    here = Options().connection_limit
    there = "" if server_limit is None else f", the server's {server_limit}"
    return f" (the limit here is {here}{there})"


def _switch(arguments: list[str], present: bool) -> bool:
    if not arguments:
        return not present
    if arguments[0].lower() not in _SWITCHES:
        raise ArgumentError(f"on or off is expected, not {arguments[0]!r}")
    return _SWITCHES[arguments[0].lower()]


def _on_off(value: bool) -> str:
    return "on" if value else "off"
