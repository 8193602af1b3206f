"""A limit on the rate of one transfer, over all its connections together."""

from __future__ import annotations

BURST_S = 0.1
"""What may be moved at once after a pause, as seconds at the limit."""


class RateLimit:
    """A token bucket that may go into debt: spend first, then wait for as long as it says."""

    def __init__(self, rate_bytes_per_s: float) -> None:
        self._rate = rate_bytes_per_s
        self._free_at: float | None = None

    @property
    def batch_bytes(self) -> int:
        """How much to move at a time, so that the rate is even over BURST_S."""
        return max(1, int(self._rate * BURST_S / 4))

    def spend(self, size: int, now: float) -> float:
        """Account for `size` bytes moved at time `now`; give the seconds to pause before more."""
        earliest = now - BURST_S
        if self._free_at is None or self._free_at < earliest:
            self._free_at = earliest
        self._free_at += size / self._rate
        return max(0.0, self._free_at - now)
