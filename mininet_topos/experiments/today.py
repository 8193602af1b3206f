"""What the rows against the tools of today share: who takes part, and what is compared.

Every transfer is cold: a new home directory, an anonymous login, no path remembered, new
namespaces. Times are those of the whole command, from its start to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..tcp_settings import TcpSettings
from .flows import AnyFlow, Sockets, Tool, Xftp
from .measures import Metric, queue_drops, retransmits, whole_time
from .outcome import Outcome
from .rules import Rule, at_most

KB, MB = 1000, 1_000_000

SEGMENT_SHARE = 1448 / 1500
"""Payload in a full packet: 20 bytes of IP, 20 of TCP, 12 of time stamps."""

KNOWN, TOLD, UNTOLD = "XFTP --rate --assume-xftpd", "XFTP --rate", "XFTP"
"""XFTP that was told what the server is and the link's rate, only this, and nothing but the URL."""

OWN = (KNOWN, TOLD, UNTOLD)

COMMANDS: Mapping[str, tuple[str, int]] = {
    "curl": ("curl", 1),
    "lftp pget -n 4": ("lftp-pget", 4),
    "lftp pget -n 8": ("lftp-pget", 8),
    "aria2 -x8 -s8": ("aria2", 8),
    "GridFTP -p 4": ("gridftp", 4),
    "GridFTP -p 8": ("gridftp", 8),
}
"""Other programs for one file, each with the number of its connections."""

ALGORITHMS = ("cubic", "bbr")
"""What the hosts use of the kernel's own."""


@dataclass(frozen=True, slots=True)
class Link:
    """What all who take part are measured against."""

    rate_bps: float
    rtt_s: float

    @property
    def goodput_bytes_per_s(self) -> float:
        """What it carries of payload."""
        return self.rate_bps / 8 * SEGMENT_SHARE

    def limit_s(self, size_bytes: float) -> float:
        """Give the physical limit: all at the payload's rate, and 4 RTT before the first byte."""
        return size_bytes / self.goodput_bytes_per_s + 4 * self.rtt_s


def flow(contender: str, link: Link, size_bytes: int) -> AnyFlow:
    """Give a contender's fetching of one file."""
    if contender in COMMANDS:
        program, connections = COMMANDS[contender]
        return Tool(
            name="file",
            program=program,  # type: ignore[arg-type] # a literal of the table above
            size_bytes=size_bytes,
            connections=connections,
        )
    return xftp(contender, link, size_bytes)


def xftp(contender: str, link: Link, size_bytes: int, files: int = 1) -> Xftp:
    """Give XFTP with its own choice of connections, with or without the link's rate."""
    sockets = Sockets() if contender == UNTOLD else Sockets(rate_bps=link.rate_bps)
    return Xftp(
        name="file",
        size_bytes=size_bytes,
        connections=0,
        files=files,
        sockets=sockets,
        report=False,
        known=contender == KNOWN,
        strict=False,
        mirror=files > 1,
    )


def hosts(algorithm: str) -> TcpSettings:
    """Give hosts as they come, with the algorithm that all their sockets use by themselves."""
    return TcpSettings(congestion_control=algorithm)


def series(contender: str, *more: str) -> str:
    """Name a line of a figure: who, and what else sets it apart."""
    return ", ".join((contender, *more))


def contender_of(name: str) -> str:
    """Give the contender of a series."""
    return name.split(", ")[0]


def ours(name: str) -> bool:
    """Say whether a series is XFTP's."""
    return contender_of(name) in OWN


def within_limit(name: str, x: float, limit_s: float, share: float) -> Rule:
    """The time is within a share of the physical limit."""
    rule = at_most("time", name, x, limit_s * (1 + share))
    return Rule(
        f"{rule.text} s: within {100 * share:g}% of size / goodput limit + 4 RTT = {limit_s:.2f} s",
        rule.check,
    )


def metrics(rivals: Mapping[str, Sequence[str]]) -> tuple[Metric, ...]:
    """Give times, and how far ahead XFTP is of the series that each of its own is compared with."""
    return (
        Metric(name="time", label="time of the whole command, s", measure=whole_time()),
        Metric(name="speed", label="payload / time of the whole command, Mbit/s", measure=speed),
        Metric(
            name="ratio",
            label="times faster than the best of the others",
            measure=whole_time(),
            rivals=lambda name, x: [(other, x) for other in rivals[name]],
            series=frozenset(rivals),
        ),
        Metric(name="again", label="segments sent again", measure=retransmits()),
        Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
    )


def speed(outcome: Outcome) -> float | None:
    """Give the payload per time of the whole command, in Mbit/s."""
    file = outcome.flow("file")
    return 8e-6 * file.bytes / file.seconds if file.seconds > 0 else None


DEVIATIONS = (
    "times count the start of the programs, which is 0.3 s for XFTP (Python) on an idle machine, "
    "more on a busy one, and next to nothing for the others",
    "XFTP compares the hashes of both ends, the others do not",
    "with --assume-xftpd XFTP sends its first commands before the greeting, as it does by itself "
    "with a server that it remembers; the aims are those of XFTP without it",
)
