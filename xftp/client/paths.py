"""What a transfer teaches about the path, and what is asked of the next one because of it.

Only long transfers say how fast a path is; a short one may only show
that it is faster than was thought. A path is the same one only if its round-trip time is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .memory import KnownPath, corrected
from .options import Direction

if TYPE_CHECKING:
    from xftp.transport.transfer import Transfer

    from .dialogue import Dialogue

LONG_RTT_S = 0.02
"""On shorter paths the systems' own windows are there soon enough: nothing is learnt."""

HEADROOM = 1.25
"""What is asked for above what was seen: a path that has become a little faster shows it."""

HEADROOM_WHEN_FULL = 2.0
"""The same if all that was asked for was got: the path may carry much more."""

_WINDOW_RTTS, _LEAST_WINDOW_S = 4, 0.5
_LONG_RTTS, _LEAST_LONG_S = 10, 2.0
_SAMPLES_PER_WINDOW = 16
_MOST_SAMPLES = 512
_SAME_PATH = 2.0
"""Factor within which the round-trip time of one path stays, queues included."""

_FULL = 0.9
_HEADERS = 1500 / 1448
"""What a full segment takes of the link for each byte of its payload."""


class RateMeter:
    """The rate of a transfer without its beginning, from samples of a growing count.

    It is the best average over half of the transfer, and over a least time: what was held back by
    a gap and then counted at once does not make it look fast.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._samples: list[tuple[float, int]] = []
        self._every = 1
        self._skipped = 0

    @property
    def seconds(self) -> float:
        """From the first sample to the last."""
        samples = self._samples
        return samples[-1][0] - samples[0][0] if samples else 0.0

    def note(self, now_s: float, total_bytes: int) -> None:
        """Take a sample; times never go back. Of long transfers fewer are kept."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._samples.append((now_s, total_bytes))
        if len(self._samples) >= _MOST_SAMPLES:
            del self._samples[1::2]
            self._every *= 2

    def best_bytes_per_s(self) -> float:
        """Give the rate; 0 if the transfer was too short to tell."""
        samples, window_s = self._samples, max(self._least_s, self.seconds / 2)
        best, late = 0.0, 0
        for begin_s, begin_bytes in samples:
            while late < len(samples) and samples[late][0] - begin_s < window_s:
                late += 1
            if late == len(samples):
                break
            end_s, end_bytes = samples[late]
            best = max(best, (end_bytes - begin_bytes) / (end_s - begin_s))
        return best


def supposed_rate_bps(known: KnownPath | None, rtt_s: float | None) -> float | None:
    """Give the rate to ask for, bits per second with headers; None if none is supposed."""
    if known is None or rtt_s is None or rtt_s < LONG_RTT_S or not known.takes_windows:
        return None
    if not known.rtt_s / _SAME_PATH <= rtt_s <= known.rtt_s * _SAME_PATH:
        return None
    return known.rate_bps * (HEADROOM_WHEN_FULL if known.was_full else HEADROOM)


def learnt(
    before: KnownPath | None,
    meter: RateMeter,
    rtt_s: float,
    asked_bps: float | None,
    *,
    takes_windows: bool,
) -> KnownPath | None:
    """Give what is to be remembered after a transfer; None if it taught nothing.

    asked_bps: rate that the sender was told, so that it could not be faster.
    """
    rate_bps = meter.best_bytes_per_s() * 8 * _HEADERS
    if before is not None and not (before.rtt_s / _SAME_PATH <= rtt_s <= before.rtt_s * _SAME_PATH):
        before = None
    is_long = meter.seconds >= max(_LONG_RTTS * rtt_s, _LEAST_LONG_S)
    if not rate_bps or (not is_long and (before is None or rate_bps <= before.rate_bps)):
        if before is not None and before.takes_windows != takes_windows:
            return before._replace(takes_windows=takes_windows)
        return None
    was_full = asked_bps is not None and rate_bps >= _FULL * asked_bps
    return corrected(before, KnownPath(rate_bps, rtt_s, was_full, takes_windows))


class PathWatch:
    """Watches one transfer, and remembers what it taught."""

    def __init__(self, dialogue: Dialogue, way: Direction, transfer: Transfer) -> None:
        self._dialogue = dialogue
        self._way = way
        self._transfer = transfer
        self._rtt_s = dialogue.control.rtt_s
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        window_s = max(_WINDOW_RTTS * (self._rtt_s or 0.0), _LEAST_WINDOW_S)
        self._meter = RateMeter(window_s)
        self._interval_s = window_s / _SAMPLES_PER_WINDOW
        options = dialogue.options
        is_long = self._rtt_s is not None and self._rtt_s >= LONG_RTT_S
        self._is_of_use = is_long and options.memory is not None and options.limit_rate is None

    def start(self) -> None:
        """Begin to look, a few times per round trip."""
        if self._is_of_use:
            self._look()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    async def remember(self) -> None:
        """Keep what a transfer taught that went well."""
        dialogue, memory = self._dialogue, self._dialogue.options.memory
        if not self._is_of_use or memory is None or self._rtt_s is None or dialogue.place is None:
            return
        known = learnt(
            dialogue.paths.get(self._way),
            self._meter,
            self._rtt_s,
            dialogue.asked_rate_bps,
            takes_windows=dialogue.sender_takes_windows,
        )
        if known is not None:
            dialogue.paths[self._way] = known
            await asyncio.to_thread(memory.note_path, *dialogue.place, self._way, known)

    def _look(self) -> None:
        arrived = self._transfer.arrived_bytes()
        if arrived is not None:
            self._meter.note(self._loop.time(), arrived)
        self._timer = self._loop.call_later(self._interval_s, self._look)
