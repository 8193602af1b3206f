"""Which ports wait for data connections: such as nobody can guess (RFC 2577 section 8).

Whoever guesses the next port can connect to it before the client does. So ports are drawn from the
operating system's source of randomness, and those that were used last are not used again soon.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DYNAMIC_PORTS = range(49152, 65536)
"""Dynamic ports of RFC 6335 section 6, where the system does not tell its own."""

_MOST_TRIES = 256
_OPEN_TRIES = 16
"""Where all ports may be had, most are free."""

_MOST_REMEMBERED = 4096
_SEED_BYTES = 32


def ephemeral_ports() -> range:
    """Give the ports that the system takes for connections of its own."""
    try:
        first, last = map(int, _EPHEMERAL_PORTS.read_text().split())
    except (OSError, ValueError):
        return _DYNAMIC_PORTS
    return range(first, last + 1)


class PassivePorts:
    """Draws ports: from those that the operator names, or from all that are free."""

    def __init__(self, ports: Sequence[int] = ()) -> None:
        self._ports: Sequence[int] = ports or ephemeral_ports()
        self._is_open = not ports
        self._most_recent = min(len(self._ports) // 2, _MOST_REMEMBERED)
        self._recent: dict[int, None] = {}  # in the order of their last use

    def candidates(self) -> list[int]:
        """Give ports to try one after the other; 0, any free one, is the last if that may be."""
        # Each draw has a seed of the system's, so that none tells anything of the next. To ask the
        # system for every number would take longer than to listen.
        random = Random(os.urandom(_SEED_BYTES))
        tries = _OPEN_TRIES if self._is_open else _MOST_TRIES
        drawn = random.sample(self._ports, min(len(self._ports), tries))
        fresh = [port for port in drawn if port not in self._recent]
        used = [port for port in self._recent if port in self._ports] if not self._is_open else [0]
        return fresh + used

    def used(self, port: int) -> None:
        """Note that a port was taken."""
        self._recent.pop(port, None)
        self._recent[port] = None
        while len(self._recent) > self._most_recent:
            del self._recent[next(iter(self._recent))]
