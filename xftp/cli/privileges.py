"""Being somebody else than root once root's work is done: `xftpd --run-as USER[:GROUP]`."""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
import sys
from dataclasses import dataclass
from pathlib import Path

_PR_SET_NO_NEW_PRIVS = 38
"""linux/prctl.h: no program that this process starts gets more rights (prctl(2), Linux 3.5)."""


class PrivilegeError(Exception):
    """Another user that cannot be had; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of this machine with all its groups."""

    name: str
    user_id: int
    group_id: int
    """The primary group, or the one that was named."""

    groups: tuple[int, ...]
    """The supplementary groups, the primary one among them."""

    @classmethod
    def find(cls, text: str) -> Identity:
        """Look USER or USER:GROUP up, by name or number.

        The supplementary groups are those of the user, or none where a group is named. Raises
        PrivilegeError.
        """
        user, colon, group = text.partition(":")
        account = _user(user)
        if account.pw_uid == 0:
            raise PrivilegeError(f"{user} is root: name an ordinary user")
        if not colon:
            groups = os.getgrouplist(account.pw_name, account.pw_gid)
            if 0 in groups:
                raise PrivilegeError(f"{user} is in root's group: name another, as {user}:nogroup")
            return cls(account.pw_name, account.pw_uid, account.pw_gid, tuple(groups))
        group_id = _group(group)
        return cls(account.pw_name, account.pw_uid, group_id, (group_id,))

    def as_root(self) -> Identity:
        """Give this user if this process can become it. Raises PrivilegeError."""
        if os.geteuid() != 0:
            raise PrivilegeError(f"only root can become {self.name}: start xftpd as root")
        return self

    def assume(self) -> None:
        """Be this user from now on, in every thread, with no way back. Raises PrivilegeError.

        Open descriptors stay as they are: what only root may open is opened before.
        """
        self.as_root()
        try:
            # The groups first, which take root; each of the three ids, so that none leads back.
            os.setgroups(self.groups)
            os.setresgid(self.group_id, self.group_id, self.group_id)
            os.setresuid(self.user_id, self.user_id, self.user_id)
        except OSError as error:
            raise PrivilegeError(f"cannot become {self.name}: {error.strerror}") from error
        _forbid_new_privileges()
        self._check()

    def _check(self) -> None:
        """Raise PrivilegeError unless root is gone for good."""
        ids = (*os.getresuid(), *os.getresgid())
        if ids != (self.user_id,) * 3 + (self.group_id,) * 3 or _can_be_root():
            raise PrivilegeError(f"became {self.name}, but could be root again")


def unreadable(directory: Path) -> bool:
    """Tell whether this process may not list a directory."""
    return not os.access(directory, os.R_OK | os.X_OK)


def _user(text: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        raise PrivilegeError(f"there is no user {text!r} on this machine") from None


def _group(text: str) -> int:
    try:
        found = grp.getgrgid(int(text)) if text.isdecimal() else grp.getgrnam(text)
    except (KeyError, OverflowError):
        raise PrivilegeError(f"there is no group {text!r} on this machine") from None
    if found.gr_gid == 0:
        raise PrivilegeError("the group 0 is root's: name an ordinary group")
    return found.gr_gid


def _can_be_root() -> bool:
    try:
        os.setuid(0)
    except PermissionError:
        return False
    return True


def _forbid_new_privileges() -> None:
    """Let no set-user-id program that is started later undo it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
