"""The congestion window of 1990, event by event, as Allman 1997 appendix A has it.

A pure simulation: slow start, congestion avoidance, fast retransmit, fast recovery and time-out
of one sender whose receiver acknowledges every segment and loses those it is told to. It shows
how the algorithms work together; times of transfers come from `tuning.model`.

Sources: Allman 1997 section 1.1, appendix A and table A.1; Marchese 2001 equations 1 to 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from .errors import check_integer

FAST_RETRANSMIT_ACKS = 3
"""Duplicate acknowledgments that tell of a loss (Allman 1997 section 1.1.2, RFC 5681 3.2)."""

MIN_SSTHRESH_SEGMENTS = 2.0
"""RFC 5681 section 3.1."""

_MAX_SEGMENTS = 1_000_000

Growth = Callable[[int, float], float]
"""Segments to add in slow start, given the count of acknowledgments and the window."""


def one_per_ack(acks: int, window_segments: float) -> float:
    """Add one segment per acknowledgment: standard slow start. Marchese 2001 equation 1."""
    return 1


def k_per_ack(k: float) -> Growth:
    """Add K segments per acknowledgment. Marchese 2001 equation 2."""
    return lambda acks, window_segments: k


def linear_to(threshold_segments: float) -> Growth:
    """Add as many segments as ACKs have come, up to a threshold. Marchese 2001 equation 3."""
    return lambda acks, window_segments: acks if window_segments <= threshold_segments else 1


def window_after_acks(
    acks: int, growth: Growth = one_per_ack, initial_window_segments: float = 1
) -> float:
    """Window in segments after so many acknowledgments in slow start. Marchese 2001 equation 4."""
    window = initial_window_segments
    for count in range(1, acks + 1):
        window += growth(count, window)
    return window


@dataclass(frozen=True, slots=True)
class Event:
    """One row of table A.1: what came in, what was sent on it, and the state after that."""

    sent: tuple[int, ...]
    """Segments sent now."""

    ack: int | None
    """The segment that the receiver expects next; None: the start, or a time-out."""

    trigger: int | None
    """The segment that made the receiver send this acknowledgment."""

    cwnd_segments: float
    """Congestion window."""

    ssthresh_segments: float
    """Slow-start threshold."""

    unacknowledged: tuple[int, int] | None
    """First and last segment sent and not acknowledged; None: nothing."""


def simulate(
    segments: int,
    advertised_segments: int,
    lost: Collection[int] = (),
    initial_window_segments: int = 1,
) -> Iterator[Event]:
    """Give the events of a transfer, segments counted from 1.

    lost: segments whose first transmission does not arrive.
    """
    check_integer("the transfer", segments, 1, _MAX_SEGMENTS, "segments")
    check_integer("the advertised window", advertised_segments, 1, _MAX_SEGMENTS, "segments")
    check_integer("the initial window", initial_window_segments, 1, _MAX_SEGMENTS, "segments")
    return _Sender(segments, advertised_segments, set(lost), initial_window_segments).run()


class _Receiver:
    """Acknowledges every segment at once with the first one missing."""

    def __init__(self, lost: set[int]) -> None:
        self._lost = lost
        self._held: set[int] = set()
        self._expected = 1
        self.acks: deque[tuple[int, int]] = deque()

    def take(self, segment: int) -> None:
        if segment in self._lost:
            self._lost.remove(segment)
            return
        self._held.add(segment)
        while self._expected in self._held:
            self._held.remove(self._expected)
            self._expected += 1
        self.acks.append((self._expected, segment))


class _Sender:
    def __init__(self, segments: int, advertised: int, lost: set[int], initial: int) -> None:
        self._segments = segments
        self._advertised = advertised
        self._receiver = _Receiver(lost)
        self._cwnd = float(min(initial, advertised))
        self._ssthresh = float(advertised)
        self._first = 1
        """First segment not acknowledged."""
        self._next = 1
        """First segment not sent."""
        self._duplicates = 0
        self._recovering = False
        self._round_window = 0.0
        """Window at the start of this round trip of congestion avoidance."""
        self._round_acks = 0

    def run(self) -> Iterator[Event]:
        yield self._event(self._send_new(), None, None)
        while self._first <= self._segments:
            if not self._receiver.acks:
                yield self._time_out()
                continue
            ack, trigger = self._receiver.acks.popleft()
            sent = self._new_ack(ack) if ack > self._first else self._duplicate_ack()
            yield self._event(sent, ack, trigger)

    def _new_ack(self, ack: int) -> tuple[int, ...]:
        self._first, self._duplicates = ack, 0
        if self._recovering:
            self._recovering = False
            self._cwnd = self._ssthresh  # what recovery had added is taken away
        else:
            self._grow()
        # After a time-out, what lay beyond the loss may turn out to have arrived.
        self._next = max(self._next, self._first)
        return self._send_new()

    def _duplicate_ack(self) -> tuple[int, ...]:
        self._duplicates += 1
        if self._duplicates < FAST_RETRANSMIT_ACKS:
            if self._cwnd >= self._ssthresh:  # table A.1 counts these, events 30 and 31
                self._grow()
            return ()
        if self._duplicates == FAST_RETRANSMIT_ACKS:
            self._ssthresh = max(self._cwnd / 2, MIN_SSTHRESH_SEGMENTS)
            self._cwnd = self._ssthresh + FAST_RETRANSMIT_ACKS
            self._recovering = True
            self._round_window = 0
            self._receiver.take(self._first)
            return (self._first,)
        self._cwnd = min(self._cwnd + 1, self._advertised)
        return self._send_new()

    def _time_out(self) -> Event:
        self._ssthresh = max(self._cwnd / 2, MIN_SSTHRESH_SEGMENTS)
        self._cwnd, self._duplicates, self._recovering = 1.0, 0, False
        self._round_window = 0
        self._receiver.take(self._first)
        return self._event((self._first,), None, None)

    def _grow(self) -> None:
        """Open the window for one acknowledgment, never beyond the advertised one."""
        if self._cwnd < self._ssthresh:
            self._cwnd = min(self._cwnd + 1, self._advertised)
            return
        if not self._round_window:
            self._round_window, self._round_acks = self._cwnd, 0
        self._round_acks += 1
        self._cwnd += 1 / self._cwnd
        if self._round_acks >= self._round_window:
            # Table A.1 rounds a whole round trip up to one segment: events 26 and 27.
            self._cwnd = self._round_window + 1
            self._round_window = 0
        self._cwnd = min(self._cwnd, self._advertised)

    def _send_new(self) -> tuple[int, ...]:
        limit = min(self._first + int(self._cwnd) - 1, self._segments)
        sent = tuple(range(self._next, limit + 1))
        for segment in sent:
            self._receiver.take(segment)
        self._next = max(self._next, limit + 1)
        return sent

    def _event(self, sent: tuple[int, ...], ack: int | None, trigger: int | None) -> Event:
        last = self._next - 1
        outstanding = (self._first, last) if last >= self._first else None
        return Event(sent, ack, trigger, self._cwnd, self._ssthresh, outstanding)
