"""The users file: accounts in TOML, with hashed passwords, for nobody's eyes but the daemon's.

[users."ann"]
password = "$argon2id$v=19$m=19456,t=2,p=1$..."  # or instead: pam = true
home = "/srv/ftp/ann"                    # or beneath the daemon's root; the root by default
permissions = ["list", "read", "write"]  # list and read by default
sessions = 10                            # at once; no limit of its own by default
connections = 4                          # of one transfer; the same
rate_bytes_per_s = 1000000               # of all transfers together; the same
quota_bytes = 5000000000                 # of all files beneath the home; no limit by default
quota_entries = 1000                     # files and directories there; 50,000 beside quota_bytes
idle_timeout_s = 3600                    # without command and transfer; the daemon's by default
stall_timeout_s = 300                    # in which nothing of a transfer moves; the same
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xftp.errors import ArgumentError, FileError, file_error

from .accounts import ANONYMOUS_NAMES
from .pam import is_available
from .passwords import is_hash
from .permissions import READ_ONLY, Permission, parse_permissions, permission_names
from .settings import Account
from .storage import StorageLimit

FILE_MODE = 0o600
_FOR_OTHERS = stat.S_IRWXO | stat.S_IWGRP
"""Nobody else may read the hashes; a group may, such as that of the daemon without root."""

_NAME = re.compile(r"[^\x00-\x20\x7f:/\\\"]{1,64}")
"""No name that a person could not type, or that a URL or a log would take for something else."""

LIMITS = (
    "sessions",
    "connections",
    "rate_bytes_per_s",
    "quota_bytes",
    "quota_entries",
    "idle_timeout_s",
    "stall_timeout_s",
)
"""The settings that are a number from 1 upward, or not there."""

_HEAD = "# Accounts of xftpd, kept by `xftpd user`: comments are lost when it writes.\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """One user, as the file has it."""

    password_hash: str | None = None
    """None: any password will do, which only `anonymous` may have, or PAM is asked."""

    home: Path | None = None
    """The directory that is `/` for this user: absolute, or relative to the daemon's root."""

    permissions: frozenset[Permission] = READ_ONLY
    """What the user may do."""

    sessions: int | None = None
    """Sessions at once."""

    connections: int | None = None
    """Data connections of one transfer."""

    rate_bytes_per_s: int | None = None
    """Of all transfers together."""

    quota_bytes: int | None = None
    """Of all files beneath the home."""

    quota_entries: int | None = None
    """Files and directories there."""

    idle_timeout_s: int | None = None
    """How long a session may be without command and transfer."""

    stall_timeout_s: int | None = None
    """How long nothing of a transfer may move."""

    pam: bool = False
    """Whether PAM compares the password."""

    def account(self, name: str, root: Path) -> Account:
        """Give the account of this entry; root: the daemon's."""
        return Account(
            name,
            root if self.home is None else root / self.home,
            granted=self.permissions,
            password_hash=self.password_hash,
            asks_pam=self.pam,
            session_limit=self.sessions,
            connection_limit=self.connections,
            rate_bytes_per_s=self.rate_bytes_per_s,
            storage_limit=self._storage_limit(),
            idle_timeout_s=self.idle_timeout_s,
            stall_timeout_s=self.stall_timeout_s,
        )

    def _storage_limit(self) -> StorageLimit | None:
        if self.quota_bytes is None and self.quota_entries is None:
            return None
        return StorageLimit(self.quota_bytes, self.quota_entries)


def read_accounts(path: Path, root: Path) -> tuple[Account, ...]:
    """Give the accounts of a users file; root: the home of those that name none.

    Raises FileError if it cannot be read, is open to others, or holds what it should not.
    """
    users = read_users(path)
    asking = [name for name, entry in users.items() if entry.pam]
    if asking and not is_available():
        raise FileError(f"{path}: {asking[0]} needs PAM; say pip install 'xftp[pam]'")
    return tuple(entry.account(name, root) for name, entry in users.items())


def read_users(path: Path) -> dict[str, Entry]:
    """Give the entries of a users file by name. Raises FileError as `read_accounts`."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except OSError as error:
        raise file_error(error, str(path)) from error
    if mode & _FOR_OTHERS:
        raise FileError(f"{path}: others can read or change it; say chmod 600 {path}")
    try:
        return _entries(tomllib.loads(content.decode()))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, ArgumentError) as error:
        raise FileError(f"{path}: {error}") from error


@contextlib.contextmanager
def edited_users(path: Path) -> Iterator[dict[str, Entry]]:
    """Give the entries of a users file to be changed; they are written when all went well.

    The file is replaced whole, and made with mode 0600 if there is none. Others who edit it wait.
    Raises FileError.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise file_error(error, str(path.parent)) from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        users = read_users(path) if _exists(path, directory) else {}
        yield users
        _write(path.name, directory, format_users(users))
    except OSError as error:
        raise file_error(error, str(path)) from error
    finally:
        os.close(directory)


def check_name(name: str) -> None:
    """Raise ArgumentError for what cannot be the name of a user."""
    if not _NAME.fullmatch(name):
        raise ArgumentError(f"{name!r} cannot be the name of a user")
    if name.lower() in ANONYMOUS_NAMES and name != ANONYMOUS_NAMES[0]:
        raise ArgumentError(f"{name!r} is another name of {ANONYMOUS_NAMES[0]}")


def check_home(home: Path) -> None:
    """Raise ArgumentError for a path that cannot be written into the file."""
    if not str(home).isprintable():
        raise ArgumentError(f"{str(home)!r}: a home has a name that can be read")


# -- reading -----------------------------------------------------------------------------------


def _entries(content: dict[str, Any]) -> dict[str, Entry]:
    unknown = [key for key in content if key != "users"]
    users = content.get("users", {})
    if unknown or not isinstance(users, dict):
        raise ArgumentError("expected tables like [users.ann] and nothing else")
    entries = {}
    for name, values in users.items():
        check_name(name)
        try:
            entries[name] = _entry(name, values)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from error
    return entries


def _entry(name: str, values: object) -> Entry:
    if not isinstance(values, dict):
        raise ArgumentError("expected a table")
    left = dict(values)
    asks_pam = _pam(left)
    entry = Entry(
        password_hash=None if asks_pam else _password(name, left.pop("password", None)),
        pam=asks_pam,
        home=_home(left.pop("home", None)),
        permissions=_permissions(left.pop("permissions", None)),
        **{key: _limit(key, left.pop(key, None)) for key in LIMITS},
    )
    if left:
        raise ArgumentError(f"there is no setting {next(iter(left))!r}")
    return entry


def _password(name: str, value: object) -> str | None:
    if value is None and name == ANONYMOUS_NAMES[0]:
        return None
    if not isinstance(value, str) or not is_hash(value):
        raise ArgumentError("the password is no argon2 hash; say xftpd user passwd")
    return value


def _pam(values: dict[str, Any]) -> bool:
    """Take `pam` out of the values of a user."""
    value = values.pop("pam", False)
    if not isinstance(value, bool):
        raise ArgumentError("pam is true or false")
    if value and "password" in values:
        raise ArgumentError("a password is here or with PAM, not both")
    return value


def _home(value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ArgumentError("home is no path")
    check_home(Path(value))
    return Path(value)


def _permissions(value: object) -> frozenset[Permission]:
    if value is None:
        return READ_ONLY
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ArgumentError("permissions is no list of words")
    return parse_permissions(value)


def _limit(key: str, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"{key} is no number from 1 upward")
    return value


# -- writing -----------------------------------------------------------------------------------


def format_users(users: dict[str, Entry]) -> str:
    """Write a users file."""
    return _HEAD + "".join(f"\n{_format(name, users[name])}" for name in sorted(users))


def _format(name: str, entry: Entry) -> str:
    values = {
        "password": entry.password_hash,
        "pam": entry.pam or None,
        "home": None if entry.home is None else str(entry.home),
        "permissions": permission_names(entry.permissions),
        **{key: getattr(entry, key) for key in LIMITS},
    }
    # Strings, lists and numbers of JSON are those of TOML too, if nothing is escaped as UTF-16.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in values.items()
        if value is not None
    ]
    return f"[users.{json.dumps(name, ensure_ascii=False)}]\n" + "".join(lines)


def _exists(path: Path, directory: int) -> bool:
    try:
        os.stat(path.name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _write(name: str, directory: int, content: str) -> None:
    """Replace the file, which keeps its owner and mode. Raises OSError."""
    new = f".{name}.{os.getpid()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(new, flags, FILE_MODE, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _take_owner(file.fileno(), name, directory)
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(new, dir_fd=directory)
        raise
    os.fsync(directory)


def _take_owner(descriptor: int, name: str, directory: int) -> None:
    """Give a new file the owner and the mode of the one it is to replace, if there is one."""
    try:
        old = os.stat(name, dir_fd=directory)
    except FileNotFoundError:
        return
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & ~_FOR_OTHERS)
