"""What runs in a topology: each flow is a value; `mininet_topos.running` starts it as processes.

A flow moves data from the host `sender` to the host `receiver`, by their names in the topology.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..errors import ExperimentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """Settings of a flow's data connections; None and "" leave what the namespace has."""

    congestion: str = ""
    """Algorithm of the sender, the kernel's or one of `tuning`."""

    initial_window_segments: int | None = None
    """Only the algorithms of `tuning` take one; for others use the route's initcwnd."""

    send_buffer_bytes: int | None = None
    """SO_SNDBUF of each connection."""

    receive_buffer_bytes: int | None = None
    """SO_RCVBUF of each connection."""

    rate_bps: float | None = None
    """XFTP's --rate: the link's rate, shared by the connections."""

    profile: str = ""
    """XFTP's --profile."""

    parameters: tuple[tuple[str, float], ...] = ()
    """Fields of `tuning.congestion.Parameters` (k, thr_segments, c …): plain TCP flows only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What all flows have. Raises ExperimentError for what cannot be."""

    name: str
    """Unique in its scenario; series of recordings are named by it."""

    sender: str = "server"
    """Host that has the data."""

    receiver: str = "client"
    """Host that gets it."""

    start_s: float = 0.0
    """When it starts, seconds after the scenario."""

    background: bool = False
    """It is ended when the others are done."""

    sockets: Sockets = field(default_factory=Sockets)
    """Settings of its data connections."""

    def __post_init__(self) -> None:
        if not self.name or any(letter in self.name for letter in "=/ "):
            raise ExperimentError(f"a flow cannot be named {self.name!r}: no blank, = or /")
        if self.sender == self.receiver:
            raise ExperimentError(f"the flow {self.name} goes from {self.sender} to itself")
        if self.start_s < 0:
            raise ExperimentError(f"the flow {self.name} cannot start at {self.start_s} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Xftp(Flow):
    """Files by xftpd and xftp, the real programs, as users run them."""

    size_bytes: int
    """Of each file."""

    connections: int = 1
    """-n: data connections of a file; 0: as many as pay, which is xftp's own choice."""

    files: int = 1
    """Above 1 they are fetched by one command."""

    direction: Literal["get", "put"] = "get"
    """Who runs the daemon: the sender (get) or the receiver (put)."""

    report: bool = True
    """--json: xftp's report of each file, which costs it a round trip; False where the time of the
    whole command counts, and then there is no other."""

    known: bool = False
    """--assume-xftpd: the client knows what the server is, and spares the greeting's round trip."""

    strict: bool = True
    """Whether a setting that is not granted is an error of the run: the transfer leaves only when
    the grant is here. False where every round trip counts."""

    mirror: bool = False
    """The directory of the files by `xftp mirror`, not each by its name; without a report."""

    def __post_init__(self) -> None:
        Flow.__post_init__(self)
        if self.mirror and self.report:
            raise ExperimentError(f"the flow {self.name} cannot mirror with a report of each file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk(Flow):
    """Plain TCP, as iperf: one connection, a size or a time."""

    size_bytes: int | None = None
    """How much is sent …"""

    duration_s: float | None = None
    """… or for how long; neither: until it is ended, which only a background flow may be."""

    window_bytes: int | None = None
    """As of `Crowd`."""

    def __post_init__(self) -> None:
        Flow.__post_init__(self)
        if self.size_bytes is None and self.duration_s is None and not self.background:
            raise ExperimentError(f"the flow {self.name} would never end: size_bytes or duration_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd(Flow):
    """Independent transfers of the same size that start at once, each on its own connection."""

    size_bytes: int
    """Of each transfer."""

    transfers: int = 1

    window_bytes: int | None = None
    """The largest window that each receiver offers: the namespace's holds for small segments only
    (see `inside.crowd`)."""

    def __post_init__(self) -> None:
        Flow.__post_init__(self)
        if self.transfers < 1 or self.size_bytes < 1:
            raise ExperimentError(
                f"the flow {self.name} cannot be {self.transfers} transfers of {self.size_bytes} B"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingStripes(Flow):
    """XFTP of 1996: chunks of 8 KB in turn on N connections, each write and read waited for.

    Allman 1997 section 2.3 found that this, not TCP, held the first XFTP below the channel's rate.
    """

    size_bytes: int
    connections: int = 1
    chunk_bytes: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLoad(Flow):
    """HTTP-like background load: connections at Poisson times, each a response of Pareto size.

    The receiver connects, asks with one line, and gets the response. The rate of requests is
    load_bps / mean response. Always a background flow unless `duration_s` is given.
    """

    load_bps: float
    """Mean payload per time."""

    mean_response_bytes: int = 12_000
    """Of the Pareto distribution, its shape 1.2 cut at 1 MB (Crovella and Bestavros 1997)."""

    duration_s: float | None = None
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Flow):
    """A tool of today with its own server, on the same link."""

    program: Literal["curl", "lftp-pget", "lftp-mirror", "aria2", "gridftp", "gridftp-files"]
    """curl + vsftpd; lftp pget -n N; lftp mirror --parallel=N; aria2 -x N -s N;
    globus-url-copy -p N; globus-url-copy -pp -cc N over a directory."""

    size_bytes: int
    connections: int = 1
    files: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagrams(Flow):
    """Numbered UDP packets, to measure the link itself."""

    packets: int
    packet_bytes: int = 1500
    """Of each IP packet, its headers included."""

    packets_per_s: float | None = None
    """None: all at once."""

    echo: bool = False
    """Each is sent back, for the round-trip time."""

    def __post_init__(self) -> None:
        Flow.__post_init__(self)
        if self.packets < 1 or not LEAST_DATAGRAM_BYTES <= self.packet_bytes <= 1500:
            raise ExperimentError(
                f"the flow {self.name} cannot be {self.packets} packets of {self.packet_bytes} B: "
                f"at least one of {LEAST_DATAGRAM_BYTES} to 1500 B"
            )


LEAST_DATAGRAM_BYTES = 40
"""20 bytes of IP, 8 of UDP, a number and a time."""

AnyFlow = Xftp | Bulk | Crowd | BlockingStripes | WebLoad | Tool | Datagrams
