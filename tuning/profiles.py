"""Named links, each with its source, and the settings that suit them.

    PROFILES["hts-geo"].tuning(connections=8, direction="download")

`AUTO` is a name only: whoever measured RTT and rate makes a `Profile` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .errors import TuningError
from .model import MSS_BYTES, Link
from .planning import tuning_for
from .sockopts import SocketTuning

Direction = Literal["download", "upload"]
"""Which way the data goes, seen from the client."""

AUTO = "auto"
"""Measure the link instead of naming it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A link as its user knows it."""

    name: str
    """What it is called on the command line."""

    description: str
    """One line for people."""

    source: str
    """Where the figures come from."""

    down_bps: float
    """Rate towards the client."""

    up_bps: float
    """Rate from the client."""

    rtt_s: float
    """Round-trip time with empty queues."""

    mss_bytes: int = MSS_BYTES
    """Payload of a full segment."""

    rated: bool = True
    """Whether the rate is a promise; else the system's own sizes are the better guess."""

    def __post_init__(self) -> None:
        """Check the figures."""
        self.link("download")
        self.link("upload")

    def link(self, direction: Direction, loss: float = 0.0) -> Link:
        """Give the link in one direction, for the model."""
        if direction not in ("download", "upload"):
            raise TuningError(f"{direction!r} is no direction: say download or upload")
        rate_bps = self.down_bps if direction == "download" else self.up_bps
        return Link(rate_bps=rate_bps, rtt_s=self.rtt_s, loss=loss, mss_bytes=self.mss_bytes)

    def tuning(self, connections: int, direction: Direction) -> SocketTuning:
        """Give the settings of each of N data connections, the same on both ends.

        Buffers of 4 x rate x RTT / N, pacing at rate / N, an initial window of rate x RTT / N,
        50 ms unsent; each within the bounds of `tuning.planning`.
        """
        tuning = tuning_for(self.link(direction), connections)
        if self.rated:
            return tuning
        return SocketTuning(notsent_lowat_bytes=tuning.notsent_lowat_bytes)

    @classmethod
    def measured(cls, rate_bps: float, rtt_s: float) -> Profile:
        """Make the profile of a link that was measured. Raises TuningError."""
        return cls(
            name=AUTO,
            description="measured",
            source="this transfer",
            down_bps=rate_bps,
            up_bps=rate_bps,
            rtt_s=rtt_s,
        )


_ALL = (
    Profile(
        name="t1-geo",
        description="T1 over a geostationary satellite, 1.536 Mbit/s both ways, 560 ms",
        source="NASA ACTS: Allman 1997 sections 1.2.2 and 2.2.1",
        down_bps=1.536e6,
        up_bps=1.536e6,
        rtt_s=0.560,
    ),
    Profile(
        name="italsat",
        description="ITALSAT II, 2 Mbit/s both ways, 520 ms",
        source="Marchese 2001 sections 1 and 4; the RTT is given as above 500 ms only",
        down_bps=2e6,
        up_bps=2e6,
        rtt_s=0.520,
    ),
    Profile(
        name="hybrid",
        description="geostationary with a narrow return, 2048/256 kbit/s, 520 ms",
        source="TCP-ADaLR thesis, Simon Fraser University, sections 7.2 and 7.3",
        down_bps=2.048e6,
        up_bps=256e3,
        rtt_s=0.520,
    ),
    Profile(
        name="hts-geo",
        description="high-throughput geostationary satellite, 50/5 Mbit/s, 600 ms",
        source="the link of XFTP's own measurements, of the order that households can buy",
        down_bps=50e6,
        up_bps=5e6,
        rtt_s=0.600,
    ),
    Profile(
        name="leo",
        description="low-orbit constellation, 200/20 Mbit/s, 40 ms",
        source="the order of Starlink in Michel et al., A First Look at Starlink Performance, 2022",
        down_bps=200e6,
        up_bps=20e6,
        rtt_s=0.040,
    ),
    Profile(
        name="lan",
        description="gigabit Ethernet, 1 ms: buffers and windows are left to the system",
        source="IEEE 802.3 clause 40; the RTT is an upper bound",
        down_bps=1e9,
        up_bps=1e9,
        rtt_s=0.001,
        rated=False,
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})
"""By name, from long to short links."""

NAMES = (*PROFILES, AUTO)
"""What a user may name."""


def find(name: str) -> Profile:
    """Give a profile by its name. Raises TuningError, for `AUTO` too: it has no figures."""
    if name == AUTO:
        raise TuningError("the profile auto has to be measured")
    if name not in PROFILES:
        raise TuningError(f"there is no profile {name!r}: choose from {', '.join(NAMES)}")
    return PROFILES[name]
