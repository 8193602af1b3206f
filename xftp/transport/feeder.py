"""Which of the open connections of a sender are given records: `FeedPolicy` at work on sockets."""

from __future__ import annotations

from collections.abc import Collection

from .feeding import FeedPolicy, FeedSample
from .outgoing import Outgoing


class Feeder:
    """Tells how many connections to feed, from what the kernel says of them.

    begin: with how many, 1 or more.
    """

    def __init__(self, begin: int) -> None:
        self._policy = FeedPolicy(begin)
        self._retransmits = 0

    def has_enough(self, lanes: Collection[Outgoing]) -> bool:
        """Tell whether one connection too many is at work, so that the asking one may rest."""
        return sum(not each.is_idle for each in lanes) > self._policy.limit

    def look(self, now_s: float, lanes: Collection[Outgoing], delivered_bytes: int) -> bool:
        """Take a sample; tell whether more are to be fed than before."""
        states = [state for each in lanes if (state := each.connection.state()) is not None]
        retransmits = sum(state.retransmits for state in states)
        # Those of a lost connection are forgotten with it: never fewer than before.
        self._retransmits = max(self._retransmits, retransmits)
        before = self._policy.limit
        sample = FeedSample(
            now_s=now_s,
            opened=len(lanes),
            delivered_bytes=delivered_bytes,
            retransmits=self._retransmits,
            rtt_s=max((state.rtt_s for state in states), default=0.0),
        )
        return self._policy.note(sample) > before
