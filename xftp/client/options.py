"""What a user chooses for a session; defaults are those of appendix B.5 where it speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from xftp.errors import ArgumentError
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS, MULT_LIMIT, MultOptions
from xftp.transport.ratelimit import RateLimit
from xftp.transport.sockets import Tuning

from .flights import PATIENCE_S
from .memory import Memory
from .tls import TlsOptions

Family = Literal["any", "ipv4", "ipv6"]
"""Which addresses of a host name are tried."""

Direction = Literal["download", "upload"]
"""Which way a file goes, seen from the client."""

Verify = Literal["auto", "always", "never"]
"""Whether hashes of both ends are compared after a transfer: where the server has HASH, in any case
(or the transfer is refused), or not."""

Existing = Literal["fail", "overwrite", "resume", "skip", "renew"]
"""What to do with a target that exists: raise `ExistsError`, write it anew, go on behind what is
there, or leave it; "renew": write it anew, but go on with what an earlier one of the same version
of the file was cut at."""

EXISTING: tuple[Existing, ...] = ("fail", "overwrite", "resume", "skip")


class AutoConnections(Protocol):
    """Chooses the number of data connections of a transfer."""

    def __call__(
        self, direction: Direction, rtt_s: float | None, supposed_bps: float | None
    ) -> tuple[int, int | None]:
        """Give how many to open, and how many of them to feed at first; None: all, always.

        rtt_s: round-trip time of the control connection in seconds, if it is known; supposed_bps:
        rate of the path that earlier transfers let expect, if they do.
        """


class TuningMaker(Protocol):
    """Makes the settings of data sockets once it is known how many share the path."""

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None, peer_host: str
    ) -> tuple[Tuning, MultOptions]:
        """Give the setting of each socket of this side, and what to ask of the other side.

        rtt_s: round-trip time of the control connection in seconds, if it is known; peer_host:
        literal address of the server.
        """


@dataclass(frozen=True, slots=True)
class Options:
    """How a session behaves. Times are in seconds."""

    connections: int = MULT_DEFAULT_CONNECTIONS
    """Data connections wanted for one file, 1 or more; more than `connection_limit` are cut."""

    auto: AutoConnections | None = None
    """Chooses within `connections` how many are opened and fed; None: all."""

    splits: bool = False
    """Whether a file of a server without MULT comes in ranges, over as many sessions as data
    connections are wanted."""

    connection_limit: int = MULT_LIMIT
    """The most data connections this side makes (Allman 1997 B.5)."""

    passive: bool = True
    """Connect to the server for data (MPSV, EPSV, PASV); False lets the server connect."""

    listen_ports: Sequence[int] = ()
    """Ports of this side where a server may connect to; none: any free one."""

    tls: TlsOptions = field(default_factory=TlsOptions)
    """What is chosen of TLS; whether there is any is a matter of the URL too."""

    family: Family = "any"
    """Which addresses of the host name are tried."""

    limit_rate: float | None = None
    """The most bytes per second of one transfer, over all its connections; None: no limit."""

    shared_limit: RateLimit | None = None
    """In place of `limit_rate`: a limit on all transfers that are given the same object."""

    connect_timeout_s: float = 60.0
    """For the control connection to be made. The kernel sends a lost SYN again after 1, 3, 7, 15
    and 31 s."""

    reply_timeout_s: float = 120.0
    """For the reply to a command, and for the final reply once all data has moved."""

    pipelining_patience_s: float = PATIENCE_S
    """For each reply to the first commands that left together: later means that the server cannot
    take that. On paths with an RTT of more than a tenth of it, ten round trips."""

    assume_xftpd: bool = False
    """Whether the server is one of our own kind for sure, so that the first commands leave before
    its greeting; else only a server of which `memory` knows it is trusted with that."""

    memory: Memory | None = None
    """What earlier sessions learnt, and what this one learns; None: nothing is remembered."""

    stall_timeout_s: float = 60.0
    """A transfer in which no byte moves for this long fails."""

    retries: int = 0
    """How often a session that could not be made, or a `get` or `put` that was cut, is tried
    again, on a new connection and from where it was cut. Streams are never tried again."""

    retry_wait_s: float = 5.0
    """Before the first new try; it doubles each time, up to a minute."""

    tuning: TuningMaker | None = None
    """How the data sockets of both sides are set; None: as the systems have them."""

    supposing: Callable[[float], TuningMaker] | None = None
    """Makes what is used in place of `tuning` where the rate of the path, bits per second, is
    supposed from earlier transfers; None: nothing is to be supposed."""

    strict_tuning: bool = False
    """Whether a transfer is refused if the server does not grant what is asked of it."""

    report_sender: bool = False
    """Whether the reports of downloads hold the server's sockets too, where it can tell: one round
    trip more for each file."""

    verify: Verify = "auto"
    """Whether the file here is compared with that on the server, and mended if they differ."""

    sync_downloads: bool = False
    """Whether a download is on the disk, under its name, before it is done."""

    trace: Callable[[str], None] | None = None
    """Told of every command ("> RETR name") and reply ("< 150 ..."), passwords left out, and of
    every way around something the server lacks ("* ...")."""

    notice: Callable[[str], None] | None = None
    """Told, in one sentence, what a user wants to know even without `trace`: fewer connections
    than asked for, a restart that the server refused, a new try."""

    def __post_init__(self) -> None:
        """Raise ArgumentError for what can never work."""
        if self.connections < 1 or self.connection_limit < 1:
            raise ArgumentError("at least 1 data connection is needed")
        if self.limit_rate is not None and not self.limit_rate > 0:
            raise ArgumentError("a rate limit must be above 0 bytes per second")
        if self.retries < 0 or self.retry_wait_s < 0:
            raise ArgumentError("the number of retries and their wait cannot be negative")
