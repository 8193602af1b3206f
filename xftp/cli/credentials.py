"""Who logs in: the URL, the options, the environment, netrc, and at last the person.

The password is never printed and never taken from an option, where `ps` would show it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from xftp.errors import FileError, NotLoggedInError

from .terminal import ask_password

PASSWORD_VARIABLE = "XFTP_PASSWORD"
NETRC_VARIABLE = "NETRC"

_NO_HOME = (FileNotFoundError, NotADirectoryError, PermissionError)


class Login(NamedTuple):
    """A user and a password; None means that nothing was found and anonymous will do."""

    user: str | None
    password: str | None


def find_login(
    host: str,
    *,
    user: str | None,
    password: str | None,
    netrc_file: Path | None = None,
    may_ask: bool = True,
) -> Login:
    """Find the password for `user` at `host`, or the user as well if none is given.

    Order: the URL's password, XFTP_PASSWORD, netrc, a prompt on a terminal. Raises FileError if
    a netrc file cannot be used, NotLoggedInError if a password is needed and nobody can be asked.
    """
    if password is not None:
        return Login(user, password)
    from_environment = os.environ.get(PASSWORD_VARIABLE)
    if user is not None and from_environment is not None:
        return Login(user, from_environment)
    found = _from_netrc(host, user, netrc_file)
    if found is not None:
        return found
    if user in (None, "anonymous", "ftp"):
        return Login(user, None)
    if not may_ask:
        raise NotLoggedInError(
            f"there is no password for {user} at {host}: put it into ~/.netrc, "
            f"or into {PASSWORD_VARIABLE}"
        )
    return Login(user, ask_password(f"Password for {user} at {host}: "))


def _from_netrc(host: str, user: str | None, path: Path | None) -> Login | None:
    """Find the machine's entry, or the default one; only for `user`, if one is given."""
    named = path is not None or NETRC_VARIABLE in os.environ
    path = path or Path(os.environ.get(NETRC_VARIABLE) or Path.home() / ".netrc")
    try:
        is_pipe = stat.S_ISFIFO(path.stat().st_mode)
    except OSError as error:
        if named or not isinstance(error, _NO_HOME):
            raise FileError(f"{path}: {error.strerror}") from error
        return None  # as most; or a service, whose home is none or somebody else's
    if is_pipe and not named:  # nobody may ever write to it
        raise FileError(f"{path}: is a pipe")
    import netrc

    try:
        entry = netrc.netrc(str(path)).authenticators(host)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except netrc.NetrcParseError as error:
        raise FileError(f"{path}: line {error.lineno} cannot be read: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8") from error
    if entry is None or (user is not None and entry[0] not in ("", user)):
        return None
    login, _, password = entry
    if password and not named and path.stat().st_mode & 0o077:
        raise FileError(f"{path}: others can read the passwords in it; say chmod 600 {path}")
    return Login(user or login or None, password or None)
