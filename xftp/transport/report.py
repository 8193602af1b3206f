"""What happened in a transfer: for the person, for `--json`, and for the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .connection import DataConnection

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """One data connection of a transfer."""

    number: int
    """Which connection, from 0, in the order they came."""

    bytes: int
    """Bytes on this connection, sequence numbers included."""

    rtt_s: float | None
    """Smoothed round-trip time at the end in seconds; None where the kernel cannot tell."""

    retransmits: int | None
    """Segments that this side sent again; None where the kernel cannot tell."""

    socket: Mapping[str, object] = field(default_factory=dict)
    """What the socket had: algorithm, buffers, initial window and more, where it was observed."""


@dataclass(frozen=True, slots=True)
class SenderReport:
    """How the other side's sockets fared, where the other side was the sender and told."""

    seconds: float
    """From its first connection to the end of the data."""

    connections: tuple[ConnectionReport, ...]
    """Its data connections, in the order in which it got them."""


@dataclass(frozen=True, slots=True)
class TransferReport:
    """One file moved."""

    bytes: int
    """Bytes of the file that were moved, without sequence numbers."""

    seconds: float
    """From the first connection to the end of the data."""

    framed: bool
    """Whether the file was cut into records (appendix B) or sent as a plain stream."""

    connections: tuple[ConnectionReport, ...] = field(default=())
    """Every data connection that came."""

    offset: int = 0
    """Bytes of the file that were there before: at which the transfer started (REST), or that an
    earlier one had left, wherever they are."""

    sender: SenderReport | None = None
    """The server's side of a download; None: not asked for, or not told."""

    repeated_bytes: int = 0
    """Bytes of the file that were sent, or arrived, more than once: because a connection was
    slow, or because it was lost."""

    lost_connections: int = 0
    """Data connections that broke or fell silent and were given up."""

    files: int = 1
    """Files moved together: everything but `bytes` and `offset` is of them all."""

    together_bytes: int | None = None
    """Bytes of all files moved together; None: this is the only one."""

    def with_losses(self, repeated_bytes: int, lost_connections: int) -> TransferReport:
        """Add what was sent again, and the connections that were lost."""
        return replace(self, repeated_bytes=repeated_bytes, lost_connections=lost_connections)

    @property
    def bytes_per_s(self) -> float:
        """Goodput in bytes per second, of all files that moved together."""
        moved = self.bytes if self.together_bytes is None else self.together_bytes
        return moved / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """Give the report as plain values, with its format's version."""
        values = {
            "version": FORMAT_VERSION,
            **asdict(self),
            "bytes_per_s": round(self.bytes_per_s, 1),
        }
        for name in ("sender", "together_bytes"):
            if values[name] is None:
                del values[name]
        return values


def connection_report(connection: DataConnection) -> ConnectionReport:
    """Report on a connection, open or just closed."""
    state = connection.state()
    return ConnectionReport(
        number=connection.number,
        bytes=connection.bytes_sent + connection.bytes_received,
        rtt_s=state.rtt_s if state else None,
        retransmits=state.retransmits if state else None,
        socket=connection.observed,
    )
