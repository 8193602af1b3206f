"""What the operator decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xftp.protocol.options import MULT_LIMIT, MultOptions
from xftp.transport.sockets import Tuning


class Tuner(Protocol):
    """Decides how data sockets are set: what the operator allows of what a client asks."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of OPTS MULT, besides Connections, that may be granted at all."""

    def grant(self, asked: MultOptions) -> MultOptions:
        """Reduce what a client asks to what it gets; None for what it does not get."""

    def tuning(self, granted: MultOptions, connections: int) -> Tuning:
        """Make the setting of each of `connections` data sockets."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in, and to what."""

    name: str
    """The name given with USER."""

    root: Path
    """The directory that is `/` for this user."""

    password: str | None = field(default=None, repr=False)
    """None: any password will do (anonymous)."""

    writable: bool = False
    """Whether uploads, and changes of files and directories, are allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the daemon behaves."""

    accounts: tuple[Account, ...]
    """Who may log in."""

    connection_limit: int = MULT_LIMIT
    """Data connections of one transfer at most (Allman 1997 B.5 recommends 8)."""

    passive_ports: tuple[int, ...] = ()
    """Ports that passive listeners may use; empty: any free one."""

    public_host: str | None = None
    """IPv4 address that PASV and MPSV tell, if the daemon is behind NAT."""

    session_limit: int = 500
    """Sessions at once."""

    login_tries: int = 3
    """Wrong passwords per session."""

    idle_timeout_s: float = 300.0
    """A session without command and transfer for this long is closed."""

    login_timeout_s: float = 60.0
    """The same before the login."""

    open_timeout_s: float = 60.0
    """How long data connections may take to be made."""

    stall_timeout_s: float = 60.0
    """A transfer in which nothing moves for this long fails."""

    sync_uploads: bool = False
    """Whether an upload is on the disk before it is acknowledged."""

    tuner: Tuner | None = None
    """How data sockets are set; None: as the system has them."""

    welcome: str = "XFTP server ready."
    """The text of the greeting."""
