"""What the operator decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xftp.protocol.options import MULT_LIMIT, MultOptions
from xftp.transport.sockets import Tuning

from .limits import Limits
from .pam import DEFAULT_SERVICE
from .permissions import ALL, READ_ONLY, Permission
from .proxies import Network
from .storage import StorageLimit
from .tls import ServerTls


class Tuner(Protocol):
    """Decides how data sockets are set: what the operator allows of what a client asks."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of OPTS MULT, besides Connections, that may be granted at all."""

    def grant(self, asked: MultOptions, peer_host: str) -> MultOptions:
        """Reduce what a client asks to what it gets; None for what it does not get.

        peer_host: literal address of the client.
        """

    def tuning(self, granted: MultOptions, connections: int, peer_host: str) -> Tuning:
        """Make the setting of each of `connections` data sockets to `peer_host`."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in, and to what."""

    name: str
    """The name given with USER."""

    root: Path
    """The directory that is `/` for this user."""

    password: str | None = field(default=None, repr=False)
    """None, and no hash either: any password will do (anonymous)."""

    writable: bool = False
    """Whether everything is allowed; otherwise only what `granted` says."""

    granted: frozenset[Permission] = READ_ONLY
    """What is allowed if not everything is."""

    password_hash: str | None = field(default=None, repr=False)
    """Instead of a password: its hash (see `passwords`)."""

    asks_pam: bool = False
    """Whether PAM compares the password, which is in neither of them then."""

    session_limit: int | None = None
    """Sessions of this user at once; None: as many as the server has."""

    connection_limit: int | None = None
    """Data connections of one transfer at most; None: as many as the server allows."""

    rate_bytes_per_s: float | None = None
    """What all transfers of this user may move together; None: no limit."""

    storage_limit: StorageLimit | None = None
    """What may be kept beneath `root`; None: as much as the disk takes."""

    idle_timeout_s: float | None = None
    """How long a session may be without command and transfer; None: as the server says."""

    stall_timeout_s: float | None = None
    """How long nothing of a transfer may move; None: as the server says."""

    @property
    def permissions(self) -> frozenset[Permission]:
        """What this account may do."""
        return ALL if self.writable else self.granted

    def is_same_login(self, other: Account) -> bool:
        """Tell whether who logged in to `other` would get in here, and to the same files."""
        return all(
            getattr(self, each) == getattr(other, each)
            for each in ("name", "root", "password", "password_hash", "asks_pam")
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """How the daemon behaves."""

    accounts: tuple[Account, ...]
    """Who may log in."""

    connection_limit: int = MULT_LIMIT
    """Data connections of one transfer at most (Allman 1997 B.5 recommends 8)."""

    passive_ports: tuple[int, ...] = ()
    """Ports that passive listeners may use; empty: any free one."""

    standing_port: int | None = 0
    """Port for the data connections of all sessions; 0: the first of several `passive_ports`,
    without those the one below the first control port if that is free, or any; None: none."""

    public_host: str | None = None
    """IPv4 address that PASV and MPSV tell, if the daemon is behind NAT."""

    proxies: tuple[Network, ...] = ()
    """Load balancers: what they say of their clients in the PROXY protocol is believed."""

    tls: ServerTls | None = None
    """The certificate, and what has to be protected; None: there is no TLS."""

    limits: Limits = field(default_factory=Limits)
    """How much of the server there is for all, for one address and for one user."""

    pam_service: str = DEFAULT_SERVICE
    """The service whose rules PAM goes by, for accounts that ask it."""

    login_tries: int = 3
    """Wrong passwords per session."""

    wrong_login_s: float = 3.0
    """How long the reply to a wrong password takes at least."""

    idle_timeout_s: float = 300.0
    """A session without command and transfer for this long is closed."""

    login_timeout_s: float = 30.0
    """A session that is not logged in this long after its beginning is closed."""

    open_timeout_s: float = 60.0
    """How long data connections may take to be made."""

    stall_timeout_s: float = 60.0
    """A transfer in which nothing moves for this long fails."""

    stop_timeout_s: float = 60.0
    """How long running transfers may go on once the server is asked to stop."""

    sync_uploads: bool = True
    """Whether an upload is on the disk before it is acknowledged."""

    tuner: Tuner | None = None
    """How data sockets are set; None: as the system has them."""

    welcome: str = "XFTP server ready."
    """The text of the greeting."""
