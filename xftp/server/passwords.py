"""Password hashes: argon2id, in the form that argon2's own tools write and read."""

from __future__ import annotations

import functools

import argon2
import argon2.exceptions

_HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""Two passes over 19 MiB: what the OWASP Password Storage Cheat Sheet asks of argon2id, and little
enough memory that a flood of guesses does not cost more than a login."""


@functools.cache
def nobodys_hash() -> str:
    """Give what is compared with for a name that does not exist: that takes as long."""
    return _HASHER.hash("the password of nobody")


def hash_password(password: str) -> str:
    """Hash a new password, with a salt of its own."""
    return _HASHER.hash(_as_bytes(password))


def is_hash(text: str) -> bool:
    """Tell whether `text` is a hash that `is_right` can compare with."""
    try:
        argon2.extract_parameters(text)
    except argon2.exceptions.InvalidHashError:
        return False
    return True


def is_right(password_hash: str, password: str) -> bool:
    """Compare; takes tens of milliseconds of one core, and lets other threads run meanwhile."""
    try:
        return _HASHER.verify(password_hash, _as_bytes(password))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


def _as_bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogateescape")
