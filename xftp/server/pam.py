"""Passwords that the machine's PAM compares: the extra `xftp[pam]`.

A stack may wait on purpose when a password is wrong, and ask servers far away. So these comparisons
have threads of their own, and one address one of them at a time: `accounts`.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec

logger = logging.getLogger(__name__)

DEFAULT_SERVICE = "xftpd"
"""The file in /etc/pam.d."""

THREADS = 8
"""Comparisons at once, each of another address."""


def is_available() -> bool:
    """Tell whether python-pam is installed."""
    return find_spec("pam") is not None


def is_accepted(service: str, name: str, password: str) -> bool:
    """Ask PAM whether a user may log in so: password and account. Blocks.

    What goes wrong in the stack is a no; it is in the log.
    """
    from pam import PamAuthenticator  # an extra

    asked = PamAuthenticator()
    try:
        accepted = asked.authenticate(
            name.encode("utf-8", "surrogateescape"),
            password.encode("utf-8", "surrogateescape"),
            service=service,
            resetcreds=False,  # they would be those of the daemon
        )
    except (OSError, ValueError) as error:
        logger.error("PAM: %s", error)
        return False
    if not accepted:
        logger.info("PAM refused %s: %s", name, asked.reason)
    return bool(accepted)
