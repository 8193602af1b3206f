"""How many of the open connections are given records: as many as pay.

Up to the limit is opened; what is fed begins with a number from the equations. Then, once per
period of a few round trips, one more is fed if that brought more the last time or was not tried for
a while, and it stays if the sum of the delivery rates has grown. One fewer is fed when more is sent
again than before: each connection has a window of its own, and together they overrun a queue that
fewer would not (Allman 1997 figure 2.6, where 10 and 12 connections carry less than 8).

No clock and no socket here: samples in, a number out.
"""

from __future__ import annotations

from typing import NamedTuple

PERIOD_RTTS = 4
LEAST_PERIOD_S = 0.3
"""A period is as long as the longer of these, and is not judged before it is over."""

GROWN = 1.05
"""The sum of rates has grown if it is larger by this factor: less is chance."""

MANY_AGAIN = 0.02
"""Share of the segments sent again that is worth fewer connections, if it has doubled as well."""

FIRST_PATIENCE, LAST_PATIENCE = 4, 64
"""Periods until one more is tried again after it did not pay; doubled each time."""

SEGMENT_BYTES = 1448


class FeedSample(NamedTuple):
    """How all connections of one sender fare at a moment."""

    now_s: float
    """On any clock that goes on."""

    opened: int
    """Connections that could be fed."""

    delivered_bytes: int
    """Acknowledged so far, on all of them; never less than before."""

    retransmits: int
    """Segments sent again so far, on all of them; never less than before."""

    rtt_s: float
    """Smoothed round-trip time, the longest of those that are fed; 0: not known."""


class FeedPolicy:
    """Decides how many connections are fed. begin: with how many, 1 or more."""

    def __init__(self, begin: int) -> None:
        self.limit = max(1, begin)
        """Connections to feed."""
        self._since: FeedSample | None = None
        self._settles = True
        self._rate = 0.0
        self._share_again = 0.0
        self._last_move = 0
        self._patience, self._wait = FIRST_PATIENCE, 1

    def note(self, sample: FeedSample) -> int:
        """Take a sample; give the number of connections to feed from now on."""
        if self.limit > sample.opened >= 1:
            self._change(sample.opened, sample)
        since = self._since
        if since is None:
            self._since = sample
            return self.limit
        elapsed_s = sample.now_s - since.now_s
        if elapsed_s < max(LEAST_PERIOD_S, PERIOD_RTTS * sample.rtt_s):
            return self.limit
        if self._settles:  # what was sent before the last change is still on its way
            self._settles, self._since = False, sample
            return self.limit
        delivered = sample.delivered_bytes - since.delivered_bytes
        again = sample.retransmits - since.retransmits
        self._since = sample
        self._judge(sample, delivered / elapsed_s, again * SEGMENT_BYTES / max(delivered, 1))
        return self.limit

    def _judge(self, sample: FeedSample, rate: float, share_again: float) -> None:
        """Decide at the end of a period, by what the last move brought."""
        before_rate, self._rate = self._rate, rate
        before_share, self._share_again = self._share_again, share_again
        last_move, self._last_move = self._last_move, 0
        is_much = share_again > MANY_AGAIN
        worse = is_much and share_again > 2 * before_share
        if last_move > 0 and (worse or rate <= before_rate * GROWN):
            self._rate, self._share_again = before_rate, before_share
            self._rest()
            self._move(-1, sample, judged=False)
        elif last_move < 0 and rate < before_rate / GROWN:
            self._rest()
            self._move(+1, sample, judged=False)
        elif worse or (last_move < 0 and is_much and share_again < before_share / GROWN):
            self._rest()
            self._move(-1, sample)
        elif last_move > 0:
            self._patience = FIRST_PATIENCE
            self._move(+1, sample)
        elif self._wait > 0:
            self._wait -= 1
        else:
            self._move(+1, sample)

    def _rest(self) -> None:
        """Leave the number alone for longer than the last time."""
        self._wait = self._patience
        self._patience = min(2 * self._patience, LAST_PATIENCE)

    def _move(self, by: int, sample: FeedSample, *, judged: bool = True) -> None:
        """Feed one more or one fewer; judged: by what that brings."""
        limit = self.limit + by
        if 1 <= limit <= sample.opened:
            self._last_move = by if judged else 0
            self._change(limit, sample)

    def _change(self, limit: int, sample: FeedSample) -> None:
        self.limit, self._since, self._settles = limit, sample, True
