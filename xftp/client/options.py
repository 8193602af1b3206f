"""What a user chooses for a session; defaults are those of appendix B.5 where it speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from xftp.errors import ArgumentError
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS, MULT_LIMIT, MultOptions
from xftp.transport.sockets import Tuning

Family = Literal["any", "ipv4", "ipv6"]
"""Which addresses of a host name are tried."""

Direction = Literal["download", "upload"]
"""Which way a file goes, seen from the client."""

Existing = Literal["fail", "overwrite", "resume", "skip"]
"""What to do with a target that exists: raise `ExistsError`, write it anew, go on behind what is
there, or leave it."""

EXISTING: tuple[Existing, ...] = ("fail", "overwrite", "resume", "skip")


class TuningMaker(Protocol):
    """Makes the settings of data sockets once it is known how many share the path."""

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> tuple[Tuning, MultOptions]:
        """Give the setting of each socket of this side, and what to ask of the other side.

        rtt_s: round-trip time of the control connection in seconds, if it is known.
        """


@dataclass(frozen=True, slots=True)
class Options:
    """How a session behaves. Times are in seconds."""

    connections: int = MULT_DEFAULT_CONNECTIONS
    """Data connections wanted for one file, 1 or more; more than `connection_limit` are cut."""

    connection_limit: int = MULT_LIMIT
    """The most data connections this side makes (Allman 1997 B.5)."""

    passive: bool = True
    """Connect to the server for data (MPSV, EPSV, PASV); False lets the server connect."""

    family: Family = "any"
    """Which addresses of the host name are tried."""

    limit_rate: float | None = None
    """The most bytes per second of one transfer, over all its connections; None: no limit."""

    connect_timeout_s: float = 60.0
    """For the control connection to be made. The kernel sends a lost SYN again after 1, 3, 7, 15
    and 31 s."""

    reply_timeout_s: float = 120.0
    """For the reply to a command, and for the final reply once all data has moved."""

    stall_timeout_s: float = 60.0
    """A transfer in which no byte moves for this long fails."""

    retries: int = 0
    """How often a session that could not be made, or a `get` or `put` that was cut, is tried
    again, on a new connection and from where it was cut. Streams are never tried again."""

    retry_wait_s: float = 5.0
    """Before the first new try; it doubles each time, up to a minute."""

    tuning: TuningMaker | None = None
    """How the data sockets of both sides are set; None: as the systems have them."""

    strict_tuning: bool = False
    """Whether a transfer is refused if the server does not grant what is asked of it."""

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
