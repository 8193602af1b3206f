"""When it pays to send a record once more, and when a connection counts as dead.

Both are judged from what the sender's kernel knows of each connection (struct tcp_info), put into
a few numbers. Estimates err on the side of waiting: on a healthy path nothing is repeated.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

from .records import CHUNK_BYTES

LEAST_GAIN_S = 0.05
"""A record is not repeated to gain less: as much may wait unsent in a socket (UNSENT_S)."""

LEAST_GAIN_RTTS = 0.25
"""The same in round-trip times, where a loss is presumed: estimates are no better than that."""

LEAST_GAIN_OF_LIVE_RTTS = 1.0
"""The same where receipts come: one segment lost costs a connection a round trip, and that is
mended by then as well."""

LIVE_SHARE = 0.02
LIVE_RECORDS = 32
"""What is repeated of connections that receipts come from, at most: this share of the file, or so
many records if that is more (256 KiB, 7% of the BDP of 50 Mbit/s and 600 ms)."""

LAST_PART = 0.5
"""Of that, what is kept for the very end: once no more than this is under way, all of it that sits
behind a loss goes twice, as a segment that is lost again costs a time-out."""

ANSWER_S = 0.05
"""So long after the round trip, and after the acknowledgment before it, what was sent last is
acknowledged, or lost: more than the 40 ms for which Linux puts an acknowledgment off as a rule."""

OVERDUE_RTTS = 1.25
OVERDUE_S = 0.25
"""Without a receipt for so long, both together, a loss is presumed; receipts come only now and
then (RECEIPT_RTTS, LOOK_S)."""

MIN_RTO_S = 0.2
"""Linux's TCP_RTO_MIN: the least of 4 RTTVAR in its retransmission time-out."""

DRAIN_WINDOW_S = 5.0
"""Over which the rate of receipts is taken."""

FIRST_WINDOW_BYTES = 14_600
"""What slow start begins with, 10 segments (RFC 6928)."""


class Progress(NamedTuple):
    """How one connection fares."""

    outstanding_bytes: int
    """Given to it and not acknowledged by the peer's kernel, whether sent or not."""

    rate_bytes_per_s: float
    """At which its data was delivered lately; 0: not known."""

    rtt_s: float
    """Smoothed round-trip time."""

    rtt_deviation_s: float
    """RTTVAR (RFC 6298)."""

    timeouts: int
    """Retransmission time-outs in a row without an acknowledgment in between."""

    silent_s: float
    """Since the last receipt, or since something is outstanding if that is shorter."""

    sacked_bytes: int = 0
    """Of what is outstanding, what the peer's kernel holds behind a loss (RFC 2018): it is there
    as soon as the lost segment is, and is not sent again."""

    unanswered_s: float = 0.0
    """Since the kernel last sent data, for the first time or again, if some of what it sent is not
    acknowledged; else 0."""

    unheard_s: float = 0.0
    """Since it last heard of the peer: every segment acknowledges."""

    is_mending: bool = False
    """Whether the kernel sends again what was lost (RFC 6675, or after a time-out)."""

    @property
    def rto_s(self) -> float:
        """The retransmission time-out before it is doubled (RFC 6298, with Linux's minimum)."""
        return self.rtt_s + max(4 * self.rtt_deviation_s, MIN_RTO_S)

    @property
    def is_overdue(self) -> bool:
        """Whether an acknowledgment should have come, so that a loss is presumed."""
        if not self.outstanding_bytes:
            return False
        return self.timeouts > 0 or self.silent_s > OVERDUE_RTTS * self.rtt_s + OVERDUE_S

    @property
    def is_unanswered(self) -> bool:
        """Whether what was sent last should have been acknowledged, so that it is lost."""
        grace_s = max(2 * self.rtt_deviation_s, ANSWER_S)
        return self.unanswered_s > self.rtt_s + grace_s and self.unheard_s > grace_s

    @property
    def probe_wait_s(self) -> float:
        """How long until the kernel sends again what is unanswered.

        It does so after two round trips (tail loss probe, RFC 8985 section 7.2) or its time-out,
        whichever is sooner, from when it last sent, or was told of something that had arrived.
        """
        probe_s = self.rto_s if self.is_mending else min(2 * self.rtt_s, self.rto_s)
        return max(0.0, probe_s - min(self.unanswered_s, self.unheard_s))

    def finish_s(self, more_bytes: int = 0) -> float:
        """Estimate the seconds until `more_bytes` and all that is outstanding are acknowledged."""
        size = self.outstanding_bytes + more_bytes
        if not size:
            return 0.0
        size = max(1, size - self.sacked_bytes)
        if self.is_overdue:
            # The next try comes when the doubled time-out ends; then the window starts anew.
            wait_s = max(0.0, self.rto_s * 2.0 ** min(self.timeouts, 8) - self.silent_s)
            round_trips = 1 + log2(1 + size / FIRST_WINDOW_BYTES)
            return wait_s + max(round_trips * self.rtt_s, self._drain_s(size))
        if self.is_unanswered:
            return self.probe_wait_s + max(self.rtt_s, self._drain_s(size))
        return max(self.rtt_s - (0 if more_bytes else self.silent_s), self._drain_s(size))

    def _drain_s(self, size: int) -> float:
        return size / self.rate_bytes_per_s if self.rate_bytes_per_s > 0 else 0.0


def pays(donor: Progress, taker: Progress, size: int, *, at_last: bool = False) -> bool:
    """Tell whether `size` bytes outstanding on `donor` arrive sooner if `taker` sends them too.

    at_last: what is under way is so little that it may all go twice. Then they arrive sooner, too,
    where what the donor sends again is lost again.
    """
    if not donor.outstanding_bytes or taker.is_overdue or taker.is_unanswered:
        return False
    taker_s = max(taker.finish_s(size), taker.rtt_s)
    if at_last and donor.is_mending and not taker.is_mending:
        lost_again_s = donor.rto_s + donor.rtt_s
        if lost_again_s > taker_s + LEAST_GAIN_S:
            return True
    presumed_lost = donor.is_overdue or donor.is_unanswered
    gain_rtts = LEAST_GAIN_RTTS if presumed_lost else LEAST_GAIN_OF_LIVE_RTTS
    return donor.finish_s() > taker_s + max(LEAST_GAIN_S, gain_rtts * taker.rtt_s)


class RepeatBudget:
    """What may be sent twice, as every byte costs on some links. size: bytes of the file.

    Only what is repeated of live connections is counted: without that it would arrive too, only
    later. What sits where a loss is presumed for long is always repeated, and so is what a lost
    connection had not delivered.
    """

    def __init__(self, size: int) -> None:
        self.left_bytes = max(LIVE_RECORDS * CHUNK_BYTES, int(LIVE_SHARE * size))
        """Bytes of the file that may still be repeated of live connections."""
        self.last_records = int(LAST_PART * self.left_bytes) // CHUNK_BYTES
        """How many records of that are kept for the very end."""

    def most_records(self, donor: Progress, wanted: int, *, at_last: bool = False) -> int:
        """Give how many of the `wanted` records may be repeated."""
        if donor.is_overdue:
            return wanted
        left_bytes = self.left_bytes - (0 if at_last else self.last_records * CHUNK_BYTES)
        return min(wanted, max(0, left_bytes) // CHUNK_BYTES)

    def spend(self, donor: Progress, size: int) -> None:
        """Note that `size` bytes of the file that sit on a connection are repeated."""
        if not donor.is_overdue:
            self.left_bytes -= size


class Drain:
    """How long what is on its way needs, at the rate of the last seconds' receipts."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, int]] = deque()
        self.seconds = 0.0
        """0: not known, as before the second receipt."""

    def note(self, now: float, delivered_bytes: int, outstanding_bytes: int) -> None:
        """Note what has arrived so far over all connections, and what is on its way."""
        noted = self._noted
        if not noted or delivered_bytes > noted[-1][1]:
            noted.append((now, delivered_bytes))
        while len(noted) > 2 and noted[1][0] <= now - DRAIN_WINDOW_S:
            noted.popleft()
        since, before = noted[0]
        arrived = delivered_bytes - before
        self.seconds = outstanding_bytes * (now - since) / arrived if arrived else 0.0


@dataclass(frozen=True, slots=True)
class Endurance:
    """How long a connection may show no sign of life, and how one is replaced."""

    silent_s: float = 3.0
    """A connection with data outstanding and without a receipt for this long, while
    another goes on, is dead;"""

    silent_rtos: float = 8.0
    """or for as many retransmission time-outs, if that is longer: three tries have then failed,
    as the time-out doubles each time;"""

    silent_drains: float = 2.0
    """or for as many times as long as it takes until all that is on its way has arrived, at the
    rate of the receipts: a gateway that acknowledges for the receiver (RFC 3135) may hold what a
    slow link needs many seconds for, of one connection after the other."""

    idle_s: float = 10.0
    """A receiver that gets nothing at all for this long presumes its connections dead;"""

    idle_rtts: float = 20.0
    """or for as many round-trip times, if that is longer."""

    keepalive_s: float = 4.0
    """An idle connection is probed after this long, or 8 round-trip times; see `probes`."""

    probes: int = 4
    """Probes without an answer, half of `keepalive_s` apart, before a connection is dead."""

    first_redial_s: float = 0.25
    """Before a lost connection is dialled again; twice as long each time that brings nothing."""

    last_redial_s: float = 5.0
    """At most."""

    dial_s: float = 20.0
    """How long one such try may take. The kernel sends SYN again after 1, 3, 7 and 15 s."""

    losses_per_gain: int = 32
    """Connections lost one after the other, each connection of the transfer counted, without a
    record gained: then they are not replaced any more."""

    def silent_limit_s(self, progress: Progress, drain_s: float) -> float:
        """Give how long `progress` may be silent before its connection is dead; see `Drain`."""
        rtos_s, drains_s = self.silent_rtos * progress.rto_s, self.silent_drains * drain_s
        return max(self.silent_s, rtos_s, drains_s)

    def idle_limit_s(self, rtt_s: float) -> float:
        """Give how long a receiver may get nothing before it presumes its connections dead."""
        return max(self.idle_s, self.idle_rtts * rtt_s)


ENDURANCE = Endurance()
"""What is used unless a transfer is told otherwise."""
