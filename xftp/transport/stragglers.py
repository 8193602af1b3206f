"""The end of a transfer: what sits on slow connections goes over idle ones as well."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xftp.protocol.records import RECORD_BYTES
from xftp.protocol.repeating import Progress, RepeatBudget, pays
from xftp.protocol.striping import Striping

from .outgoing import Outgoing

LARGEST_REPEAT = 16
"""Records repeated at a time: after each such batch it is looked at anew what pays."""


class Stragglers:
    """Finds work for idle connections: first what others did not begin to send, then repeats.

    budget: for repeats; fill: reads a run of records into the batch of a connection and lets it go
    on.
    """

    def __init__(
        self,
        striping: Striping,
        budget: RepeatBudget,
        fill: Callable[[Outgoing, tuple[int, int]], object],
    ) -> None:
        self._striping = striping
        self._budget = budget
        self._fill = fill
        self._at_last = False
        """Whether what is under way is so little that it may all go twice."""
        self._last_copies = 0
        """Records that went twice for that reason; they are under way too."""

    def help(self, all_of_them: Collection[Outgoing], now: float) -> None:
        """Let every idle connection carry what would arrive later otherwise, if there is any."""
        takers = [each for each in all_of_them if each.is_idle]
        donors = [each for each in all_of_them if each.lane.outstanding_bytes]
        if not takers or not donors:
            return
        fares = {each: each.progress(now) for each in all_of_them}
        under_way = sum(fares[each].outstanding_bytes for each in donors)
        at_most = self._budget.last_records + self._last_copies
        self._at_last = under_way <= at_most * RECORD_BYTES
        takers.sort(key=lambda each: fares[each].finish_s())
        donors.sort(key=lambda each: fares[each].finish_s(), reverse=True)
        for taker in takers:
            run = self._find(taker, donors, fares)
            if run is not None:
                self._fill(taker, run)

    def _find(
        self, taker: Outgoing, donors: list[Outgoing], fares: dict[Outgoing, Progress]
    ) -> tuple[int, int] | None:
        count = min(taker.batch_size.records, LARGEST_REPEAT)
        for donor in donors:
            size = count * RECORD_BYTES
            if donor is taker or not pays(fares[donor], fares[taker], size, at_last=self._at_last):
                continue
            if not donor.is_loading and donor.waiting:
                sent = donor.connection.bytes_sent
                donor.give_back(self._striping.take_back(donor.lane, sent))
            run = self._striping.take(taker.lane, count)
            if run is None:
                run = self._repeat(taker, donor, fares[donor], count)
            if run is not None:
                return run
        return None

    def _repeat(
        self, taker: Outgoing, donor: Outgoing, fare: Progress, count: int
    ) -> tuple[int, int] | None:
        count = self._budget.most_records(fare, count, at_last=self._at_last)
        if not count:
            return None
        arrived_bytes = 0 if fare.is_overdue else donor.connection.acknowledged()
        before = self._striping.repeated_bytes
        run = self._striping.repeat(taker.lane, donor.lane, count, arrived_bytes)
        self._budget.spend(fare, self._striping.repeated_bytes - before)
        if self._at_last and run is not None:
            self._last_copies += run[1]
        return run
