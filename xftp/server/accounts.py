"""Who may log in: aioftp's user manager, with our accounts."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

import aioftp

from .settings import Account

ANONYMOUS_NAMES = ("anonymous", "ftp")
"""Names of the account that asks for no real password (RFC 1635)."""


class User(aioftp.User):
    """An aioftp user that carries our account."""

    def __init__(self, account: Account) -> None:
        super().__init__(account.name, account.password, base_path=account.root)
        self.account = account


class Accounts(aioftp.AbstractUserManager):
    """Knows the accounts by name; a name that does not exist looks like one with a password."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        super().__init__()
        self._users = {account.name: User(account) for account in accounts}
        if "anonymous" in self._users:
            self._users["ftp"] = self._users["anonymous"]

    async def get_user(
        self, login: str
    ) -> tuple[aioftp.AbstractUserManager.GetUserResponse, User | None, str]:
        """Give the user of that name; an unknown one gets the same answer, and no user."""
        name = login.lower() if login.lower() in ANONYMOUS_NAMES else login
        user = self._users.get(name)
        if user is not None and user.password is None:
            info = "Anonymous login: send your e-mail address as password."
        else:
            info = "Password required."
        return self.GetUserResponse.PASSWORD_REQUIRED, user, info

    async def authenticate(self, user: aioftp.User | None, password: str) -> bool:
        """Tell whether the password is right; it takes as long for a user that does not exist."""
        expected = "" if user is None or user.password is None else user.password
        given = password.encode("utf-8", "surrogateescape")
        same = hmac.compare_digest(given, expected.encode("utf-8", "surrogateescape"))
        return user is not None and (user.password is None or same)
