"""Who may log in: aioftp's user manager, with our accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import aioftp

from xftp.transport.ratelimit import RateLimit

from .guessing import FairQueue
from .pam import DEFAULT_SERVICE, THREADS, is_accepted
from .passwords import hash_password, is_right, nobodys_hash
from .permissions import Permission
from .settings import Account

ANONYMOUS_NAMES = ("anonymous", "ftp")
"""Names of the account that asks for no real password (RFC 1635)."""


class User(aioftp.User):
    """An aioftp user that carries our account, and what all its sessions share."""

    def __init__(self, account: Account) -> None:
        super().__init__(account.name, base_path=account.root)
        self.account = account
        self.password_hash = account.password_hash
        if account.password is not None:
            self.password_hash = hash_password(account.password)
        rate = account.rate_bytes_per_s
        self.rate_limit = RateLimit(rate) if rate is not None else None

    @property
    def asks_no_password(self) -> bool:
        """Whether any password will do (anonymous)."""
        return self.password_hash is None and not self.account.asks_pam

    def may(self, *permissions: Permission) -> bool:
        """Tell whether this user has at least one of these permissions."""
        return not self.account.permissions.isdisjoint(permissions)


class Accounts(aioftp.AbstractUserManager):
    """Knows the accounts by name; a name that does not exist looks like one with a password."""

    def __init__(self, accounts: Iterable[Account], pam_service: str = DEFAULT_SERVICE) -> None:
        super().__init__()
        self._pam_service = pam_service
        self._queue = FairQueue()
        self._pam_queue = FairQueue(threads=THREADS)
        self._sessions: Counter[str] = Counter()
        self._users: dict[str, User] = {}
        self.replace(accounts)

    def replace(self, accounts: Iterable[Account]) -> None:
        """Let these be the accounts from now on; one that did not change stays what it was."""
        before = self._users
        self._users = {}
        for account in accounts:
            old = before.get(account.name)
            same = old is not None and old.account == account
            self._users[account.name] = old if old is not None and same else User(account)

    def find(self, login: str) -> User | None:
        """Give the user of that name."""
        name = ANONYMOUS_NAMES[0] if login.lower() in ANONYMOUS_NAMES else login
        return self._users.get(name)

    async def get_user(
        self, login: str
    ) -> tuple[aioftp.AbstractUserManager.GetUserResponse, User | None, str]:
        """Give the user of that name; an unknown one gets the same answer, and no user."""
        user = self.find(login)
        if user is not None and user.asks_no_password:
            info = "Anonymous login: send your e-mail address as password."
        else:
            info = "Password required."
        return self.GetUserResponse.PASSWORD_REQUIRED, user, info

    async def check(self, login: str, password: str, host: str) -> User | None:
        """Give the user who logs in so; None if the name or the password is wrong.

        host: the address that the guess is counted for. Raises TooManyGuesses.
        """
        user = self.find(login)
        is_right = await self.authenticate(user, password, host)
        now = self.find(login)  # the accounts may have changed meanwhile
        if user is None or now is None or not now.account.is_same_login(user.account):
            return None
        return now if is_right else None

    async def authenticate(self, user: aioftp.User | None, password: str, host: str = "") -> bool:
        """Tell whether the password is right; it takes as long for a user that does not exist.

        host: the address that the guess is counted for. Raises TooManyGuesses.
        """
        assert user is None or isinstance(user, User)
        if user is not None and user.asks_no_password:
            return True
        if user is not None and user.account.asks_pam:
            service, name = self._pam_service, user.account.name
            return await self._pam_queue.run(host, lambda: is_accepted(service, name, password))
        expected = user.password_hash if user is not None else None
        same = await self._queue.run(host, lambda: is_right(expected or nobodys_hash(), password))
        return user is not None and same

    def enter(self, user: User) -> bool:
        """Count a session of `user`; False if it has as many as it may have."""
        name, limit = user.account.name, user.account.session_limit
        if limit is not None and self._sessions[name] >= limit:
            return False
        self._sessions[name] += 1
        return True

    def leave(self, user: User) -> None:
        """Count a session of `user` no more."""
        self._sessions[user.account.name] -= 1
        if not self._sessions[user.account.name]:
            del self._sessions[user.account.name]

    def close(self) -> None:
        """Compare no more passwords."""
        self._queue.close()
        self._pam_queue.close()
