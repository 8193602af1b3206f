"""`-n auto`: how many data connections are opened, and how many are fed at first.

Where the rate of the path is known, each connection is told its part of it, so all that are opened
are fed: as many as the equations of Allman's thesis say, and no fewer than its default of 4, since
a loss then halves an eighth and not a half (equation 2.6). Where it is not known, the limit is
opened. On a long path all are fed: N initial windows are one of N times the size. On a short one 4
are, and either way the sender finds out how many pay (xftp.transport.feeding).
"""

from __future__ import annotations

import os
from pathlib import Path

from tuning import profiles
from tuning.model import connections_needed, window_needed_bytes
from tuning.sockopts import MAX_BUFFER_BYTES
from xftp.client.options import Direction
from xftp.client.paths import LONG_RTT_S
from xftp.protocol.options import MULT_DEFAULT_CONNECTIONS, MULT_LIMIT

from .tuning import Wish

ORDINARY_CEILING_BYTES = 212_992
"""net.core.rmem_max and wmem_max of Linux unless somebody raised them."""

_CEILINGS = {"download": "rmem_max", "upload": "wmem_max"}


class AutoConnections:
    """Chooses for one transfer (see `xftp.client.options.Options.auto`)."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish

    def __call__(
        self, direction: Direction, rtt_s: float | None, supposed_bps: float | None
    ) -> tuple[int, int | None]:
        """Give how many to open, and how many of them to feed at first; None: all, always."""
        rate_bps = self._rate_bps(direction) or supposed_bps
        if rate_bps is None or not rtt_s:
            is_long = rtt_s is not None and rtt_s >= LONG_RTT_S
            return MULT_LIMIT, MULT_LIMIT if is_long else MULT_DEFAULT_CONNECTIONS
        needed_bytes = window_needed_bytes(rate_bps, rtt_s)  # equation 2.3
        wanted = connections_needed(needed_bytes, self._window_bytes(direction))  # equation 2.5
        return min(max(wanted, MULT_DEFAULT_CONNECTIONS), MULT_LIMIT), None

    def _rate_bps(self, direction: Direction) -> float | None:
        """Give the rate that the user told, by itself or with the name of a link."""
        wish = self._wish
        if wish.rate_bps is not None or wish.profile in (None, profiles.AUTO):
            return wish.rate_bps
        profile = profiles.find(wish.profile or "")
        if not profile.rated:
            return None
        return profile.down_bps if direction == "download" else profile.up_bps

    def _window_bytes(self, direction: Direction) -> int:
        """Give the largest window that one connection may have."""
        wish = self._wish
        told = wish.receive_buffer_bytes if direction == "download" else wish.send_buffer_bytes
        return told or buffer_ceiling_bytes(direction)


def buffer_ceiling_bytes(direction: Direction, folder: Path = Path("/proc/sys/net/core")) -> int:
    """Give the largest buffer that this machine grants a socket that receives, or sends."""
    if os.geteuid() == 0:
        return MAX_BUFFER_BYTES  # forced, past the ceiling
    try:
        return int((folder / _CEILINGS[direction]).read_text())
    except (OSError, ValueError):
        return ORDINARY_CEILING_BYTES
